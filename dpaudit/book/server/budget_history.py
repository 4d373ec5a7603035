"""How much of each budget was left, over time, for the pages of the server.

The log is read once, through :class:`~dpaudit.book.state.State`, and then its new lines. What is
read is believed; whether it holds, ``dpaudit book verify`` says.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from dpaudit.book import Book, BudgetRecord
from dpaudit.book.limits import EVER, Cost, share_text
from dpaudit.book.state import State, log_lines

_MOST_POINTS = 300
_MOST_ROWS = 24
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Point:
    """The rest after a day, or of a period: a share from 0 to 1, rounded down by its text."""

    at: str
    used: float

    @property
    def left(self) -> float:
        """The share that is left, for a drawing."""
        return max(0.0, 1.0 - self.used)

    @property
    def described(self) -> str:
        """How much is used, rounded up."""
        return share_text(self.used)


class BudgetHistory:
    """The charges of budgets that never begin again, by day; of the others the sums.

    The log is only ever added to, so that what was read of it stays so.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._state = State()
        self._number = 0
        self._days: dict[str, dict[str, Cost]] = {}
        """By budget for ever what was charged until the end of each day on which it changed."""
        self._lock = threading.RLock()

    def read(self) -> None:
        """Read what was added since the last time."""
        with self._lock, self._book.reading() as connection:
            for text in log_lines(connection, self._number):
                self._apply(json.loads(text))
                self._number += 1

    def of(self, budget: BudgetRecord) -> tuple[Point, ...]:
        """Give the course of a budget: so many points as can be told apart, the last among them.

        Of a budget for ever a point is a day on which it changed, of one of calendar periods a
        period, of a rolling one the window that ends on a day.
        """
        with self._lock:
            self.read()
            rows = list(self._days.get(budget.name, {}).items())
            if budget.window != EVER:
                own = sorted(bucket for name, bucket in self._state.spent if name == budget.name)
                rows = [(bucket, self._state.total(budget, bucket)) for bucket in own]
        return tuple(
            Point(at, budget.limit.share(total)) for at, total in _last(rows, _MOST_POINTS)
        )

    def _apply(self, line: Mapping[str, Any]) -> None:
        state, day = self._state, line["at"][:10]
        state.changed.clear()
        state.apply(line)
        for table, place in state.changed:
            if table == "spent" and place[1] == EVER:
                self._days.setdefault(place[0], {})[day] = state.spent[place]
        if line["event"] == "ended":  # no later line is about it
            del state.releases[line["release"]]


def _last(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Thin out a sequence: the last of each of so many stretches."""
    step = max(1, -(-len(items) // most))
    return items[::-1][::step][::-1]


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """Keep so many points as a table may have."""
    return _last(points, _MOST_ROWS)


@dataclass(frozen=True)
class Drawing:
    """A burn-down as numbers of an SVG: x from 52 to 430, y from 12 (all is left) to 152 (nothing).

    Attributes:
        line: points of the steps, as ``x,y x,y …``.
        area: the same, closed below.
        first: what stands below its left end.
        last: what stands below its right end.
    """

    line: str
    area: str
    first: str
    last: str


def drawing(points: Sequence[Point], today: str) -> Drawing | None:
    """Return the steps of what was left; None where there is nothing to draw."""
    if not points:
        return None
    last = max(points[-1].at, today) if len(points[-1].at) == len(today) else points[-1].at
    steps, corners = [*_along(points, last), 1.0], ["52,12"]
    for here, after, each in zip(steps, steps[1:], points, strict=False):
        height = 152 - 140 * each.left
        corners += [f"{52 + 378 * at:.1f},{height:.1f}" for at in (here, after)]
    line = " ".join(corners)
    return Drawing(line, f"52,152 {line} 430,152", points[0].at, last)


def _along(points: Sequence[Point], last: str) -> list[float]:
    """Tell how far along each point stands: days as the calendar has them, periods side by side."""
    if len(last) != len("2026-11-23"):
        return [n / len(points) for n in range(len(points))]
    days = [date.fromisoformat(each.at).toordinal() for each in points]
    length = max(1, date.fromisoformat(last).toordinal() - days[0])
    return [(each - days[0]) / length for each in days]
