"""The exponential mechanism: a private choice."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.fields import Positive
from dpaudit.mechanisms.base import Mechanism, Norm, changes
from dpaudit.mechanisms.exact import ExactSource, decays
from dpaudit.mechanisms.pairs import BoundedRangePair, DominatingPair, Floats, costless_pair
from dpaudit.mechanisms.rounding import as_float
from dpaudit.mechanisms.tails import Tails, choice_tails

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """Chooses an index with probability proportional to exp(ε u / 2Δ) (McSherry and Talwar 2007).

    The private value is the vector of utilities, one for each candidate; the release is an index.

    Attributes:
        epsilon: the pure ε of one choice.
        utility_sensitivity: Δ, the most by which any one utility differs between neighbours.

    >>> choice = ExponentialMechanism(epsilon=2.0, utility_sensitivity=1.0)
    >>> choice.release([0.0, 1000.0, 0.0], np.random.default_rng(0))
    1
    """

    kind: ClassVar[str] = "exponential"
    norm: ClassVar[Norm] = Norm.CHANGE
    epsilon: Positive
    utility_sensitivity: Positive = 1.0

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of bounded range: the losses of two neighbours span at most ε.

        Raises:
            InputError: if the sensitivity, 1 where the utilities change at all, is not 0 or 1.
        """
        changed = changes(sensitivity, self.kind)
        return BoundedRangePair(self.epsilon) if changed else costless_pair()

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).pure_epsilon

    def worst_pairs(self) -> tuple[tuple[list[float], list[float], str], ...]:
        """Two candidates whose utilities change places."""
        high = self.utility_sensitivity
        return (([high, 0.0], [0.0, high], "two candidates that change places"),)

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """How far the utilities move, in units of Δ: 1 where they move as much as they may."""
        if one.shape != other.shape:
            return math.inf
        return float(np.abs(one - other).max(initial=0.0)) / self.utility_sensitivity

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of utilities."""
        utilities = validate.real_array(value=value)
        if utilities.ndim != 1 or utilities.size == 0:
            raise InputError("value must be a vector of utilities, one for each candidate.")
        return utilities

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """The largest of utilities with Gumbel noise, which has just this law."""
        scaled = self._exponents(values)
        chosen: NDArray[Any] = np.argmax(scaled + rng.gumbel(size=values.shape), axis=-1)
        return chosen

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """The law itself, of the utilities, ε and Δ as the rational numbers that the floats are.

        A candidate is drawn uniformly and taken with probability exp(−γ), where
        γ = ε (max u − u)/2Δ; else another one is drawn. One trial ends with candidate i with
        probability exp(−γ_i)/k, and trials are independent, so that i is taken with probability
        exp(−γ_i)/Σ_j exp(−γ_j), which is the law of the mechanism. As the best candidate is always
        taken when it is drawn, at most k trials are expected: k, where it dominates all others.
        """
        rows = values.reshape(-1, values.shape[-1])
        chosen = [self._chosen_exactly(row, source) for row in rows]
        return np.array(chosen, dtype=np.int64).reshape(values.shape[:-1])

    def _chosen_exactly(self, utilities: NDArray[Any], source: ExactSource) -> int:
        epsilon, epsilon_scale = self.epsilon.as_integer_ratio()
        delta, delta_scale = self.utility_sensitivity.as_integer_ratio()
        above, below = epsilon * delta_scale, 2 * epsilon_scale * delta  # ε/2Δ
        best, scale = float(utilities.max()).as_integer_ratio()
        while True:
            place = source.below(utilities.size)
            own, own_scale = float(utilities[place]).as_integer_ratio()
            gap = best * own_scale - own * scale
            if decays(above * gap, below * scale * own_scale, source):
                return place

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Ln of the softmax of ε u / 2Δ at each index."""
        chosen, log_mass = np.asarray(outputs), self._log_masses(self.prepare(value))
        possible = (chosen >= 0) & (chosen < log_mass.size) & (chosen == np.floor(chosen))
        index = np.where(possible, chosen, 0).astype(np.int64)
        density: Floats = np.where(possible, log_mass[index], -np.inf)
        return density

    def tails(self, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator) -> Tails:
        """One choice."""
        masses = np.exp(self._log_masses(value))
        return choice_tails(masses[None], np.ravel(released).astype(np.int64), rng)

    def probabilities(self, value: ArrayLike) -> tuple[float, ...]:
        """The probability of each index, given the utilities."""
        return tuple(np.exp(self._log_masses(self.prepare(value))).tolist())

    def _log_masses(self, utilities: Floats) -> Floats:
        from scipy.special import log_softmax

        log_masses: Floats = log_softmax(self._exponents(utilities))
        return log_masses

    def _exponents(self, utilities: Floats) -> Floats:
        """ε (u − max u)/2Δ, at most 0; a gap beyond floats is as good as the largest float."""
        with np.errstate(over="ignore"):
            gaps = np.maximum(utilities - utilities.max(axis=-1, keepdims=True), -_LARGEST)
            exponents: Floats = np.maximum(gaps * self._factor, -_LARGEST)
        return exponents

    @property
    def _factor(self) -> float:
        """ε/2Δ, within what floats hold."""
        return as_float(Fraction(self.epsilon) / (2 * Fraction(self.utility_sensitivity)))
