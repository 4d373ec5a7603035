"""What is left of the budgets of a data set, and how often a plan would fit.

Commands, ``dpaudit check`` and the server ask it. It takes no lock, so that it is a look, and no
promise: a release is admitted by :meth:`Book.reserve <dpaudit.book.Book.reserve>` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from dpaudit.book.book import Book
from dpaudit.book.limits import EVER, Cost, charged_buckets, days_of, joint_buckets, span_of
from dpaudit.book.records import (
    NOTHING,
    RELEASED_NOTHING,
    BudgetRecord,
    DataSet,
    Status,
)
from dpaudit.book.state import State
from dpaudit.book.store import catalogue, spent
from dpaudit.plan import Plan


@dataclass(frozen=True)
class BudgetUsage:
    """The charges of a budget, over the time (of those asked for) that is used most."""

    budget: BudgetRecord
    bucket: str
    total: Cost

    def times(self, plan: Plan) -> int | None:
        """Count how often a plan fits; None where it costs nothing."""
        return self.budget.limit.times(self.budget.limit.cost(plan), self.total)

    @property
    def over(self) -> str:
        """The time over which it adds up, in words."""
        rolling = f"the {self.budget.window} to " * bool(days_of(self.budget.window))
        return "all time" if self.bucket == EVER else f"{rolling}{self.bucket}"

    @property
    def share(self) -> float:
        """The share that is used up, rounded up."""
        return self.budget.limit.share(self.total)

    @property
    def used(self) -> str:
        """That share in words."""
        return self.budget.limit.used(self.total)

    @property
    def described(self) -> str:
        """What was charged proves, in words."""
        return self.budget.limit.described(self.total)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON record."""
        known = self.budget.to_dict() | {"bucket": self.bucket}
        share = self.share if self.share < 2**53 else None
        return known | {"reached": self.budget.limit.reached(self.total), "share": share}


@dataclass(frozen=True)
class RemainingBudget:
    """The rest of a data set's budgets, and how many releases there are.

    Attributes:
        dataset: the data set.
        left: of each budget.
        releases: how many there are by status.
        words: how many there are by the word for their state (:attr:`Release.word`).
    """

    dataset: DataSet
    left: tuple[BudgetUsage, ...]
    releases: Mapping[str, int]
    words: Mapping[str, int]

    def times(self, plan: Plan) -> int | None:
        """Count how often all budgets admit a plan; None where it costs nothing.

        Raises:
            InputError: if the plan protects something else, or a budget cannot count it.
        """
        self.dataset.require(plan)
        found = [times for each in self.left if (times := each.times(plan)) is not None]
        return min(found, default=None) if self.left else 0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON record."""
        budgets = [each.to_dict() for each in self.left]
        return self.dataset.to_dict() | {"budgets": budgets, "releases": dict(self.releases)}


def remaining_budgets(
    book: Book, dataset: str | None = None, *, period: str | None = None
) -> tuple[RemainingBudget, ...]:
    """Return what is left, of one data set or of all; a look that takes no lock.

    Args:
        book: the book.
        dataset: name of one.
        period: the days whose data would be read; today by default.

    Raises:
        InputError: if there is no such data set.
    """
    span = span_of(period, book.today)
    with book.reading() as connection:
        state = State(*catalogue(connection))
        wanted = list(state.datasets.values()) if dataset is None else [state.dataset(dataset)]
        asked = [
            (budget, bucket)
            for each in wanted
            for budget in state.budgets_of(each.name)
            for bucket in charged_buckets(budget.window, span, book.today)
        ]
        places = [(b.name, own) for b, bucket in asked for own in joint_buckets(b.window, bucket)]
        state.spent = spent(connection, places)
        counted = connection.execute(_COUNT).all()
    fullest: dict[str, BudgetUsage] = {}
    for budget, bucket in asked:
        one = BudgetUsage(budget, bucket, state.total(budget, bucket))
        fullest[budget.name] = max(fullest.get(budget.name, one), one, key=lambda own: own.share)
    return tuple(
        RemainingBudget(
            each,
            tuple(own for own in fullest.values() if own.budget.dataset == each.name),
            *_counts(row for row in counted if row.dataset == each.name),
        )
        for each in wanted
    )


def _counts(rows: Iterable[Any]) -> tuple[Counter[str], Counter[str]]:
    """Count releases by status, and by the word for their state."""
    statuses: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for row in rows:
        statuses[row.status] += row.n
        words[RELEASED_NOTHING if row.idle else Status(row.status).word] += row.n
    return statuses, words


_COUNT = text(
    "SELECT dataset, status, "
    "CASE WHEN record LIKE :idle AND status != 'denied' THEN 1 ELSE 0 END AS idle, "
    "COUNT(*) AS n FROM release GROUP BY dataset, status, idle"
).bindparams(idle=f'%"ran":"{NOTHING}"%')  # in no other field, where quotes are escaped
