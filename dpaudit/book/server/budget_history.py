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
from dpaudit.book.limits import EVER, PERIODS, Cost, Span, share_text, span_of
from dpaudit.book.state import Place, State, log_lines

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
        self._days: dict[Place, dict[str, Cost]] = {}
        """By bucket, not of rolling windows, what was charged until each day on which it changed.
        """
        self._lock = threading.RLock()

    def read(self) -> None:
        """Read what was added since the last time."""
        with self._lock, self._book.reading() as connection:
            for text in log_lines(connection, self._number):
                self._apply(json.loads(text))
                self._number += 1

    def of(self, budget: BudgetRecord) -> tuple[Point, ...]:
        """Give the course of a budget: so many points as can be told apart, the last among them.

        Of a budget for ever, or of calendar periods of which only one was charged, a point is a day
        on which it changed; of several periods a period, of a rolling one the window that ends on a
        day.
        """
        with self._lock:
            self.read()
            only = EVER if budget.window == EVER else self._only_period(budget)
            if only:
                rows = list(self._days.get((budget.name, only), {}).items())
            else:
                own = self._buckets(budget)
                rows = [(bucket, self._state.total(budget, bucket)) for bucket in own]
        return tuple(
            Point(at, budget.limit.share(total)) for at, total in _last(rows, _MOST_POINTS)
        )

    def only_period(self, budget: BudgetRecord) -> str:
        """Return the one period, longer than a day, that was charged; empty if there is none."""
        with self._lock:
            self.read()
            return self._only_period(budget)

    def _only_period(self, budget: BudgetRecord) -> str:
        own = self._buckets(budget) if budget.window in PERIODS else []
        return own[0] if len(own) == 1 and budget.window != "day" else ""

    def _buckets(self, budget: BudgetRecord) -> list[str]:
        return sorted(bucket for name, bucket in self._state.spent if name == budget.name)

    def _apply(self, line: Mapping[str, Any]) -> None:
        state, day = self._state, line["at"][:10]
        state.changed.clear()
        state.apply(line)
        for table, place in state.changed:
            if table == "spent" and state.budgets[place[0]].window in (EVER, *PERIODS):
                self._days.setdefault(place, {})[day] = state.spent[place]
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


def drawing(points: Sequence[Point], today: str, period: str = "") -> Drawing | None:
    """Return the steps of what was left; None where there is nothing to draw.

    Args:
        points: the course.
        today: the day until which the last of them counts.
        period: whose days the axis has, if all points are days on which it was charged.
    """
    if not points:
        return None
    if not _are_days(points):
        places = [n / len(points) for n in range(len(points))]
        return _drawn(points, [*places, 1.0], (points[0].at, points[-1].at))
    last = max(points[-1].at, today)
    if not period:
        axis = points[0].at, last
        return _drawn(points, [*(_place(each.at, axis) for each in points), 1.0], axis)
    first, end = (each.isoformat() for each in _span(period))
    axis = min(first, points[0].at), max(end, points[-1].at)
    places = [_place(each.at, axis) for each in points]
    return _drawn(points, [*places, _place(min(last, axis[1]), axis)], axis)


def _drawn(points: Sequence[Point], steps: Sequence[float], axis: tuple[str, str]) -> Drawing:
    corners, along = ["52,12"], [f"{52 + 378 * at:.1f}" for at in steps]
    if steps[0]:
        corners.append(f"{along[0]},12")
    for here, after, each in zip(along, along[1:], points, strict=False):
        height = 152 - 140 * each.left
        corners += [f"{at},{height:.1f}" for at in (here, after)]
    line = " ".join(corners)
    closed = "430" if steps[-1] == 1 else along[-1]
    return Drawing(line, f"52,152 {line} {closed},152", *axis)


def _are_days(points: Sequence[Point]) -> bool:
    return len(points[0].at) == len("2026-11-23")


def _span(period: str) -> Span:
    return span_of(period, date.min)


def _place(day: str, axis: tuple[str, str]) -> float:
    """Tell how far along a day stands, as the calendar has it."""
    at, first, last = (date.fromisoformat(each).toordinal() for each in (day, *axis))
    return (at - first) / max(1, last - first)
