"""Toeplitz factorisations, and the optimal one among them: the square root.

A matrix is its first column, which must not be negative and never increase: then the first steps of
a pattern are the worst, and the sensitivity is exact.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpaudit.base.fields import Count
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.pairs import Floats

_BLOCK = 64


@dataclass(frozen=True)
class Toeplitz(Factorization):
    """C is a lower-triangular Toeplitz matrix with a non-negative column that never increases.

    The L2 sensitivity is exact for any number of participations: the worst pattern starts at once
    and is as dense as it may be (Kalinin and Lampert 2024, "Banded square root matrix
    factorization for differentially private model training", Theorem 2).
    """

    @abstractmethod
    def encoder_column(self) -> Floats:
        """First column of C, shape (T,): decreasing, from 1."""

    @abstractmethod
    def decoder_column(self) -> Floats:
        """First column of B, shape (T,), from 1."""

    def _l2_sensitivity(self, count: int, gap: int) -> float:
        column = self.encoder_column()
        rows = -(-self.steps // gap)
        padded = np.zeros((rows, gap))
        padded.flat[: self.steps] = column
        summed = np.cumsum(padded, axis=0)
        if count < rows:
            summed[count:] -= summed[:-count].copy()
        return float(np.linalg.norm(summed.flat[: self.steps]))

    def _column_sums(self) -> Floats:
        return np.cumsum(self.encoder_column())[::-1]

    def _row_energy(self) -> Floats:
        return np.cumsum(self.decoder_column() ** 2)

    def encoder(self) -> Floats:
        """C from its first column."""
        return lower_toeplitz(self.encoder_column())

    def decoder(self) -> Floats:
        """B from its first column."""
        return lower_toeplitz(self.decoder_column())


@dataclass(frozen=True)
class SquareRootToeplitz(Toeplitz):
    """B = C = √A, with coefficients f_k = binom(2k, k)/4^k, those of 1/√(1 − x).

    Fichtenberger, Henzinger and Upadhyay 2023, "Constant matters" (Henzinger, Upadhyay and
    Upadhyay 2023 for the mean error). Its largest error is within an additive constant of the
    least that any factorisation has, (ln T)/π + 1.07 times the noise for μ = 1.

    The noise of a step depends on all node noise so far: the stream keeps O(T) arrays and spends
    O(T) operations a step, by blocks of 64 steps in one matrix product. For long streams take
    :class:`~dpaudit.mechanisms.continual.BufferedToeplitz`.

    >>> tree = SquareRootToeplitz(1024)
    >>> round(tree.max_error(tree.sensitivity()), 3)
    3.273
    """

    kind: ClassVar[str] = "square-root-toeplitz"

    @cached_property
    def _coefficients(self) -> Floats:
        ratios = 1 - 0.5 / np.arange(1, self.steps)
        return np.concatenate([[1.0], np.cumprod(ratios)])

    def encoder_column(self) -> Floats:
        """f_k = f_{k−1} (1 − 1/2k)."""
        return self._coefficients.copy()

    def decoder_column(self) -> Floats:
        """Return that of C, as B = C."""
        return self.encoder_column()


@dataclass(frozen=True)
class BandedToeplitz(Toeplitz):
    """C = √A cut to its first diagonals, and B = A C⁻¹.

    Kalinin and Lampert 2024, "Banded square root matrix factorization for differentially private
    model training". Participations that are at least ``bands`` steps apart move other nodes, so
    that k of them cost √k times one, and may be sampled one by one (see the sampling scheme
    ``cyclic-poisson``).

    Attributes:
        steps: length T of the stream.
        bands: how many diagonals of C are not 0; one is noise on each step alone.
    """

    kind: ClassVar[str] = "banded-toeplitz"
    bands: Count

    @property
    def bandwidth(self) -> int:
        """The bands, of which a short stream has fewer."""
        return min(self.bands, self.steps)

    def encoder_column(self) -> Floats:
        """Coefficients of the square root, then zeros."""
        column = np.zeros(self.steps)
        column[: self.bandwidth] = SquareRootToeplitz(self.bandwidth).encoder_column()
        return column

    def decoder_column(self) -> Floats:
        """The series of 1/((1 − x) C(x))."""
        from scipy.signal import lfilter

        impulse = np.eye(1, self.steps)[0]
        solved = lfilter([1.0], self.encoder_column()[: self.bandwidth], impulse)
        return np.cumsum(np.asarray(solved, dtype=np.float64))


def lower_toeplitz(column: Floats) -> Floats:
    """The lower-triangular Toeplitz matrix with that first column."""
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, column[lag], 0.0)
