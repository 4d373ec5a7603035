"""What a client sends: a vector whose noise is isotropic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from private_bo.gp.types import Array
from private_bo.joint.noise import lemma_5_sigmas
from private_bo.joint.statistics import CentredStatistics, Encoding, Sums


@dataclass(frozen=True)
class PackedStatistics(CentredStatistics):
    """The same as a vector: the upper triangle of w φφᵀ, times √2 off the diagonal, and v φ.

    It is an isometry of the matrix form, so that the sensitivity is the same.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(m(m+1)/2 + m,), or (m,) where no matrix is released."""
        return _packed_shape(self.size) if self.has_matrix else (self.size,)

    @cached_property
    def scale(self) -> Array:
        """Weight of each entry of the triangle: w, times √2 off the diagonal, (m(m+1)/2,)."""
        rows, columns = np.triu_indices(self.size)
        return self.matrix_weight * np.where(rows == columns, 1.0, math.sqrt(2))

    def encode(self, phi: Array, reward: float) -> Array:
        """One contribution as a vector: the weighted triangle of φφᵀ, if released, then v φ."""
        column = self.value(reward) * phi
        if not self.has_matrix:
            return column
        return np.concatenate([triangle(phi) * self.scale, column])

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """Undo the weights; the noise is scaled with them."""
        if not self.has_matrix:
            return Sums(rounds, total, None, deviation, math.inf)
        packed, vector = total[: -self.size], total[-self.size :]
        noise = deviation / self.matrix_weight / math.sqrt(2)
        return Sums(rounds, vector, symmetric(packed / self.scale, self.size), deviation, noise)


@dataclass(frozen=True)
class Lemma5Statistics(Encoding):
    """φφᵀ with i.i.d. lower triangle and yφ, in units of the deviations of Lemma 5.

    So the release is one Gaussian mechanism with σ = 1. For features of cosine k and y' = −y = ±L,
    the squared distance is at most 2(1 − k²)/σ_X² + 2L²(1 + k)/σ_u², reached for features whose
    outer products differ on the diagonal alone; its largest value is at k = L²σ_X²/2σ_u² or at 1.

    Attributes:
        sigma_x: σ_X, deviation of the noise of an entry of φφᵀ.
        sigma_u: σ_u, of an entry of yφ.
        reward_bound: L, to which rewards are clipped.
    """

    sigma_x: float
    sigma_u: float
    reward_bound: float

    @classmethod
    def of_lemma(cls, size: int, epsilon: float, delta: float, norm_bound: float) -> Self:
        """With the deviations of the lemma for m features, (α, β) and |f| <= B."""
        return cls(size, *lemma_5_sigmas(epsilon, delta, bound=norm_bound, size=size))

    @property
    def shape(self) -> tuple[int, ...]:
        """(m(m+1)/2 + m,)."""
        return _packed_shape(self.size)

    def encode(self, phi: Array, reward: float) -> Array:
        """The triangle over σ_X, then the vector over σ_u."""
        clipped = min(self.reward_bound, max(-self.reward_bound, reward))
        return np.concatenate([triangle(phi) / self.sigma_x, clipped / self.sigma_u * phi])

    def squared_distance(self, k: float) -> float:
        """The largest squared distance for features of cosine k."""
        matrix = 2 * (1 - k * k) / self.sigma_x**2
        return matrix + 2 * self.reward_bound**2 * (1 + abs(k)) / self.sigma_u**2

    @property
    def worst_cosine(self) -> float:
        """The cosine k of the features of two users who are farthest apart."""
        return min(1.0, (self.reward_bound * self.sigma_x / self.sigma_u) ** 2 / 2)

    @property
    def sensitivity(self) -> float:
        """The root of the largest squared distance."""
        return math.sqrt(self.squared_distance(self.worst_cosine)) * (1 + 1e-14)

    @property
    def orthogonal_sensitivity(self) -> float:
        """The distance of users with orthogonal features, which is not the largest."""
        return math.sqrt(self.squared_distance(0.0))

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """The sums in the paper's units, with deviations σ_X and σ_u of each user's noise."""
        matrix = symmetric(total[: -self.size] * self.sigma_x, self.size)
        vector = total[-self.size :] * self.sigma_u
        return Sums(rounds, vector, matrix, deviation * self.sigma_u, deviation * self.sigma_x)


def _packed_shape(size: int) -> tuple[int, ...]:
    return (size * (size + 1) // 2 + size,)


def triangle(phi: Array) -> Array:
    """The upper triangle of φφᵀ, (m(m+1)/2,), row by row."""
    rows, columns = np.triu_indices(len(phi))
    upper: Array = phi[rows] * phi[columns]
    return upper


def symmetric(upper: Array, size: int) -> Array:
    """The symmetric matrix (m, m) with that upper triangle."""
    rows, columns = np.triu_indices(size)
    matrix = np.empty((size, size))
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix
