"""The discrete Gaussian mechanism, its law and its sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.base import Norm, integer_sensitivity, single_entry
from dpaudit.mechanisms.pairs import DominatingPair, Floats, costless_pair, vast_pair
from dpaudit.mechanisms.pairs.discrete_normal import DiscreteNormalTable, WideDiscreteNormalPair
from dpaudit.mechanisms.pairs.finite import WORK_OF_LOSS
from dpaudit.mechanisms.rounding import concentration, exceeds_floats

_LARGEST_SIGMA = 1e9
_WIDE = 1e4
"""σ from which on tails have closed forms; a table of all outputs would take seconds."""


@dataclass(frozen=True)
class DiscreteGaussian(IntegerNoise):
    """Adds integer noise with mass proportional to exp(−k²/2σ²) (Canonne, Kamath and Steinke 2020).

    Attributes:
        sigma: parameter σ, about the standard deviation; at most 1e9.
    """

    kind: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma > _LARGEST_SIGMA:
            raise InputError(f"sigma is {self.sigma}; discrete-gaussian takes at most 1e9.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer entry; ρ = Δ²/2σ² (Canonne et al. 2020, Theorem 4).

        At output k the loss of a shift s is (2ks − s²)/2σ². Outputs whose mass is below the
        smallest float under P and under Q are left out, and counted as infinite loss.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        reach = math.ceil(39 * self.sigma) + 2
        if shift > reach:
            raise UnsupportedError(
                f"sensitivity is {sensitivity}; with sigma {self.sigma} it must be at most {reach}."
            )
        if shift == 0:
            return costless_pair()
        largest = Fraction(2 * reach * shift + shift**2) / (2 * Fraction(self.sigma) ** 2)
        if exceeds_floats(largest):
            return vast_pair()
        if self.sigma >= _WIDE:
            return WideDiscreteNormalPair(self.sigma, shift)
        return _cut_pair(self.sigma, shift, reach)

    def work(self, sensitivity: float) -> float:
        """A loss for each output of any mass; most masses are so small that they are cut off."""
        return 1e9 + (WORK_OF_LOSS / 8 * 78 * self.sigma if self.sigma < _WIDE else 0.0)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One whole number, as the pair covers no more."""
        return single_entry(super().prepare(value), self.kind)

    @property
    def noise_scale(self) -> float:
        """σ, the scale of the discrete normal law."""
        return self.sigma

    def log_mass(self, noise: Floats) -> Floats:
        """−k²/2σ² less the logarithm of the normaliser."""
        with np.errstate(over="ignore"):
            return -((noise / self.sigma) ** 2) / 2 - log_normaliser(self.sigma)

    def at_least(self, noise: Floats) -> Floats:
        """P[noise ≥ n], by summation; of wide noise that of normal noise beyond n − 1/2.

        The masses are those of the normal law between k − 1/2 and k + 1/2, to a relative error of
        (k²/σ² + 1)/24σ² (the midpoint rule): for σ ≥ 10^4, and |k| ≤ 39 σ, below 10^-6.
        """
        if self.sigma < _WIDE:
            return super().at_least(noise)
        from scipy.special import ndtr

        tail: Floats = ndtr((0.5 - noise) / self.sigma)
        return tail

    def mean_size(self) -> float:
        """The mean of |k|, by summation to 12 σ where that is short."""
        if self.sigma >= _WIDE:
            return self.sigma * math.sqrt(2 / math.pi)
        k = np.arange(1.0, math.ceil(12 * self.sigma) + 2)
        return float(2 * (k * np.exp(self.log_mass(k))).sum())


@lru_cache(maxsize=2)
def _cut_pair(sigma: float, shift: int, reach: int) -> DiscreteNormalTable:
    """The pair on the outputs that floats give a mass; every accountant asks for it."""
    k = np.arange(-reach, shift + reach + 1, dtype=np.float64)
    log_mass = -log_normaliser(sigma)
    q = np.exp(log_mass - (k / sigma) ** 2 / 2)
    p = np.exp(log_mass - ((k - shift) / sigma) ** 2 / 2)
    losses = (2 * k - shift) * shift / (2 * sigma**2)
    rho = concentration(shift / sigma, 0.5)
    return DiscreteNormalTable(losses, p, q, p_infinite=1e-300, rho=rho)


@lru_cache(maxsize=256)
def log_normaliser(sigma: float) -> float:
    """Ln Σ_k exp(−k²/2σ²) over all integers.

    For σ ≥ 1 the Poisson summation formula makes the sum σ√2π (1 + 2 exp(−2π²σ²) + …), whose
    second correction is below the float's precision.
    """
    if sigma >= 1:
        return (
            math.log(sigma)
            + math.log(2 * math.pi) / 2
            + math.log1p(2 * math.exp(-2 * (math.pi * sigma) ** 2))
        )
    if sigma < 0.02:
        return 0.0  # the neighbours of 0 weigh less than e^-1250
    return math.log1p(2 * sum(math.exp(-((k / sigma) ** 2) / 2) for k in range(1, 41)))
