"""What an engine computes of a table: whole numbers, of rows of which a bounded part counts.

A query says its measures once, as SQL over the carriers of the columns; an engine computes them.
One unit moves them by no more than the selection allows, whatever its rows hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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


@dataclass
class Measured:
    """What an engine found.

    Attributes:
        integers: by label, whole numbers of shape (cells, bins), Python's own, of any size.
        keys: by label, counts of keys that nobody lists.
        rows: of the table, by what became of them, for the owner alone.
        dropped: rows that the bounds left out, by label, for the owner alone.
        unbounded: the integers as they would be without bounds on rows and groups of a unit, where
            they are counts and sums, for the owner alone.
    """

    integers: dict[str, NDArray[Any]] = field(default_factory=dict)
    keys: dict[str, dict[Key, int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
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
            _added(mine, others)


def _added(mine: dict[str, int], others: Mapping[str, int]) -> None:
    for name, count in others.items():
        mine[name] = mine.get(name, 0) + count


def empty(measure: Measure) -> NDArray[Any]:
    """Zeros of the shape of a measure."""
    shape = (measure.selection.cells, measure.bins)
    zeros: NDArray[Any] = np.zeros(shape, dtype=object)
    return zeros
