"""Features of any kernel on any space, and the belief that noisy values of them leave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Checked, Count, Rate
from private_bo.gp import FeatureMap, Kernel, SquaredExponential
from private_bo.gp.types import Array

_RANK = 1e-9
"""Least eigenvalue that is kept, relative to the largest: smaller ones are rounding."""


@dataclass(frozen=True, eq=False)
class LandmarkFeatures(Checked, FeatureMap):
    """A constant, and the leading eigenvectors of a kernel on public landmarks of a space.

    Φ(x) = (√s, √(1−s) Λ^(−½) Uᵀ k_G(x)) with (Λ, U) of K_GG (Nyström). The second part is a
    projection of k_x in the kernel's Hilbert space, so that ‖Φ(x)‖² <= s + (1−s) k(x, x) <= 1, the
    bound that sensitivities rest on. Nothing of it depends on data.

    Attributes:
        domain: a space.
        kernel: of points in the unit cube, to which the space's bounds are scaled.
        features: how many, at most; fewer where the kernel's eigenvalues end.
        constant: s, the prior share of a common level of the objective.
    """

    domain: Any
    kernel: Kernel = field(default_factory=lambda: SquaredExponential(0.25))
    features: Count = 40
    constant: Rate = 0.3

    @property
    def size(self) -> int:
        """m, the constant included."""
        return 1 + len(self._whitener.T)

    @cached_property
    def _whitener(self) -> Array:
        grid = self.domain.landmarks
        values, vectors = np.linalg.eigh(self.kernel(grid, grid))
        kept = min(self.features - 1, int((values > _RANK * values[-1]).sum()))
        values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
        return np.asarray(vectors * signs / np.sqrt(values))

    def __call__(self, X: Array) -> Array:
        """Features of the rows of ``X`` (n, d), in the space's units, shape (n, m)."""
        moving = self.kernel(self.domain.unit(X), self.domain.landmarks) @ self._whitener
        level = np.full((len(X), 1), math.sqrt(self.constant))
        phi = np.concatenate([level, math.sqrt(1 - self.constant) * moving], axis=1)
        # Rounding alone can take a norm above 1.
        return np.asarray(phi / np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0))

    @cached_property
    def _candidates(self) -> Array:
        return self(self.domain.candidates)

    def argmax(self, theta: Array) -> Array:
        """An allowed point where θᵀΦ is large, (d,)."""
        return np.asarray(self.domain.climb(lambda X: self(X) @ theta, self._candidates @ theta))

    @property
    def uniform_error(self) -> float:
        """Not known.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("features of landmarks have no proven error; use EigenFeatures.")


@dataclass(eq=False)
class Belief:
    """The posterior of θ ~ N(m, τ²I) under values φᵀθ + N(0, v) of known variance v.

    Values may come in any order. The evidence is the log density of all of them.

    Attributes:
        size: of θ.
        deviation: τ.
        prior: m, (size,); None for 0.
    """

    size: int
    deviation: float
    prior: Array | None = None
    evidence: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        start = np.zeros(self.size) if self.prior is None else self.prior
        self._precision = np.eye(self.size) / self.deviation**2
        self._vector = start / self.deviation**2

    @property
    def mean(self) -> Array:
        """Posterior mean of θ, (size,)."""
        return np.asarray(np.linalg.solve(self._precision, self._vector))

    def observe(self, phi: Array, value: float, variance: float) -> None:
        """Condition on one value, of features φ (size,)."""
        seen, mean = np.linalg.solve(self._precision, np.stack([phi, self._vector], axis=1)).T
        spread = variance + float(phi @ seen)
        missing = value - float(phi @ mean)
        self.evidence -= 0.5 * (missing**2 / spread + math.log(2 * math.pi * spread))
        self._precision += np.outer(phi, phi) / variance
        self._vector = self._vector + phi * (value / variance)

    def draw(self, rng: np.random.Generator, exploration: float) -> Array:
        """The mean, and ``exploration`` times the deviation of a draw of the posterior, (size,)."""
        root = np.linalg.cholesky(self._precision)
        drawn = np.linalg.solve(root.T, rng.standard_normal(self.size))
        return self.mean + exploration * drawn
