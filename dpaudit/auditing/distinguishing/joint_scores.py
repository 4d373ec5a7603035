"""Entries that tell only together: by covariances, by a product, by the parity of signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.distinguishing.screening import differences
from dpaudit.mechanisms.pairs import Floats

MOST_TOGETHER = 64
"""Entries that are looked at; of more, those that differ most."""
RUNS_AN_ENTRY = 5
MOST_PAIRED = 1000
"""Entries of which pairs are looked at."""
MOST_SIGNS = 256
"""Entries of whose signs a parity is looked for."""
_CLEAR = 5.0
"""Standard errors by which the product of signs differs, as there are many pairs."""
_SPARE = 40
"""Equations more than unknowns, so that chance solves them with a probability of 2^-40."""
_LEAST = 1e-10
"""Of the widest direction, below which a width is one of rounded numbers."""


def together(x: Floats, x_prime: Floats) -> Iterator[Score]:
    """Scores of entries that tell only together, from a pilot of shape (n, …) on either side."""
    for fit in (NormalScore.fit, PairScore.fit, ParityScore.fit):
        score = fit(x, x_prime)
        if score is not None:
            yield score


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
        size = min(MOST_TOGETHER, one.shape[1], len(one) // RUNS_AN_ENTRY)
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


@dataclass(frozen=True)
class PairScore:
    """The product of the signs of two entries.

    Attributes:
        places: of the two.
        centre: of each.
    """

    places: tuple[int, int]
    centre: tuple[float, float]
    method: str = "learned score (product of two entries)"

    @property
    def name(self) -> str:
        """Which entries."""
        first, second = self.places
        return f"product of the signs of entries {first} and {second}"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """Of the two whose product differs most between the sides; None if none clearly does."""
        sides = [side.reshape(len(side), -1) for side in (x, x_prime)]
        if not 2 <= sides[0].shape[1] <= MOST_PAIRED:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.median(np.concatenate(sides), axis=0)
        means = [signs.T @ signs / len(signs) for signs in (_signs(s, centre) for s in sides)]
        changed = np.triu(np.abs(means[0] - means[1]), 1)
        first, second = map(int, np.unravel_index(int(changed.argmax()), changed.shape))
        if changed[first, second] < _CLEAR * math.sqrt(2 / len(x)):
            return None
        return cls((first, second), (float(centre[first]), float(centre[second])))

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output, shape (n,)."""
        entries = outputs.reshape(len(outputs), -1)[:, self.places]
        product: Floats = _signs(entries, self.centre).prod(axis=1)
        return product


def _signs(entries: Floats, centre: Any) -> Floats:
    """-1, 0 or 1 for each entry, infinities among them; 0 where the centre is NaN."""
    signs: Floats = (entries > centre) * 1.0 - (entries < centre)
    return signs


@dataclass(frozen=True)
class ParityScore:
    """The parity of how many of certain entries are above 0, solved from the pilot (mod 2).

    Attributes:
        places: of the entries.
    """

    places: tuple[int, ...]
    method: str = "learned score (parity of signs)"

    @property
    def name(self) -> str:
        """Of how many entries."""
        return f"parity of the signs of {len(self.places)} entries"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """The parity that tells every run of the pilot; None if there is none."""
        signs = [side.reshape(len(side), -1) > 0 for side in (x, x_prime)]
        size = signs[0].shape[1]
        needed = size + 1 + _SPARE
        if not 2 <= size <= MOST_SIGNS or len(x) < needed:
            return None
        rows = np.concatenate([side[:needed] for side in signs])
        table = np.c_[rows, np.ones(len(rows), bool), np.arange(len(rows)) < needed]
        found = _solved(table)
        return None if found is None else cls(tuple(np.flatnonzero(found[:-1]).tolist()))

    def __call__(self, outputs: Floats) -> Floats:
        """0 or 1 for each output, shape (n,)."""
        entries = outputs.reshape(len(outputs), -1)[:, self.places]
        return np.asarray((entries > 0).sum(axis=1) % 2, dtype=np.float64)


def _solved(table: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Solve equations mod 2, whose last column is their right side; None if nothing does."""
    size, pivots = table.shape[1] - 1, list[int]()
    for column in range(size):
        row = len(pivots)
        places = row + np.flatnonzero(table[row:, column])
        if not len(places):
            continue
        table[[row, places[0]]] = table[[places[0], row]]
        others = table[:, column].copy()
        others[row] = False
        table[others] ^= table[row]
        pivots.append(column)
    if table[len(pivots) :, -1].any():
        return None
    solution = np.zeros(size, dtype=bool)
    solution[pivots] = table[: len(pivots), -1]
    return solution
