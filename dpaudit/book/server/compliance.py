"""What was released in a period, what it cost, who answers for it: a report to print and file.

``dpaudit book report`` and the server's page make it, from the book's log as
:class:`~dpaudit.book.state.State` reads it. It says whether the book was recomputed for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.book import (
    Book,
    BudgetRecord,
    Release,
    RemainingBudget,
    remaining_budgets,
    verify_book,
)
from dpaudit.book.databases import Seen, last_seen
from dpaudit.book.server.templating import render_page, style
from dpaudit.book.state import State
from dpaudit.reporting.pdf.renderer import typeset

_MOST_ROWS = 2000


@dataclass(frozen=True)
class Use:
    """A budget in a period: the share that was charged within it, and what is used of it today."""

    budget: BudgetRecord
    over: str
    reached: str
    used: str
    charged: str


@dataclass(frozen=True)
class Compliance:
    """The facts of the report.

    Attributes:
        first: day of the period.
        last: day of the period.
        made: the day on which the report is made.
        rooms: the data sets, with how each budget was used.
        releases: of the period, in their order; at most 2000.
        counts: how many there are, by the word for their state.
        approved: how many of them somebody approved.
        refused: how often a budget refused in the period.
        barred: how often somebody tried what they may not.
        seen: identifier, lines and hash of the book's log.
        verified: what verification found; None where it was not asked for.
    """

    first: date
    last: date
    made: date
    rooms: Sequence[tuple[RemainingBudget, Sequence[Use]]]
    releases: Sequence[Release]
    counts: Counter[str]
    approved: int
    refused: int
    barred: int
    seen: Seen
    verified: str | None

    @property
    def title(self) -> str:
        """What it is called."""
        names = ", ".join(known.dataset.name for known, _ in self.rooms)
        about = names if len(self.rooms) <= 3 else f"{len(self.rooms)} data sets"
        return f"Privacy report of {about}: {self.first} to {self.last}"

    def html(self, *, alone: bool = False) -> str:
        """Return the page; alone it carries its style, to be kept as a file."""
        return render_page("compliance", report=self, css=style() if alone else None)

    def pdf(self) -> bytes:
        """Return the page on paper.

        Raises:
            UnsupportedError: if the extra ``dpaudit[pdf]`` is not installed.
        """
        return typeset(self.html(alone=True))


def compliance(
    book: Book, first: str, last: str, *, dataset: str = "", verify: bool = True
) -> Compliance:
    """Return the report on a period.

    Args:
        book: the book.
        first: day of the period, as 2026-01-01.
        last: day of the period.
        dataset: name of one; all if empty.
        verify: whether to recompute the whole book, so that the report may say that it holds.

    Raises:
        InputError: if a day is none, or there is no such data set.
        TamperedError: if the book does not hold.
    """
    days = _days(first, last)
    rooms = remaining_budgets(book, dataset or None)
    facts = verify_book(book) if verify else None
    with book.reading() as connection:
        seen, state = last_seen(connection), State.of_log(connection)
    found = [
        each
        for each in state.releases.values()
        if _within(each.made, days) and dataset in ("", each.dataset)
    ]
    times: Counter[str] = Counter()
    for each in state.refusals:
        if _within(each.day, days) and (not dataset or each.dataset in ("", dataset)):
            times[each.event] += each.times
    counts = [each for each in found if not each.withdrawn]
    return Compliance(
        *days,
        book.today,
        tuple((each, tuple(_uses(each, counts))) for each in rooms),
        tuple(found[:_MOST_ROWS]),
        Counter(each.word for each in found),
        sum(1 for each in found if each.approved),
        times["refused"],
        times["barred"],
        seen,
        None
        if facts is None
        else f"{facts['lines']} lines are intact, and every sum agrees with them",
    )


def write(path: Path, report: Compliance) -> Path:
    """Write the report as ``.html`` or ``.pdf``.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    if path.name.endswith(".pdf"):
        return files.write(path, report.pdf())
    if not path.name.endswith(".html"):
        raise InputError(f"output {files.shown(path)} must end in .html or .pdf.")
    return files.write(path, report.html(alone=True))


def _days(first: str, last: str) -> tuple[date, date]:
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        days = date.max, date.min
    if days[0] > days[1]:
        told = shown(f"{first}..{last}")
        raise InputError(f"period is {told}; it must be two days in order, such as 2026-01-31.")
    return days


def _within(at: str, days: tuple[date, date]) -> bool:
    return days[0].isoformat() <= at[:10] <= days[1].isoformat()


def _uses(known: RemainingBudget, releases: Sequence[Release]) -> Iterator[Use]:
    for own in known.left:
        limit, name = own.budget.limit, own.budget.name
        costs = [each.cost(name) for each in releases if name in each.charged]
        total = list(map(sum, zip(*costs, strict=True))) or [0] * len(limit.bounds)
        yield Use(own.budget, own.over, own.described, own.used, limit.used(total))
