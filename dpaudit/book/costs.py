"""What a release costs on its own, for people who look at it alone.

Costs add up within a limit, in the numbers of its kind; an ε that a list shows for each release
does not, which is why it is named as that of the release on its own.
"""

from __future__ import annotations

from functools import cache

from dpaudit.book.book import Book
from dpaudit.book.limits import Cost
from dpaudit.book.records import NOTHING, BudgetRecord, Release
from dpaudit.book.store import catalogue


class ReleaseCosts:
    """What releases stay charged, in words; plans of what ran are read once.

    Args:
        book: the book.
    """

    def __init__(self, book: Book) -> None:
        with book.reading() as connection:
            _, self._budgets = catalogue(connection)
        self._plan = cache(book.plan)

    def of(self, release: Release, budget: str) -> str:
        """Say what a release costs a budget on its own, less what was given back."""
        if release.ran == NOTHING:
            return "nothing"
        known = self._budgets[budget]
        return known.limit.described(self._left(release, known))

    def everywhere(self, release: Release) -> str:
        """Say what a release costs each budget that counts; once if that is the same."""
        known = {n: self.of(release, n) for n in release.charged if not self._budgets[n].retired}
        if len(set(known.values())) == 1:
            return next(iter(known.values()))
        return "; ".join(f"{name}: {cost}" for name, cost in known.items()) or "–"

    def _left(self, release: Release, budget: BudgetRecord) -> Cost:
        charged = release.cost(budget.name)
        if not release.ran:
            return charged
        return tuple(map(min, charged, budget.limit.cost(self._plan(release.ran))))
