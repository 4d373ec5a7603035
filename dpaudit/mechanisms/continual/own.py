"""Factorisations of one's own: C by its entries, as a search for small errors finds them.

What a plan names are numbers alone. C has no negative entry, and none of such a size that B = A C⁻¹
loses its digits: noise by another B is another mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Finite
from dpaudit.mechanisms.base import Norm
from dpaudit.mechanisms.continual.factorization import Factorization, heaviest_patterns
from dpaudit.mechanisms.continual.toeplitz import Toeplitz, distance_of_first
from dpaudit.mechanisms.pairs import Floats

_MOST_COEFFICIENTS, _MOST_ROWS = 10**4, 500
_LEAST, _LARGEST = 1e-9, 1e9
"""Of the first coefficient, and of the diagonal; no entry is larger."""
_MOST_GROWTH = 1e6
"""How much larger the terms of B C may be than A: so many digits of B are lost."""


def _require_first(name: str, value: float) -> None:
    if not _LEAST <= value <= _LARGEST:
        raise InputError(f"{name} is {value:g}; it must be from {_LEAST:g} to {_LARGEST:g}.")


@dataclass(frozen=True)
class OwnToeplitz(Toeplitz):
    """C is a Toeplitz matrix of coefficients of one's own, or its inverse is one.

    Coefficients of C must not be negative and never increase, as Choquette-Choo et al. 2023 find
    them, *(Amplified) banded matrix factorization*. Let (1 − x) C(x) = c₀ − Σ d_k x^k, so
    that d ≥ 0 and Σ d ≤ c₀: those of B = A C⁻¹ are then a renewal series, from 0 to 1/c₀.

    Coefficients of C⁻¹ (Kalinin, McMahan and Upadhyay 2025, *Back to square roots*) must be
    negative or 0 but for the first, with a sum of at least 0. So C has no negative entry, and none
    above its first. Where they increase, the least column above them that never does stands for
    them if there are several participations: an upper bound, as more in an entry moves C x further.

    Attributes:
        coefficients: the first column of C, or of C⁻¹, from the diagonal on; what follows is 0.
        inverse: whether they are those of C⁻¹.

    >>> round(OwnToeplitz(8, (1.0, 0.5, 0.25)).sensitivity(2, min_separation=4), 12)
    1.620185174602
    >>> OwnToeplitz(8, (1.0, -1.0), inverse=True).encoder_column().tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    kind: ClassVar[str] = "own-toeplitz"
    coefficients: tuple[Finite, ...]
    inverse: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        first, *others = self.coefficients or (0.0,)
        if len(others) >= _MOST_COEFFICIENTS:
            raise InputError(f"coefficients has {len(others) + 1} numbers; it takes at most 10000.")
        _require_first("the first of coefficients", first)
        if self.inverse and (max(others, default=0) > 0 or math.fsum(self.coefficients) < 0):
            raise InputError(
                "coefficients of C⁻¹ must be at most 0 after the first, and add up to at least 0."
            )
        if not self.inverse and any(low < high for low, high in pairwise((first, *others, 0.0))):
            raise InputError("coefficients of C must not be negative, and never increase.")

    @property
    def bandwidth(self) -> int:
        """The coefficients of C; of an inverse there may be any number of them."""
        return self.steps if self.inverse else min(len(self.coefficients), self.steps)

    def _padded(self, column: Any) -> Floats:
        padded = np.zeros(self.steps)
        padded[: len(column)] = column[: self.steps]
        return padded

    def encoder_column(self) -> Floats:
        """The coefficients, or the series of which they are the inverse: sums of positive terms."""
        return self._series.copy() if self.inverse else self._padded(self.coefficients)

    @cached_property
    def _series(self) -> Floats:
        from scipy.signal import lfilter

        series: Floats = lfilter([1.0], self.coefficients, np.eye(1, self.steps)[0])
        return series

    def decoder_column(self) -> Floats:
        """Sums of those of C⁻¹, or the series of 1/((1 − x) C(x))."""
        from scipy.signal import lfilter

        if self.inverse:
            return np.cumsum(self._padded(self.coefficients))
        falls = np.diff([0.0, *self.coefficients, 0.0])
        series: Floats = lfilter([1.0], falls, np.eye(1, self.steps)[0])
        return series

    def _l2_sensitivity(self, count: int, gap: int) -> float:
        column = self.encoder_column()
        if count > 1:
            column = np.maximum.accumulate(column[::-1])[::-1]
        return distance_of_first(column, count, gap)

    def _rounded_up(self, sensitivity: float) -> float:
        """Each term of the series is a sum of rounded products of those before."""
        terms = len(self.coefficients) if self.inverse else 1
        return sensitivity * (1 + self.steps * terms * 2.0**-50)

    def work(self, participations: int, min_separation: int, norm: Norm) -> float:
        """Each coefficient at each step."""
        return super().work(participations, min_separation, norm) + self.steps * len(
            self.coefficients
        )


