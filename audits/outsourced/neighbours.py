"""Neighbouring data sets by name: a problem, a row, and how far that row moves.

A pair is written down in a few words, so that a certificate holds it and a replay makes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from private_bo.outsourced import Curator

Floats = NDArray[np.float64]


@lru_cache(maxsize=4)
def problem_rows(name: str) -> Floats:
    """The private rows (n, d) of a named problem, centred and scaled to norm 25, read-only.

    Raises:
        InputError: if there is no such problem, or its file is missing.
    """
    return Curator().load(name, np.random.default_rng(0)).rows


def inward(rows: Floats) -> Floats:
    """Steps of length 1 (or to the origin and beyond) towards the origin, one for each row.

    A step leaves no row outside the ball that the rows fill, so both data sets are legal.
    """
    norms = np.linalg.norm(rows, axis=1)
    first = np.zeros_like(rows)
    first[:, 0] = 1.0
    return np.where(norms[:, None] > 0, -rows / np.maximum(norms, 1e-300)[:, None], first)


@dataclass(frozen=True)
class Neighbours:
    """Two data sets that differ in one row, small enough to be written down.

    Attributes:
        problem: name of the data set x.
        row: number of the row that differs in x'.
        move: by how much, (d,), of norm at most 1.
    """

    problem: str
    row: int
    move: tuple[float, ...]

    def __post_init__(self) -> None:
        length = float(np.linalg.norm(self.move))
        if not length <= 1 + 1e-12:
            raise InputError(f"move has norm {length:.6g}; neighbours differ by at most 1.")

    @classmethod
    def of(cls, problem: str, row: int = 0) -> Neighbours:
        """The row moves by 1 towards the origin."""
        rows = problem_rows(problem)
        if not 0 <= row < len(rows):
            raise InputError(f"row is {row}; it must be from 0 to {len(rows) - 1}.")
        return cls(problem, row, tuple(inward(rows[row : row + 1])[0].tolist()))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Neighbours:
        """What :meth:`to_dict` wrote."""
        try:
            move = tuple(float(step) for step in record["move"])
            return cls(str(record["problem"]), int(record["row"]), move)
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"neighbours are {record!r:.80}; they must have problem, row and move."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Problem, row and move, as JSON values."""
        return {"problem": self.problem, "row": self.row, "move": list(self.move)}

    def data(self, *, moved: bool) -> Floats:
        """The data set x (n, d), or x' if ``moved``."""
        rows = problem_rows(self.problem)
        if not moved:
            return rows
        other = rows.copy()
        other[self.row] += self.move
        return other
