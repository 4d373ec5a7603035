"""Discrete Gaussian noise that never exceeds a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Positive, at_least
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.base import Norm, integer_sensitivity, single_entry
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair, vast_pair
from dpaudit.mechanisms.pairs.finite import WORK_OF_LOSS
from dpaudit.mechanisms.rounding import exceeds_floats

_LARGEST, _SHORTEST = 10**6, 20.0


@dataclass(frozen=True)
class TruncatedDiscreteGaussian(IntegerNoise):
    """Adds integer noise with mass proportional to exp(−k²/2σ²) on −B…B to one whole number.

    As of bounded noise in dp_accounting. Neighbours s apart are told for certain with the
    probability of the s largest values of the noise, a δ that no ε removes.

    Attributes:
        sigma: parameter σ.
        bound: B, the largest size of the noise, at least σ/20 and at most 10^6; neighbours further
            than 2B apart are told always.

    >>> float(TruncatedDiscreteGaussian(sigma=2.0, bound=12).pair(1.0).delta(1.0)) < 0.015
    True
    """

    kind: ClassVar[str] = "truncated-discrete-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Positive
    bound: Annotated[int, at_least(1, _LARGEST)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bound >= self.sigma / _SHORTEST:
            raise InputError(f"bound is {self.bound}; it must be at least sigma/20.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The law of that shift itself; as the masses are log-concave, a longer one dominates.

        At output k the loss of a shift s is (2ks − s²)/2σ², and infinite beyond B. Outputs whose
        mass is below the smallest float under P and under Q are counted as infinite loss.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        if shift == 0:
            return costless_pair()
        reach = min(self.bound, math.ceil(39 * min(self.sigma, 10.0**6)) + 2)
        largest = Fraction(2 * reach * shift + shift**2) / (2 * Fraction(self.sigma) ** 2)
        if shift > 2 * reach or exceeds_floats(largest):
            return vast_pair()
        return _cut_pair(self, shift, reach)

    def work(self, sensitivity: float) -> float:
        """A loss for each output of any mass."""
        return 1e8 + WORK_OF_LOSS / 8 * 2 * min(self.bound, 39 * self.sigma)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One whole number, as the pair covers no more."""
        return single_entry(super().prepare(value), self.kind)

    @property
    def noise_scale(self) -> float:
        """σ."""
        return self.sigma

    @cached_property
    def _log_normaliser(self) -> float:
        reach = min(self.bound, math.ceil(39 * min(self.sigma, 10.0**6)) + 2)
        with np.errstate(over="ignore"):
            above = np.exp(-((np.arange(1.0, reach + 1) / self.sigma) ** 2) / 2).sum()
        return math.log1p(2 * float(above))

    def log_mass(self, noise: Floats) -> Floats:
        """−k²/2σ² less the logarithm of the normaliser, within the bound."""
        with np.errstate(over="ignore"):
            log = -((noise / self.sigma) ** 2) / 2 - self._log_normaliser
        return np.where(np.abs(noise) <= self.bound, log, -np.inf)

    def mean_size(self) -> float:
        """The mean of |k|, by summation."""
        k = np.arange(1.0, min(self.bound, math.ceil(12 * self.sigma) + 2) + 1)
        return float(2 * (k * np.exp(self.log_mass(k))).sum())


@lru_cache(maxsize=2)
def _cut_pair(law: TruncatedDiscreteGaussian, shift: int, reach: int) -> FinitePair:
    """The pair on the outputs that both laws may have, as far as floats give them a mass."""
    low, high = max(-reach, shift - law.bound), min(shift + reach, law.bound)
    k = np.arange(low, high + 1, dtype=np.float64)
    p, q = np.exp(law.log_mass(k - shift)), np.exp(law.log_mass(k))
    told = np.exp(law.log_mass(np.arange(high - shift + 1.0, reach + 1)))
    infinite = float(told.sum()) * (1 + 1e-12) + 1e-300  # where the laws end, never 0
    losses: Floats = (2 * k - shift) * shift / (2 * law.sigma**2)
    return FinitePair(losses, p, q, p_infinite=min(infinite, 1.0))
