"""Made-up rows of a schema, to try a release before there are data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.tables.engines.duck import Layout
from dpaudit.tables.engines.sources import CsvFile
from dpaudit.tables.schema import Column, Kind

_ROWS_OF_UNIT = 4
_EMPTY = 0.02
"""Share of values that are missing."""


@dataclass(frozen=True)
class _MadeUp(CsvFile):
    """A CSV file whose columns have names of any source: of a CSV file they are a line.

    Attributes:
        names: in the order of the file.
    """

    names: tuple[str, ...] = ()

    def _header(self) -> list[str]:
        return [*self.names]


def made_up(
    layout: Layout,
    rows: int,
    rng: np.random.Generator,
    folder: Path,
    roster: Sequence[str] = (),
) -> CsvFile:
    """A CSV file of that many rows: units with some rows each, values uniform within the schema.

    Args:
        layout: whose columns are made up; values of a join are texts that may match nothing.
        rows: how many.
        rng: of the values.
        folder: for the file.
        roster: names of the units, if they are public.
    """
    columns = [each for each in layout.columns if each.name != layout.unit]
    names = [layout.unit, *(each.name for each in columns)]
    known = roster or [f"unit {n}" for n in range(max(1, rows // _ROWS_OF_UNIT))]
    units = [known[n] for n in rng.integers(len(known), size=rows)]
    drawn = [_values(each, rows, rng) for each in columns]
    if layout.public is not None and layout.public.on not in names:
        names.append(layout.public.on)
        drawn.append([f"key {n}" for n in rng.integers(10, size=rows)])
    path = folder / "synthetic.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(range(len(names)))  # the line of a header, which is not read
        writer.writerows(zip(units, *drawn, strict=True))
    return _MadeUp(path, names=tuple(names))


def _values(column: Column, rows: int, rng: np.random.Generator) -> list[Any]:
    shape = column.shape
    if shape.values is not None:
        values = [shape.values[n] for n in rng.integers(len(shape.values), size=rows)]
    elif shape.kind is Kind.TEXT:
        values = [f"text {n}" for n in rng.geometric(0.2, size=rows)]
    else:
        steps = rng.integers(shape.low, shape.high, size=rows, endpoint=True)
        values = [shape.of_steps(int(n)) for n in steps]
    missing = rng.random(rows) < _EMPTY
    return ["" if gone else each for each, gone in zip(values, missing, strict=True)]
