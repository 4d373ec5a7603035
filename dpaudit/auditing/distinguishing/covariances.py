"""Entries that tell only together: one normal law for each side, and the ratio of the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.screening import differences
from dpaudit.mechanisms.pairs import Floats

MOST = 64
"""Entries that are looked at; of more, those that differ most."""
RUNS_AN_ENTRY = 5
_LEAST = 1e-10
"""Of the widest direction, below which a width is one of rounded numbers."""


@dataclass(frozen=True)
class NormalScore:
    """Ln of the ratio of two normal laws that are fitted to the pilot.

    It sees what no entry and no tree of entries shows: a noise that is published beside the sum
    that it was added to, or entries whose sum is exact, as directions in which hardly anything
    varies.

    Attributes:
        places: of the entries that are looked at.
        laws: of x and of x': centre, shape (d,), and what makes entries of it white, shape (d, d).
    """

    places: NDArray[np.intp] = field(repr=False, compare=False)
    laws: tuple[tuple[Floats, Floats], tuple[Floats, Floats]] = field(repr=False, compare=False)
    method: str = "learned score (normal laws)"
    name: str = "learned score"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """The score of a pilot of shape (n, …); None of single numbers, few runs or infinities."""
        one, other = (side.reshape(len(side), -1) for side in (x, x_prime))
        size = min(MOST, one.shape[1], len(one) // RUNS_AN_ENTRY)
        if size < 2 or one.shape[1] < 2:
            return None
        places = np.arange(one.shape[1])
        if size < one.shape[1]:
            places = np.argsort(-differences(one, other), kind="stable")[:size]
        chosen = one[:, places], other[:, places]
        if not all(np.abs(side).max() < 1e150 for side in chosen):
            return None
        return cls(places, (_law(chosen[0]), _law(chosen[1])))

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output, shape (n,)."""
        rows = np.nan_to_num(outputs.reshape(len(outputs), -1)[:, self.places])
        with np.errstate(over="ignore", invalid="ignore"):
            near, far = (np.square((rows - centre) @ white).sum(1) for centre, white in self.laws)
            ratio: Floats = np.nan_to_num(far - near)
        return ratio


def _law(rows: Floats) -> tuple[Floats, Floats]:
    centre = rows.mean(axis=0)
    _, widths, directions = np.linalg.svd(rows - centre, full_matrices=False)
    widths = widths / np.sqrt(len(rows))
    widths = np.maximum(widths, max(_LEAST * widths[0], 1e-150))
    return centre, directions.T / widths