def _not_negative(**field: Any) -> float:
    if (value := validate.non_negative(**field)) > _LARGEST:
        raise InputError(f"rows has the entry {value:g}; it must be at most {_LARGEST:g}.")
    return value


@dataclass(frozen=True)
class OwnMatrix(Factorization):
    """C is a lower-triangular matrix of one's own, without a negative entry.

    Let X = CᵀC, of which no entry is negative. A pattern S moves C x by Σ X_ij over i and j of S,
    squared, at most. That is exact for one participation, for exact periods, and where the columns
    of steps that far apart have no row in common: so for matrices of at most ``min_separation``
    diagonals. Else it is at most Σ_{i ∈ S} r_i, with r_i the largest Σ_{j ∈ S'} X_ij of all
    patterns S' that i is in (Choquette-Choo et al. 2023, *(Amplified) banded matrix factorization*,
    Section 3), and both are the largest by going through the steps once for each participation.

    Attributes:
        rows: the rows of C up to their diagonal: of 1, 2, …, T numbers, at most 500.

    >>> round(OwnMatrix(((1.0,), (0.5, 1.0), (0.0, 0.5, 1.0))).sensitivity(2, 2), 12)
    1.5
    """

    kind: ClassVar[str] = "own-matrix"
    steps: int = field(init=False, repr=False, compare=False)
    rows: tuple[tuple[Annotated[float, _not_negative], ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.rows) <= _MOST_ROWS:
            raise InputError(f"rows has {len(self.rows)} rows; it takes 1 to {_MOST_ROWS}.")
        for number, row in enumerate(self.rows, 1):
            if len(row) != number:
                raise InputError(f"row {number} of rows must have {number} numbers.")
            _require_first(f"the last of row {number} of rows", row[-1])
        self._set("steps", len(self.rows))
        if not (np.abs(self._inverted) @ self._matrix).max() <= _MOST_GROWTH:
            raise InputError(
                "rows is a matrix whose inverse has entries too large for floats; a matrix "
                "whose columns never increase does not have this problem."
            )

    @cached_property
    def _matrix(self) -> Floats:
        matrix = np.zeros((self.steps, self.steps))
        for number, row in enumerate(self.rows, 1):
            matrix[number - 1, :number] = row
        return matrix

    @cached_property
    def _inverted(self) -> Floats:
        """B with B C = A, by substitution."""
        from scipy.linalg import solve_triangular

        with np.errstate(over="ignore", invalid="ignore"):
            solved = solve_triangular(self._matrix.T, np.tri(self.steps).T, check_finite=False)
        return np.tril(np.asarray(solved, dtype=np.float64).T)

    @property
    def bandwidth(self) -> int:
        """From the entries."""
        rows, columns = np.nonzero(self._matrix)
        return int((rows - columns).max()) + 1

    def _column_sums(self) -> Floats:
        return np.asarray(self._matrix.sum(axis=0), dtype=np.float64)

    def _l2_sensitivity(self, count: int, gap: int) -> float:
        moved, at = self._matrix.T @ self._matrix, np.arange(self.steps)
        near = np.abs(at[:, None] - at) < gap
        rows = np.diag(moved) + heaviest_patterns(np.where(near, 0.0, moved), count - 1, gap)
        return math.sqrt(heaviest_patterns(rows[None], count, gap)[0])

    def _cyclic_l2(self, count: int, gap: int) -> float:
        starts = range(self.steps)  # of the last ones fewer steps fit
        sums = [self._matrix[:, start::gap][:, :count].sum(axis=1) for start in starts]
        return float(np.linalg.norm(sums, axis=1).max())

    def _row_energy(self) -> Floats:
        return np.asarray((self._inverted**2).sum(axis=1), dtype=np.float64)

    def encoder(self) -> Floats:
        """The rows, with zeros after them."""
        return self._matrix.copy()

    def decoder(self) -> Floats:
        """A C⁻¹."""
        return self._inverted.copy()

    def work(self, participations: int, min_separation: int, norm: Norm) -> float:
        """A pass over all entries for each participation."""
        count, _ = self._pattern(participations, min_separation)
        return (50.0 + 10 * count) * self.steps**2
