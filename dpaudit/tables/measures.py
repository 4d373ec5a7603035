"""What an engine computes of a table: whole numbers, of rows of which a bounded part counts.

A query says its measures once, as SQL over the carriers of the columns; an engine computes them.
One unit moves them by no more than the selection allows, whatever its rows hold.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Aggregate(StrEnum):
    """What is computed of the rows that count, for each cell."""

    ROWS = "rows"
    UNITS = "units"
    """How many units have a row there."""
    SUM = "sum"
    BINS = "bins"
    """How many rows lie in each bin of a value."""
    KEYS = "keys"
    """How many units have each key, of keys that nobody lists."""


@dataclass(frozen=True)
class Selection:
    """Which rows count, and in which cell.

    Attributes:
        where: condition in SQL; of a row for which it is NULL nothing counts.
        cell: number of the cell in SQL, below ``cells``; of keys that nobody lists a list of texts.
        cells: how many there are; 0 for keys that nobody lists.
        rows: how many rows of a unit count, at most; None where it does not matter.
        groups: in how many cells rows of a unit count, at most; None where it does not matter.
    """

    where: str = "true"
    cell: str = "0"
    cells: int = 1
    rows: int | None = None
    groups: int | None = None


@dataclass(frozen=True)
class Measure:
    """One array of whole numbers, or counts of keys.

    Attributes:
        at: label of the releases that are made of it.
        selection: of the rows.
        aggregate: of these.
        value: SQL of what is summed, or of the number of a bin.
        bins: how many of these there are.
    """

    at: str
    selection: Selection
    aggregate: Aggregate
    value: str = ""
    bins: int = 1


Key = tuple[str, ...]
BEYOND = 2.0**-64
"""Unit in which distances outside a range are summed: no sum of floats of 2^64 rows is infinite."""


@dataclass(frozen=True)
class Range:
    """What the range of a column did to its values, for the owner alone.

    Attributes:
        values: how many there are.
        steps: their sum within the range, in steps.
        beyond: the sum of their distances outside the range, in the unit of the column and of
            :data:`BEYOND`.
    """

    values: int = 0
    steps: int = 0
    beyond: float = 0.0

    def __add__(self, other: Range) -> Range:
        return Range(
            self.values + other.values, self.steps + other.steps, self.beyond + other.beyond
        )

    def means(self, step: Fraction) -> tuple[float, float]:
        """The mean as read, and the mean within the range."""
        within = self.steps * step / self.values
        read = within + Fraction(self.beyond) / Fraction(BEYOND) / self.values
        most = Fraction(sys.float_info.max)
        return float(min(max(read, -most), most)), float(within)


@dataclass(eq=False)
class Measured:
    """What an engine found.

    Attributes:
        integers: by label, whole numbers of shape (cells, bins), Python's own, of any size.
        keys: by label, counts of keys that nobody lists.
        rows: of the table, by what became of them, for the owner alone.
        ranges: by column of numbers, what its range did, for the owner alone.
        dropped: rows that the bounds left out, by label, for the owner alone.
        unbounded: the integers as they would be without bounds on rows and groups of a unit, where
            they are counts and sums, for the owner alone.
    """

    integers: dict[str, NDArray[Any]] = field(default_factory=dict)
    keys: dict[str, dict[Key, int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    unbounded: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, other: Measured) -> None:
        """Add what was found in other units' rows."""
        for own, more in ((self.integers, other.integers), (self.unbounded, other.unbounded)):
            for at, found in more.items():
                own[at] = own[at] + found if at in own else found
        for at, counts in other.keys.items():
            known = self.keys.setdefault(at, {})
            for key, count in counts.items():
                known[key] = known.get(key, 0) + count
        for mine, others in ((self.rows, other.rows), (self.dropped, other.dropped)):
            for name, count in others.items():
                mine[name] = mine.get(name, 0) + count
        for name, each in other.ranges.items():
            self.ranges[name] = self.ranges.get(name, Range()) + each


def empty(measure: Measure) -> NDArray[Any]:
    """Zeros of the shape of a measure."""
    shape = (measure.selection.cells, measure.bins)
    zeros: NDArray[Any] = np.zeros(shape, dtype=object)
    return zeros


def nothing(measures: Sequence[Measure]) -> Measured:
    """What is found of no rows."""
    found = Measured(rows={"rows": 0, "rows without a unit": 0})
    for measure in measures:
        if measure.aggregate is Aggregate.KEYS:
            found.keys[measure.at] = {}
            continue
        found.integers[measure.at] = empty(measure)
        if measure.aggregate in (Aggregate.ROWS, Aggregate.SUM):
            found.unbounded[measure.at] = empty(measure)
    return found
