"""The exponential mechanism: a private choice."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms.base import changes
from dpaudit.mechanisms.choice import Choice, by_rejection
from dpaudit.mechanisms.exact import ExactSource
from dpaudit.mechanisms.pairs import BoundedRangePair, DominatingPair, Floats, costless_pair


@dataclass(frozen=True)
class ExponentialMechanism(Choice):
    """Chooses an index with probability proportional to exp(ε u / 2Δ) (McSherry and Talwar 2007).

    >>> choice = ExponentialMechanism(epsilon=2.0, utility_sensitivity=1.0)
    >>> choice.release([0.0, 1000.0, 0.0], np.random.default_rng(0))
    1
    """

    kind: ClassVar[str] = "exponential"

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

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """The largest of utilities with Gumbel noise, which has just this law."""
        scaled = self.exponents(values)
        chosen: NDArray[Any] = np.argmax(scaled + rng.gumbel(size=values.shape), axis=-1)
        return chosen

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """The law itself, of the utilities, ε and Δ as the rational numbers that the floats are."""
        return self.by_exact_decays(values, by_rejection(source), source)

    def log_masses(self, exponents: Floats) -> Floats:
        """Ln of the softmax of ε u / 2Δ."""
        from scipy.special import log_softmax

        log_masses: Floats = log_softmax(exponents)
        return log_masses
