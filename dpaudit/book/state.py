"""What the log adds up to: each line changes it in one way, when it is written and when it is read.

Whoever reads the log reads it here: verification, the course of a budget, the compliance report.
The tables of the database hold the same, for whoever looks up a part of it; ``verify`` compares. A
line of an unknown kind changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sqlalchemy import Connection, text

from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.toml_tables import nearest
from dpaudit.base.validate import shown
from dpaudit.book.limits import Cost, joint_buckets
from dpaudit.book.records import BudgetRecord, DataSet, People, Release, Status, TableRecord, Token

Place = tuple[str, str]
"""A budget and one of its buckets."""
_LINES = text("SELECT number, line FROM log WHERE number >= :at ORDER BY number LIMIT 10000")


def log_lines(connection: Connection, at: int = 0) -> Iterator[str]:
    """Yield the log's lines from a number on, as they were written.

    Raises:
        TamperedError: if a number is missing.
    """
    while rows := connection.execute(_LINES, {"at": at}).all():
        yield from (row.line for row in rows)
        at += len(rows)
        if rows[-1].number != at - 1:
            raise TamperedError("a line of the book's log is missing, or is numbered wrongly.")


@dataclass(frozen=True)
class Refusal:
    """Something that was not done.

    Attributes:
        event: ``refused`` by a budget, or ``barred`` from what one may not.
        day: on which.
        dataset: name of the data set; empty where the log names none.
        times: how often, since the line before it about the same.
    """

    event: str
    day: str
    dataset: str
    times: int


@dataclass
class State:
    """Data sets, budgets, sums and releases: all of them, or those that a change is about.

    Attributes:
        datasets: by name.
        budgets: by name.
        spent: what was charged to each bucket of each budget, less what was given back.
        releases: by id.
        people: budgets of each unit, by name.
        tokens: by the name of whose they are.
        refusals: what budgets refused, and who tried what they may not.
        changed: what the lines that were applied have changed, as tables and keys.
    """

    datasets: dict[str, DataSet] = field(default_factory=dict)
    budgets: dict[str, BudgetRecord] = field(default_factory=dict)
    spent: dict[Place, Cost] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict)
    people: dict[str, People] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    changed: set[tuple[str, Any]] = field(default_factory=set)

    @classmethod
    def of_log(cls, connection: Connection) -> Self:
        """Read the whole log, of which nothing is checked here."""
        state = cls()
        for line in log_lines(connection):
            state.apply(json.loads(line))
        return state

    def dataset(self, name: str) -> DataSet:
        """Return a data set.

        Raises:
            InputError: if there is none of that name.
        """
        if name not in self.datasets:
            hint = nearest(name, self.datasets) if self.datasets else "add one first."
            raise InputError(f"dataset is {shown(name)}, which the book does not have; {hint}")
        return self.datasets[name]

    def budgets_of(self, dataset: str) -> list[BudgetRecord]:
        """Return the budgets of a data set that count."""
        return [b for b in self.budgets.values() if b.dataset == dataset and not b.retired]

    def release(self, number: str) -> Release:
        """Return a release.

        Raises:
            InputError: if there is none of that id.
        """
        if number not in self.releases:
            raise InputError(f"release is {shown(number)}, which the book does not have.")
        return self.releases[number]

    def places(self, number: str) -> list[Place]:
        """Tell where a release was charged."""
        charged = self.release(number).charged.items()
        return [(name, bucket) for name, (buckets, _) in charged for bucket in buckets]

    def total(self, budget: BudgetRecord, bucket: str) -> Cost:
        """Return what adds up with a bucket, itself included."""
        nothing = (0,) * len(budget.limit.bounds)
        joint = joint_buckets(budget.window, bucket)
        rows = (self.spent.get((budget.name, each), nothing) for each in joint)
        return tuple(map(sum, zip(*rows, strict=True)))

    def refusing_budget(
        self, charged: Mapping[str, tuple[Sequence[str], Sequence[int]]]
    ) -> tuple[BudgetRecord, str] | None:
        """Return the first budget, and its bucket, that some charges would exceed."""
        for name, (buckets, cost) in charged.items():
            budget = self.budgets[name]
            for bucket in buckets:
                total = [a + b for a, b in zip(self.total(budget, bucket), cost, strict=True)]
                if not budget.limit.admits(total):
                    return budget, bucket
        return None

    def apply(self, line: Mapping[str, Any]) -> None:
        """Change what a line of the log says; a line that changes nothing is only kept."""
        change = getattr(self, f"_{line['event']}", None)
        if change is not None:
            change(line)

    def _dataset(self, line: Mapping[str, Any]) -> None:
        self._put(DataSet.from_dict(line["record"]), self.datasets)

    def _budget(self, line: Mapping[str, Any]) -> None:
        made = BudgetRecord.from_dict(line["record"])
        self._put(made, self.budgets)
        for bucket, total in line["carried"].items():
            self.add(made.name, bucket, total)

    def _people(self, line: Mapping[str, Any]) -> None:
        self._put(People.from_dict(line["record"]), self.people)

    def _charged(self, line: Mapping[str, Any]) -> None:
        told = {"charges": line["charge"], "request": line["request"], "plan": line["plan"]}
        self._put(replace(self.people[line["people"]], **told), self.people)

    def _retired(self, line: Mapping[str, Any]) -> None:
        self._put(replace(self.budgets[line["budget"]], retired=line["why"]), self.budgets)

    def _published(self, line: Mapping[str, Any]) -> None:
        made = replace(self.datasets[line["dataset"]], public=line["public"])
        self._put(made, self.datasets)

    def _token(self, line: Mapping[str, Any]) -> None:
        self._put(Token.from_dict(line["record"]), self.tokens)

    def _approved(self, line: Mapping[str, Any]) -> None:
        self._update(line, status=Status.RESERVED, approved=line["by"])

    def _reserved(self, line: Mapping[str, Any]) -> None:
        made = Release.from_dict(line["record"])
        self._put(made, self.releases)
        for name, (buckets, cost) in made.charged.items():
            for bucket in buckets:
                self.add(name, bucket, cost)

    def _started(self, line: Mapping[str, Any]) -> None:
        self._update(line, status=Status.RUNNING, journal=line["journal"])

    def _anchored(self, line: Mapping[str, Any]) -> None:
        self._update(line, lines=line["lines"], head=line["head"])

    def _ended(self, line: Mapping[str, Any]) -> None:
        known = self.releases[line["release"]]
        for name, cost in line["returned"].items():
            for bucket in known.charged[name][0]:
                self.add(name, bucket, [-each for each in cost])
        told = {name: line[name] for name in ("status", "ran", "certificate")}
        self._update(line, lines=line["lines"], head=line["head"], **told)

    def _refused(self, line: Mapping[str, Any]) -> None:
        times = line.get("times", 1)  # the 1st, 2nd, 4th, 8th … of a day have lines
        self._refuse(line, times - times // 2)

    def _barred(self, line: Mapping[str, Any]) -> None:
        self._refuse(line, line.get("times", 1))

    def _refuse(self, line: Mapping[str, Any], times: int) -> None:
        made = Refusal(line["event"], line["at"][:10], line.get("dataset", ""), times)
        self.refusals.append(made)

    def _update(self, line: Mapping[str, Any], **fields: Any) -> None:
        self._put(replace(self.releases[line["release"]], **fields), self.releases)

    def _put(self, record: TableRecord, kept: dict[str, Any]) -> None:
        kept[record.key] = record
        self.changed.add((record.kind, record.key))

    def add(self, budget: str, bucket: str, cost: Sequence[int]) -> None:
        """Add to a sum, or take from it."""
        place = budget, bucket
        known = self.spent.get(place, (0,) * len(cost))
        self.spent[place] = tuple(a + b for a, b in zip(known, cost, strict=True))
        self.changed.add(("spent", place))
