"""Neighbours among data of other sizes and orders.

Where few rows are, each counts for much: a bound, a mean or a choice that is made of the data moves
far. A rule about the number of rows changes at a number that the code names; and what depends on
the order of rows shows where one is put between two others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpaudit.plan import AddRemove, Relation
from dpaudit.project import Move
from dpaudit.rehearsal.columns import Columns
from dpaudit.rehearsal.rows import added, ends, row_values, without

FEW = (2, 4)
LARGEST = 2000
"""Rows of data that are made for a number of the code."""


def few(table: Columns, relation: Relation) -> Iterator[Move]:
    """Few units of one row; or, where their number is public, all alike but for one."""
    low, top = ends(table.numbers())
    if not top:
        return
    if not isinstance(relation, AddRemove):
        alike = table.changed(np.arange(len(table)), row_values(table, 0))
        for what, values in (("largest", top), ("smallest", low)):
            yield Move(
                alike.changed([0], values),
                f"row 0 given the {what} values, as all rows are alike",
                True,
                alike,
            )
        return
    units = table.units()
    for size, first in zip(FEW, (top, low), strict=True):
        if size >= len(units):
            return
        base = table.take([int(rows[0]) for rows in units[:size]])
        base = base.changed(np.arange(len(base)), low)  # what is noisy is often below 0 there
        base = base.changed(base.units()[0], first)
        for number, rows in enumerate(base.units()[:2]):
            yield Move(without(base, rows), f"unit {number} of {size} removed", True, base)
        for what, values in (("largest", top), ("smallest", low)):
            recipe = f"a unit added to {size} with the {what} values"
            for move in added(base, [0], values, recipe, extreme=True):
                yield replace(move, base=base)


def inserted(table: Columns, relation: Relation) -> Iterator[Move]:
    """A row of the largest values between the two smallest neighbouring rows, and the reverse."""
    numbers = table.numbers()
    if not numbers or len(table) < 3 or not isinstance(relation, AddRemove):
        return
    first = next(iter(numbers.values()))
    sizes = np.nan_to_num(first.reshape(len(first), -1)[:, 0].astype(np.float64))
    sums, (low, top) = sizes[1:] + sizes[:-1], ends(numbers)
    for place, values, what in (
        (int(sums.argmin()), top, "largest values between small ones"),
        (int(sums.argmax()), low, "smallest values between large ones"),
    ):
        for move in added(table, [0], values, f"a unit of one row added, with the {what}"):
            order = np.insert(np.arange(len(table)), place + 1, len(table))
            yield replace(move, data=move.data.take(order))


def of_sizes(table: Columns, relation: Relation, constants: Sequence[float]) -> Iterator[Move]:
    """A row less where there are as many as a number of the code says, or one more; or half of it.

    All rows are of one category, and the one that leaves has the largest numbers and comes first.
    """
    if not isinstance(relation, AddRemove):
        return
    numbers = table.numbers()
    words = {name: each for name, each in row_values(table, 0).items() if name not in numbers}
    low, top = ends(numbers)
    sizes = {
        size: f"{size} rows, by a number of the code"
        for constant in constants
        for half in (constant / 2, constant)
        for size in (round(half), round(half) + 1)
        if 2 <= size <= LARGEST
    }
    for size, what in sizes.items():
        base = _of_size(table, size)
        if base is None or len(base.units()) < 2:
            continue
        base = base.changed(np.arange(size), words)
        first, *_, last = base.units()
        base = base.changed(last, low).changed(first, top)
        yield Move(without(base, first), f"the first of {what}, removed", False, base)


def _of_size(table: Columns, size: int) -> Columns | None:
    """So many rows, those of the table again and again as those of new units."""
    kept = min(size, len(table))
    base = table.take(np.arange(kept))
    again = np.resize(np.arange(kept), size)[kept:]
    if not len(again):
        return base
    rows = np.arange(kept, size)
    base = base.take([*range(kept), *again.tolist()])
    for name in {table.unit, table.key} - {None}:
        labels = base.unused(str(name), len(again))
        if len(labels) < len(again):
            return None
        for row, label in zip(rows, labels, strict=False):
            base = base.changed([int(row)], {str(name): label})
    return base
