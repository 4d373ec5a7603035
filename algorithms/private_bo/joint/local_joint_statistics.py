"""What a client sends: a vector whose noise is isotropic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from private_bo.gp.types import Array
from private_bo.joint.noise import lemma_5_sigmas
from private_bo.joint.statistics import CentredStatistics, Sums

__all__ = ["Lemma5Statistics", "LocalStatistics", "PackedStatistics"]


class LocalStatistics(ABC):
    """One user's contribution as a flat vector."""

    size: int

    @property
    @abstractmethod
    def length(self) -> int:
        """Of the vector."""

    @abstractmethod
    def encode(self, phi: Array, reward: float) -> Array:
        """The contribution of a user with features φ and that reward, (length,)."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest distance of the contributions of two users, rounded up."""

    @abstractmethod
    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """The sums in a noisy total with noise of that deviation in every entry."""


@dataclass(frozen=True)
class PackedStatistics(LocalStatistics):
    """The upper triangle of w φφᵀ, with √2 off the diagonal, and v φ: an isometry.

    Attributes:
        inner: weights and range.
    """

    inner: CentredStatistics

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of features m."""
        return self.inner.size

    @property
    def length(self) -> int:
        """m(m+1)/2 + m, or m."""
        m = self.size
        return m * (m + 1) // 2 + m if self.inner.has_matrix else m

    @cached_property
    def _scale(self) -> Array:
        rows, columns = np.triu_indices(self.size)
        return self.inner.matrix_weight * np.where(rows == columns, 1.0, math.sqrt(2))

    def encode(self, phi: Array, reward: float) -> Array:
        """The triangle, then the vector."""
        column = self.inner.value(reward) * phi
        if not self.inner.has_matrix:
            return column
        return np.concatenate([_triangle(phi) * self._scale, column])

    @property
    def sensitivity(self) -> float:
        """That of the matrix form: distances are the same."""
        return self.inner.sensitivity

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """Undo the weights."""
        if not self.inner.has_matrix:
            return Sums(rounds, total, None, deviation, math.inf)
        triangle, vector = total[: -self.size], total[-self.size :]
        noise = deviation / self.inner.matrix_weight / math.sqrt(2)
        return Sums(rounds, vector, _full(triangle / self._scale, self.size), deviation, noise)


@dataclass(frozen=True)
class Lemma5Statistics(LocalStatistics):
    """φφᵀ with i.i.d. lower triangle and yφ, in units of the deviations of Lemma 5.

    So the release is one Gaussian mechanism with σ = 1. For features of cosine k and y' = −y = ±L,
    the squared distance is at most 2(1 − k²)/σ_X² + 2L²(1 + k)/σ_u², reached for features whose
    outer products differ on the diagonal alone; its largest value is at k = L²σ_X²/2σ_u² or at 1.

    Attributes:
        size: m.
        epsilon: α.
        delta: β.
        norm_bound: B.
    """

    size: int
    epsilon: float
    delta: float
    norm_bound: float

    @cached_property
    def _sigmas(self) -> tuple[float, float, float]:
        return lemma_5_sigmas(self.epsilon, self.delta, bound=self.norm_bound, size=self.size)

    @property
    def reward_bound(self) -> float:
        """L, to which rewards are clipped."""
        return self._sigmas[2]

    @property
    def shift_deviation(self) -> float:
        """σ_X."""
        return self._sigmas[0]

    @property
    def length(self) -> int:
        """m(m+1)/2 + m."""
        return self.size * (self.size + 1) // 2 + self.size

    def encode(self, phi: Array, reward: float) -> Array:
        """The triangle over σ_X, then the vector over σ_u."""
        sigma_x, sigma_u, bound = self._sigmas
        clipped = min(bound, max(-bound, reward))
        return np.concatenate([_triangle(phi) / sigma_x, clipped / sigma_u * phi])

    def squared_distance(self, k: float) -> float:
        """The largest squared distance for features of cosine k."""
        sigma_x, sigma_u, bound = self._sigmas
        return 2 * (1 - k * k) / sigma_x**2 + 2 * bound**2 * (1 + abs(k)) / sigma_u**2

    @property
    def sensitivity(self) -> float:
        """The root of the largest."""
        sigma_x, sigma_u, bound = self._sigmas
        worst = min(1.0, (bound * sigma_x / sigma_u) ** 2 / 2)
        return math.sqrt(self.squared_distance(worst)) * (1 + 1e-14)

    @property
    def orthogonal_sensitivity(self) -> float:
        """The distance of users with orthogonal features, which is not the largest."""
        return math.sqrt(self.squared_distance(0.0))

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """Undo the units."""
        sigma_x, sigma_u, _ = self._sigmas
        triangle, vector = total[: -self.size] * sigma_x, total[-self.size :] * sigma_u
        matrix = _full(triangle, self.size)
        return Sums(rounds, vector, matrix, deviation * sigma_u, deviation * sigma_x)


def _triangle(phi: Array) -> Array:
    rows, columns = np.triu_indices(len(phi))
    triangle: Array = phi[rows] * phi[columns]
    return triangle


def _full(triangle: Array, size: int) -> Array:
    rows, columns = np.triu_indices(size)
    matrix = np.empty((size, size))
    matrix[rows, columns] = matrix[columns, rows] = triangle
    return matrix
