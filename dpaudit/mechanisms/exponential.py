"""The exponential mechanism: a private choice."""

from __future__ import annotations

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
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    Floats,
    approximate_pair,
    costless_pair,
)
from dpaudit.mechanisms.rounding import concentration
from dpaudit.mechanisms.tails import Tails, choice_tails

__all__ = ["ExponentialMechanism"]


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
        """Randomised response with the same ε, which dominates it, and its own better ρ = ε²/8.

        The losses span at most ε (bounded range), from which Cesar and Rogers 2021, Lemma 3.2,
        prove ρ.

        Raises:
            InputError: if the sensitivity, 1 where the utilities change at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        whole = approximate_pair(self.epsilon)
        return _BoundedRangePair(whole.losses, whole.p, whole.q, 0.0, Fraction(self.epsilon))

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).pure_epsilon

    def worst_pairs(self) -> tuple[tuple[list[float], list[float], str], ...]:
        """Two candidates whose utilities change places."""
        high = self.utility_sensitivity
        return (([high, 0.0], [0.0, high], "two candidates that change places"),)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of utilities."""
        utilities = validate.real_array(value=value)
        if utilities.ndim != 1 or utilities.size == 0:
            raise InputError("value must be a vector of utilities, one for each candidate.")
        return utilities

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """The largest of utilities with Gumbel noise, which has just this law."""
        scaled = values * (self.epsilon / (2 * self.utility_sensitivity))
        chosen: NDArray[Any] = np.argmax(scaled + rng.gumbel(size=values.shape), axis=-1)
        return chosen

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

        log_masses: Floats = log_softmax(
            utilities * (self.epsilon / (2 * self.utility_sensitivity))
        )
        return log_masses


@dataclass(frozen=True, eq=False)
class _BoundedRangePair(FinitePair):
    """Randomised response with the concentration of a mechanism of bounded range."""

    def renyi(self, orders: ArrayLike) -> Floats:
        """At most α ε²/8, and at most that of randomised response."""
        orders = np.asarray(orders, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.minimum(super().renyi(orders), orders * self.zcdp_rho)

    @property
    def zcdp_rho(self) -> float:
        """ε²/8, rounded up."""
        return concentration(self.pure_epsilon, 0.125)
