"""How much of each budget was left, over time; read from the log once, then its new lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection, text

from dpaudit.book import Book, BudgetRecord
from dpaudit.book.limits import share_told

_LINES = text(
    'SELECT number, line FROM log WHERE number >= :at AND line NOT LIKE \'%"event":"anchored"%\' '
    "ORDER BY number LIMIT 10000"
)
_SPENT = text("SELECT bucket, record FROM spent WHERE budget = :budget ORDER BY bucket")
_MOST_POINTS = 300
_MOST_ROWS = 24


@dataclass(frozen=True)
class Point:
    """What is left after a day, or of a period: a share from 0 to 1, rounded down by its text."""

    at: str
    used: float

    @property
    def left(self) -> float:
        """The share that is left, for a drawing."""
        return max(0.0, 1.0 - self.used)

    @property
    def described(self) -> str:
        """How much is used, rounded up."""
        return share_told(self.used)


class BudgetHistory:
    """What was charged to budgets that never begin again, by day; of the others the book has sums.

    The log is only ever added to, so that what was read of it stays so.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._number = 0
        self._days: dict[str, dict[str, list[int]]] = {}
        self._lock = threading.Lock()

    def read(self) -> None:
        """Read what was added since the last time."""
        with self._lock, self._book.reading() as connection:
            self._read(connection)

    def of(self, budget: BudgetRecord) -> tuple[Point, ...]:
        """The course of a budget: at most so many points as can be told apart, the last among them.

        Of a budget for ever a point is a day on which it changed, of one of calendar periods a
        period, of a rolling one the window that ends on a day.
        """
        with self._lock, self._book.reading() as connection:
            self._read(connection)
            rows = list(self._rows(connection, budget))
        step = max(1, -(-len(rows) // _MOST_POINTS))
        kept = rows[::-1][::step][::-1]
        return tuple(Point(at, budget.limit.share(total)) for at, total in kept)

    def _rows(
        self, connection: Connection, budget: BudgetRecord
    ) -> Iterator[tuple[str, Sequence[int]]]:
        if budget.window == "ever":
            total: list[int] = []
            for day, change in sorted(self._days.get(budget.name, {}).items()):
                total = [a + b for a, b in zip(total or [0] * len(change), change, strict=True)]
                yield day, total
            return
        found = connection.execute(_SPENT, {"budget": budget.name})
        spent = {row.bucket: json.loads(row.record) for row in found}
        for bucket in spent:
            rows = [spent[each] for each in budget.together(bucket) if each in spent]
            yield bucket, [sum(each) for each in zip(*rows, strict=True)]

    def _read(self, connection: Connection) -> None:
        while rows := connection.execute(_LINES, {"at": self._number}).all():
            for row in rows:
                self._apply(json.loads(row.line))
            self._number = rows[-1].number + 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        day = line["at"][:10]
        if line["event"] == "budget":
            for total in (line["carried"][b] for b in line["carried"] if b == "ever"):
                self._add(line["record"]["name"], day, total)
        elif line["event"] == "reserved":
            for name, (buckets, cost) in line["record"]["charged"].items():
                if buckets == ["ever"]:
                    self._add(name, day, cost)
        elif line["event"] == "ended":
            for name, cost in line["returned"].items():
                if name in self._days:
                    self._add(name, day, [-each for each in cost])

    def _add(self, budget: str, day: str, cost: Sequence[int]) -> None:
        days = self._days.setdefault(budget, {})
        known = days.get(day)
        days[day] = (
            list(cost) if known is None else [a + b for a, b in zip(known, cost, strict=True)]
        )


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """So many as a table may have: the last of each stretch."""
    step = max(1, -(-len(points) // _MOST_ROWS))
    return points[::-1][::step][::-1]


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
    """The steps of what was left; None where there is nothing to draw."""
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
    """How far along each point stands: days as the calendar has them, periods side by side."""
    if len(last) != len("2026-11-23"):
        return [n / len(points) for n in range(len(points))]
    days = [date.fromisoformat(each.at).toordinal() for each in points]
    length = max(1, date.fromisoformat(last).toordinal() - days[0])
    return [(each - days[0]) / length for each in days]
