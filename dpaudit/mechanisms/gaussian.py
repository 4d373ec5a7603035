"""The Gaussian mechanism, continuous and discrete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.fields import Positive
from dpaudit.mechanisms.base import (
    Mechanism,
    Norm,
    checked_sensitivity,
    integer_array,
    integer_sensitivity,
    sum_over_entries,
)
from dpaudit.mechanisms.discrete_normal import discrete_normal, log_normaliser
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    Floats,
    GaussianPair,
    concentration,
    exceeds_floats,
    vast_pair,
)

__all__ = ["DiscreteGaussian", "Gaussian"]


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Adds independent normal noise to every entry.

    Attributes:
        sigma: standard deviation of the noise.
        clip_norm: optional L2 norm to which the value is scaled down before noise is added; it
            belongs to the mechanism.

    >>> round(Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1).sigma, 4)
    3.7306
    """

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.L2
    real_valued: ClassVar[bool] = True
    sigma: Positive
    clip_norm: Positive | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, sensitivity: float, clip_norm: float | None = None
    ) -> Gaussian:
        """The least σ for (ε, δ): the analytic mechanism (Balle and Wang 2018, Algorithm 1).

        Solved on the exact δ(ε) of the mechanism and rounded up. Exact for every ε ≥ 0.
        """
        epsilon = validate.non_negative(epsilon=epsilon)
        delta = validate.open_fraction(delta=delta)
        sensitivity = validate.positive(sensitivity=sensitivity)

        def excess(log_sigma: float) -> float:
            return float(GaussianPair(sensitivity / math.exp(log_sigma)).delta(epsilon)) - delta

        low = high = math.log(sensitivity)
        while excess(high) > 0:
            high += 1
        while excess(low) <= 0:
            low -= 1
        for _ in range(64):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        # The margin covers the rounding of the accountant, which inverts the same curve.
        return cls(math.exp(high) * (1 + 1e-12), clip_norm)

    def pair(self, sensitivity: float) -> DominatingPair:
        """N(Δ/σ, 1) against N(0, 1): the noise is isotropic, so only the L2 distance counts."""
        distance = checked_sensitivity(sensitivity)
        # Where the quotient underflows, a float above it stands for it.
        return GaussianPair(max(distance / self.sigma, 1e-300) if distance else 0.0)

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """The clip norm, doubled where one value may replace another."""
        return None if self.clip_norm is None else self.clip_norm * contribution_factor

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        array = validate.real_array(value=value)
        if self.clip_norm is None:
            return array
        norm = float(np.linalg.norm(array))
        return array * (self.clip_norm / norm) if norm > self.clip_norm else array

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        return values + rng.normal(scale=self.sigma, size=values.shape)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of −(y − x)²/2σ² − ln σ√2π."""
        z = (np.asarray(outputs, dtype=np.float64) - self._prepare(value)) / self.sigma
        return sum_over_entries(-z * z / 2 - math.log(self.sigma * math.sqrt(2 * math.pi)))


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Adds integer noise with mass proportional to exp(−k²/2σ²) (Canonne, Kamath and Steinke 2020).

    Attributes:
        sigma: parameter σ, about the standard deviation.
    """

    kind: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma > 1e5:
            raise InputError(f"sigma is {self.sigma}; discrete-gaussian takes at most 1e5.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer entry; ρ = Δ²/2σ² (Canonne et al. 2020, Theorem 4).

        At output k the loss of a shift s is (2ks − s²)/2σ². Outputs whose mass is below the
        smallest float are left out; their P-mass is counted as infinite loss.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        reach = math.ceil(39 * self.sigma) + 2
        if reach > 10**7 or shift > reach:
            raise UnsupportedError(
                f"sensitivity is {sensitivity}; with sigma {self.sigma} it must be at most {reach}."
            )
        if shift == 0:
            return FinitePair(np.zeros(1), np.ones(1), np.ones(1))
        largest = Fraction(2 * reach * shift + shift**2) / (2 * Fraction(self.sigma) ** 2)
        if exceeds_floats(largest):
            return vast_pair()
        k = np.arange(shift - reach, reach + 1, dtype=np.float64)
        log_mass = -log_normaliser(self.sigma)
        q = np.exp(log_mass - (k / self.sigma) ** 2 / 2)
        p = np.exp(log_mass - ((k - shift) / self.sigma) ** 2 / 2)
        losses = (2 * k - shift) * shift / (2 * self.sigma**2)
        return _DiscreteNormalPair(
            losses, p, q, p_infinite=1e-300, rho=concentration(shift / self.sigma, 0.5)
        )

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        array = integer_array(value)
        if array.size > 1:
            raise UnsupportedError(
                f"value has {array.size} entries; discrete-gaussian is accounted for one integer "
                "at a time, so release the entries one by one."
            )
        return array

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        return values + discrete_normal(self.sigma, values.size, rng).reshape(values.shape)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """−k²/2σ² less the logarithm of the normaliser."""
        outputs = np.asarray(outputs, dtype=np.float64)
        z = (outputs - self._prepare(value)) / self.sigma
        log_mass = -z * z / 2 - log_normaliser(self.sigma)
        return sum_over_entries(np.where(outputs == np.floor(outputs), log_mass, -np.inf))


@dataclass(frozen=True, eq=False)
class _DiscreteNormalPair(FinitePair):
    """A finite cut of the discrete normal pair that keeps the closed forms of the whole."""

    rho: float = 0.0

    def renyi(self, orders: ArrayLike) -> Floats:
        """At most α ρ (Canonne et al. 2020, Theorem 4)."""
        with np.errstate(over="ignore"):
            return np.asarray(orders, dtype=np.float64) * self.rho

    @property
    def zcdp_rho(self) -> float:
        """ρ, rounded up."""
        return math.nextafter(self.rho, math.inf)
