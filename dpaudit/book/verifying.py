"""The whole log read again: does it hold, was every charge right, and are the tables its sum?

``dpaudit book verify``, reports and exports call it. It believes neither the tables nor the charges
that the log states: each is computed again from the plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, text

from dpaudit.base import files
from dpaudit.base.chain import checked_line
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.names import written_alike
from dpaudit.book import databases, store
from dpaudit.book.book import Book, checked_plan, unspent
from dpaudit.book.limits import Cost, charged_buckets, span_of
from dpaudit.book.records import NOTHING, BudgetRecord, DataSet, People, Release, Status
from dpaudit.book.state import State, log_lines
from dpaudit.ledger import Anchor, AnchorState
from dpaudit.plan import Plan

_ROUNDING = 10**9
"""Costs that were computed elsewhere may differ by one part in so many, and by a unit."""


def verify_book(
    book: Book, anchor: Anchor | None = None, *, new_anchor: bool = False
) -> dict[str, Any]:
    """Check the log's chain, recompute every charge and every sum, and compare the tables.

    Args:
        book: the book.
        anchor: what kept the head of the log when it was last verified; it is moved on.
        new_anchor: whether it begins with this, and knows nothing yet.

    Returns:
        What the book comes to: its identifier, the head of its log, and how many there are of each.

    Raises:
        TamperedError: naming the first line, or the row, that is not as it must be.
        InputError: if the anchor knows nothing, or something, and that was not to be expected.
    """
    with book.reading() as connection:
        replay, head = _Replay(connection), _head(connection)
        known = None if anchor is None else anchor.state(head.book)
        if new_anchor is not (anchor is not None and known is None):
            raise InputError(
                "the anchor already knows this book; leave out --new-anchor."
                if new_anchor
                else "the anchor is missing or empty; give the right one, or add --new-anchor."
            )
        for line in replay.lines():
            if known is not None and line["number"] + 1 == known.lines:
                if line["hash"] != known.head:
                    raise TamperedError("the log is not the one that was anchored.")
                known = None
        if known is not None:
            raise TamperedError(f"the log had {known.lines} lines; its last ones were dropped.")
        replay.compare(head)
    if anchor is not None:
        anchor.advance(AnchorState(head.book, head.lines, head.hash))
    kinds = ("datasets", "budgets", "releases")
    counted = {kind: len(getattr(replay.state, kind)) for kind in kinds}
    log = {"book": head.book, "lines": head.lines, "head": head.hash}
    refused = sum(each.times for each in replay.state.refusals if each.event == "refused")
    return log | counted | {"refused": refused}


def releases_as_logged(book: Book) -> tuple[list[Release], dict[str, tuple[str, ...]]]:
    """Return all releases as the log has them, which is checked as :func:`verify_book` does.

    Returns:
        The releases in their order; and of what costs more by this version than it was charged (a
        release, a budget, a charge of people) the reasons, by what it is.

    Raises:
        TamperedError: as there, but for costs.
    """
    dearer: dict[str, tuple[str, ...]] = {}
    with book.reading() as connection:
        replay = _Replay(connection, dearer)
        for _ in replay.lines():
            pass
        replay.compare(_head(connection))
    return _in_order(replay.state), dearer


def records_as_of(book: Book, lines: int, head: str) -> tuple[dict[str, Any], int]:
    """Return all records as they were after some lines of the log, which is checked up to there.

    Args:
        book: the book.
        lines: how many lines its log had.
        head: hash of the last of them.

    Returns:
        Data sets and budgets by name, plans by their text and releases in their order, as JSON
        values, with book, lines and hash; and how many lines the log has had since.

    Raises:
        TamperedError: if the log has no such line, or does not hold.
    """
    with book.reading() as connection:
        replay = _Replay(connection)
        for line in replay.lines():
            if line["number"] + 1 == lines:
                break
        if (replay.number, replay.head) != (lines, head):
            raise TamperedError(
                f"line {lines} of the book's log is not the one that was signed: this is "
                "another book, or its log was cut and rewritten."
            )
        now = connection.execute(text("SELECT count(*) FROM log")).scalar_one()
        _require_lines(_head(connection).lines, now)
        state = replay.state
        named = {each for own in state.releases.values() for each in (own.plan, own.ran)}
        plans = [replay.plan(each).to_dict() for each in named - {"", NOTHING}]
    records: dict[str, Any] = {"book": replay.book, "lines": lines, "hash": head}
    records["plans"] = sorted(plans, key=files.canonical_json)
    for table in ("datasets", "budgets"):
        known: Mapping[str, DataSet | BudgetRecord] = getattr(state, table)
        records[table] = [known[name].to_dict() for name in sorted(known)]
    return records | {"releases": [own.to_dict() for own in _in_order(state)]}, now - lines


def _in_order(state: State) -> list[Release]:
    return sorted(state.releases.values(), key=lambda own: int(own.id[1:]))


def _head(connection: Connection) -> Any:
    return connection.execute(text("SELECT * FROM head")).one()


def _require_lines(stated: int, found: int, *, same: bool = True) -> None:
    if stated != found or not same:
        raise TamperedError(
            f"the log has {found} lines and the book says {stated}: its last lines were dropped, "
            "or its head was edited."
        )


_BEFORE = {
    "approved": "requested",
    "started": "reserved",
    "anchored": "running",
    "ended": "requested reserved running",
}
"""How far a release must have come for a line about it."""


class _Replay:
    """The log, line by line, and what it adds up to; what costs too much is an error, or told."""

    def __init__(
        self, connection: Connection, dearer: dict[str, tuple[str, ...]] | None = None
    ) -> None:
        self._dearer = dearer
        self.state = State()
        self.number, self.head, self.book = 0, "", ""
        self.made = ""
        self._requests: set[str] = set()
        own = self.state
        self._named: dict[str, Mapping[str, Any]] = {}
        self._named |= {"dataset": own.datasets, "budget": own.budgets, "people": own.people}
        self._connection = connection

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        rows = self._connection.execute(text("SELECT hash, record FROM plan"))
        return {each.hash: checked_plan(each.record, each.hash) for each in rows}

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield every line, after it was checked and applied."""
        return map(self._next, log_lines(self._connection))

    def _next(self, row: str) -> Mapping[str, Any]:
        try:
            line = checked_line(row.encode(), self.number, self.head, "the book's log")
            self._check_order(line)
            self._check_before(line)
            self.state.apply(line)
        except TamperedError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _wrong(self.number, f"is not possible ({error!s:.100})") from None
        self.number, self.head, self.made = self.number + 1, line["hash"], line["at"]
        return line

    def _check_order(self, line: Mapping[str, Any]) -> None:
        """Tell whether this may follow, however the tables were edited when it was written."""
        kind = line["event"]
        if line["at"] < self.made:
            raise _wrong(self.number, "states an earlier time than the line before it")
        if kind in _BEFORE:
            self._check_step(line, self.state.release(line["release"]))
        elif kind in self._named and line["record"]["name"] in self._named[kind]:
            raise _wrong(self.number, f"enters a {kind} again")
        elif kind == "retired" and self.state.budgets[line["budget"]].retired:
            raise _wrong(self.number, "retires a budget again")
        elif (kind == "opened") is not (self.number == 0):
            raise _wrong(self.number, "is out of place")

    def _check_step(self, line: Mapping[str, Any], known: Release) -> None:
        kind, moved = line["event"], line.get("lines", 0) - known.lines
        waits, to = known.status is Status.REQUESTED, line.get("status")
        right = {
            "approved": not written_alike(line["by"], known.by),
            "started": True,
            "anchored": known.journal and moved > 0,
            "ended": moved in (0, 1) and to in (("denied",) if waits else ("closed", "abandoned")),
        }
        if known.status not in _BEFORE[kind].split() or not right[kind]:
            was = f"{known.status}, with {known.lines} lines"
            raise _wrong(self.number, f"has {kind} of release {known.id}, which was {was}")

    def _check_before(self, line: Mapping[str, Any]) -> None:
        kind = line["event"]
        if kind == "opened":
            self.book = line["book"]
        elif kind == "reserved":
            self._check_reserved(made := Release.from_dict(line["record"]), line["at"])
            self._check_charges(made)
        elif kind == "budget":
            self._check_carried(BudgetRecord.from_dict(line["record"]), line["carried"])
        elif kind == "ended":
            self._check_returned(line)
        elif kind == "charged":
            self._check_charged(line, self.state.people[line["people"]])

    def _check_reserved(self, made: Release, at: str) -> None:
        waits = any(b.approval for b in self.state.budgets_of(made.dataset))
        status = Status.REQUESTED if waits else Status.RESERVED
        fresh = (f"R{self.number}", at, status, "", 0, "", "", "")
        told = made.id, made.made, made.status, made.journal, made.lines, made.head, made.ran
        if (*told, made.certificate) != fresh or made.request in self._requests:
            raise _wrong(self.number, "reserves a release that was reserved before")
        if waits and made.approved:
            raise _wrong(self.number, "reserves a release as approved, but nobody had approved it")
        self._requests.add(made.request)

    def _check_charges(self, release: Release) -> None:
        budgets = self.state.budgets_of(release.dataset)
        if {b.name for b in budgets} != set(release.charged):
            raise _wrong(self.number, "does not charge every budget of its data set once")
        for budget in budgets:
            buckets, cost = release.charged[budget.name]
            if tuple(buckets) != _buckets(budget, release):
                raise _wrong(self.number, f"charges the wrong days to {budget.name!r}")
            if not at_least(cost, budget.limit.cost(self.plan(release.plan))):
                self._too_dear(release.id, f"charges less to {budget.name!r} than its plan costs")
        if self.state.refusing_budget(release.charged):
            self._too_dear(release.id, "charges more than a budget admits")

    def _check_charged(self, line: Mapping[str, Any], known: People) -> None:
        if line["charge"] != known.charges + 1:
            raise _wrong(self.number, "charges people out of order")
        if not at_least(line["cost"], known.cost(self.plan(line["plan"]))):
            of = f"charge {line['charge']} of {known.name!r}"
            self._too_dear(of, "charges people less than its plan costs")

    def _too_dear(self, of: str, what: str) -> None:
        wrong = _wrong(self.number, what)
        if self._dearer is None:
            raise wrong
        self._dearer[of] = (*self._dearer.get(of, ()), str(wrong))

    def _check_carried(self, budget: BudgetRecord, carried: Mapping[str, list[int]]) -> None:
        due = State()
        for release in self.state.releases.values():
            if release.dataset == budget.dataset and not release.withdrawn:
                for bucket in _buckets(budget, release):
                    due.add(budget.name, bucket, budget.limit.cost(self.plan(release.plan)))
        for (_, bucket), cost in due.spent.items():
            if not at_least(carried.get(bucket, []), cost):
                self._too_dear(f"budget {budget.name!r}", "leaves out the cost of earlier releases")

    def _check_returned(self, line: Mapping[str, Any]) -> None:
        release = self.state.releases[line["release"]]
        unused = release.status is Status.RESERVED and line["status"] == Status.ABANDONED
        unused = line["ran"] == NOTHING and (unused or release.status is Status.REQUESTED)
        if not (release.journal or unused) and (line["returned"] or line["ran"]):
            raise _wrong(self.number, "gives back without a journal")
        for name, given in line["returned"].items():
            limit, whole = self.state.budgets[name].limit, release.cost(name)
            nothing = (0,) * len(whole)
            ran = nothing if line["ran"] == NOTHING else limit.cost(self.plan(line["ran"]))
            if not at_least(unspent(whole, ran), tuple(given)):
                self._too_dear(
                    release.id,
                    f"gives back more to {name!r} than the cost of what did not run",
                )

    def plan(self, digest: str) -> Plan:
        """Return a plan that a line names."""
        if digest not in self._plans:
            raise _wrong(self.number, "names a plan that is missing")
        return self._plans[digest]

    def compare(self, head: Any) -> None:
        """Hold the tables against what the log adds up to.

        Raises:
            TamperedError: naming a row that differs.
        """
        same = (head.hash, head.book) == (self.head, self.book)
        _require_lines(head.lines, self.number, same=same)
        if head.made != self.made:
            raise TamperedError("the book's time is not that of the last line of its log.")
        for table in databases.UPSERT:
            keys = {key for name, key in self.state.changed if name == table}
            due = {_named(row): row for row in (store.row(self.state, table, k) for k in keys)}
            for found in self._connection.execute(text(f"SELECT * FROM {table}")).mappings():
                row = dict(found)
                if due.pop(_named(row), None) != row:
                    raise TamperedError(f"{table} {_named(row)} does not agree with the log.")
            if due:
                raise TamperedError(
                    f"{table} {next(iter(due))} is in the log but not in the table."
                )


def _named(row: Mapping[str, Any]) -> str:
    if "bucket" in row:
        return f"{row['budget']} in {row['bucket']}"
    return str(row.get("id") or row.get("name"))


def _buckets(budget: BudgetRecord, release: Release) -> tuple[str, ...]:
    day = datetime.fromisoformat(release.made).date()
    return charged_buckets(budget.window, span_of(release.period, day), day)


def at_least(given: Sequence[int], due: Cost) -> bool:
    """Tell whether whole numbers are those that are due, but for another machine's rounding."""
    pairs = zip(given, due, strict=True) if len(given) == len(due) else [(-1, 0)]
    return all(own + own // _ROUNDING + 1 >= one for own, one in pairs)


def _wrong(number: int, what: str) -> InputError:
    return TamperedError(f"line {number + 1} of the book's log {what}.")
