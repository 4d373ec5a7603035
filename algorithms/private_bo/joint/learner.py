"""From noisy sums to a mean and a width: post-processing, with no privacy cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from private_bo.gp.types import Array
from private_bo.joint.statistics import Sums, noise_norm

_CAUTION = 2.0
"""How much of the matrix's squared deviation must be more than noise before any of it is used: the
share of the noise itself fluctuates, and noise in V costs more than coarseness."""


class Estimate(StrEnum):
    """How V and θ follow from noisy sums."""

    SHRUNK = "shrunk"
    """Bayesian, under the known law of the noise; Σ shrunk to its public trace as far as needed."""
    PROJECTED = "projected"
    """Σ projected on the positive cone, plus λ."""
    SHIFTED = "shifted"
    """Σ shifted by twice a bound of the noise's norm, plus λ, as in Algorithm 1."""


class Width(StrEnum):
    """What the exploration bonus is a multiple of."""

    POSTERIOR = "posterior"
    """The standard deviation of the belief."""
    THEOREM = "theorem"
    """β_t^½ σ_t of Theorem 1."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Mean θᵀΦ(x) and squared width Φ(x)ᵀWΦ(x).

    Attributes:
        theta: θ, (m,).
        root: R with W = R Rᵀ, (m, m).
    """

    theta: Array
    root: Array

    def scores(self, features: Array) -> Array:
        """Mean plus width of each row of features (n, m), shape (n,)."""
        return np.asarray(features @ self.theta + np.linalg.norm(features @ self.root, axis=1))


@dataclass(frozen=True)
class Learner:
    """The estimator and its constants, all public.

    Attributes:
        size: m.
        steps: T.
        estimate: how V and θ are made.
        width: what the bonus is a multiple of.
        width_multiplier: of the bonus.
        regularisation: λ.
        reward_variance: ρ², of a value around its mean (¼ at most in a range of length 1).
        prior_variance: of f, in units of the values.
        confidence: ζ.
        norm_bound: B of the theorem.
        feature_error: uniform error of the features.
        shift: Λ; None for the norm of the noise of the round.
    """

    size: int
    steps: int
    estimate: Estimate
    width: Width
    width_multiplier: float
    regularisation: float
    reward_variance: float
    prior_variance: float
    confidence: float
    norm_bound: float
    feature_error: float
    shift: float | None = None

    def belief(self, sums: Sums | None) -> Belief:
        """The belief after these sums; the prior without any."""
        if sums is None or sums.rounds == 0:
            spread = math.sqrt(self.prior_variance) * self.width_multiplier
            return Belief(np.zeros(self.size), spread * np.eye(self.size))
        if self.estimate is Estimate.SHRUNK:
            return self._shrunk(sums)
        return self._ridge(sums)

    # -- the law of the noise --------------------------------------------------------------------

    def _shrunk(self, sums: Sums) -> Belief:
        """The posterior of θ ~ N(0, τ²I) given u = Σθ + N(0, ρ²Σ + s²I), in Σ's eigenbasis.

        With s = 0 it is the usual posterior with λ = ρ²/τ².
        """
        values, vectors = self._spectrum(sums)
        spread = self.reward_variance * values + sums.vector_noise**2
        precision = values**2 / spread + 1 / self.prior_variance
        theta = vectors @ (values / spread / precision * (vectors.T @ sums.vector))
        return Belief(theta, vectors * self._bonus(sums, values, 1 / precision))

    def _spectrum(self, sums: Sums) -> tuple[Array, Array]:
        """Eigenpairs of a shrunk Σ.

        Features have about unit norm, so the trace of Σ is known to be about t. Towards (t/m) I the
        released matrix is shrunk by the share of its squared deviation that its known noise makes
        up (Ledoit & Wolf 2004, with the noise known instead of estimated).
        """
        prior = sums.rounds / self.size
        identity = np.eye(self.size)
        if sums.matrix is None:
            return np.full(self.size, prior), identity
        deviation = sums.matrix - prior * identity
        total = float(np.square(deviation).sum())
        noise = self.size * (self.size + 1) * sums.matrix_noise**2
        share = max(0.0, 1.0 - _CAUTION * noise / total) if total > 0 else 0.0
        if share == 0.0:
            return np.full(self.size, prior), identity
        values, vectors = np.linalg.eigh(prior * identity + share * deviation)
        return np.maximum(values, 1e-3 * prior), vectors

    # -- Algorithm 1 -----------------------------------------------------------------------------

    def _ridge(self, sums: Sums) -> Belief:
        """V = Σ̃ + λI and θ = V⁻¹ũ (line 7), with Σ̃'s noise made positive by shift or projection."""
        matrix = np.zeros((self.size, self.size)) if sums.matrix is None else sums.matrix
        values, vectors = np.linalg.eigh(matrix)
        lift = 2 * self._noise_norm(sums) if self.estimate is Estimate.SHIFTED else 0.0
        values = np.maximum(values + lift, 0.0) + self.regularisation
        theta = vectors @ ((vectors.T @ sums.vector) / values)  # line 7
        return Belief(theta, vectors * self._bonus(sums, values, self.reward_variance / values))

    def _noise_norm(self, sums: Sums) -> float:
        """Λ: a bound of the spectral norm of the matrix's noise."""
        if self.shift is not None:
            return self.shift
        noise = sums.vector_noise if sums.matrix is None else sums.matrix_noise
        return noise_norm(noise, steps=self.steps, size=self.size, confidence=self.confidence)

    # -- widths ----------------------------------------------------------------------------------

    def _bonus(self, sums: Sums, values: Array, variances: Array) -> Array:
        """Deviations along the eigenvectors, times the multiplier (and β^½ of line 8)."""
        factor = self.width_multiplier
        if self.width is Width.THEOREM:
            factor *= self.theorem_factor(sums, values)
        return np.asarray(factor * np.sqrt(variances))

    def theorem_factor(self, sums: Sums, values: Array) -> float:
        """β_t^½ of Theorem 1, with λ_min = Λ, λ_max = 3Λ, and κ of Lemma 3 for the actual noise.

        Args:
            sums: for t and the noise.
            values: eigenvalues of V.
        """
        rho = math.sqrt(self.reward_variance)
        low = max(self._noise_norm(sums), 1e-12)
        kappa = (
            sums.vector_noise
            * math.sqrt(1 / low)
            * (math.sqrt(self.size) + math.sqrt(2 * math.log(2 * self.steps / self.confidence)))
        )
        gain = float(np.log(values / (self.regularisation + low)).clip(min=0.0).sum())
        return (
            self.norm_bound * math.sqrt(3 * low / self.reward_variance + 1)
            + sums.rounds * self.norm_bound * self.feature_error / (rho * math.sqrt(low))
            + kappa / rho
            + math.sqrt(gain + 2 * math.log(2 / self.confidence))
        )
