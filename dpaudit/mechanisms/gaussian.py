"""The Gaussian mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.exact import ExactSource, on_grid, widened
from dpaudit.mechanisms.pairs import Floats, GaussianPair, least_deviation, normal_pair
from dpaudit.mechanisms.tails import Tails, normal_tails

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

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Normal noise of deviation σ."""
        return rng.normal(scale=self.sigma, size=shape)

    def require_exact(self, sensitivity: float, source: ExactSource, entries: int = 1) -> None:
        """Refuse what no grid holds, and shifts and entries beyond the proof."""
        super().require_exact(sensitivity, source, entries)
        step, ratio = source.step(self.sigma), sensitivity / self.sigma
        if ratio and not _SMALLEST_SHIFT <= ratio <= _LARGEST_SHIFT:
            raise UnsupportedError(
                f"sensitivity is {ratio:g} sigma; exact normal noise is proved for 2^-16 to 10."
            )
        self.grid_scale(sensitivity, entries, step)

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """Discrete normal noise on a grid, as wide as :meth:`grid_scale` asks for."""
        step = source.step(self.sigma)
        scale = self.grid_scale(sensitivity, math.prod(values.shape[1:]), step)
        return on_grid(values, step, partial(source.normal, scale))

    def grid_scale(self, sensitivity: float, entries: int, step: float) -> float:
        """σ (1 + (√d + 1)γ/Δ), in steps γ of a grid, for d entries: no more than declared is spent.

        Rounding moves neighbours to at most Δ + √d γ apart. The discrete normal law satisfies
        ρ = Δ²/2σ² exactly (Canonne, Kamath and Steinke 2020, Theorem 4), so that √d steps pay for
        the rounding. One step more pays for the curve: rounding a *continuous* normal release to
        the grid only loses information (post-processing), and within 40 σ its masses and the
        discrete ones differ by a factor of at most exp(68 γ²/σ²) an entry. That is far below what
        the step gains in δ(ε), at any δ above 1e-300, for 2^-16 ≤ Δ/σ ≤ 10 and d ≤ 2^14.

        Raises:
            UnsupportedError: if there are more entries than the proof covers.
        """
        if entries > _MOST_ENTRIES:
            raise UnsupportedError(
                f"value has {entries} entries; exact normal noise takes at most {_MOST_ENTRIES}."
            )
        return widened(self.sigma, step, sensitivity, math.isqrt(entries) + 2)

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """σ, the standard deviation."""
        return self.sigma

    def log_noise_density(self, noise: Floats) -> Floats:
        """−n²/2σ² − ln σ√2π."""
        z = noise / self.sigma
        return -z * z / 2 - math.log(self.sigma * math.sqrt(2 * math.pi))

    def noise_tails(self, noise: Floats, rng: np.random.Generator) -> Tails:
        """2Φ(−|n|/σ)."""
        return normal_tails(noise / self.sigma)
