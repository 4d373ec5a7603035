"""The Gaussian mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.pairs import Floats, GaussianPair, least_deviation, normal_pair

_SMALLEST_SHIFT, _LARGEST_SHIFT = 2.0**-16, 10.0
_MOST_ENTRIES = 2**14


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
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
    numpy_law: ClassVar[str] = "normal"
    long_shift_dominates: ClassVar[bool] = True
    sigma: Positive
    clip_norm: Positive | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, sensitivity: float, clip_norm: float | None = None
    ) -> Gaussian:
        """The least σ for (ε, δ): the analytic mechanism (Balle and Wang 2018, Algorithm 1).

        Solved on the exact δ(ε) of the mechanism and rounded up, for every ε ≥ 0.

        Raises:
            InputError: if ε is below 0, δ outside (0, 1), or the sensitivity not above 0; or if no
                float is so large a σ.
        """
        sensitivity = validate.positive(sensitivity=sensitivity)
        sigma = least_deviation(
            lambda sigma: normal_pair(sensitivity, sigma), epsilon=epsilon, delta=delta
        )
        return cls(sigma, clip_norm)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> GaussianPair:
        """N(Δ/σ, 1) against N(0, 1): the noise is isotropic, so only the L2 distance counts."""
        return normal_pair(checked_sensitivity(sensitivity), self.sigma)

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """μ: a normal pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).mu

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """The clip norm, doubled where one value may replace another."""
        return None if self.clip_norm is None else self.clip_norm * contribution_factor

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers, scaled down to the clip norm."""
        array = validate.real_array(value=value)
        if self.clip_norm is None:
            return array
        norm = float(np.linalg.norm(array))
        return array * (self.clip_norm / norm) if norm > self.clip_norm else array

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """σ, the standard deviation."""
        return self.sigma

    def log_noise_density(self, noise: Floats) -> Floats:
        """−n²/2σ² − ln σ√2π."""
        z = noise / self.sigma
        return -z * z / 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
