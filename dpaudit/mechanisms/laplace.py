"""The Laplace mechanism."""

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
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Interval, Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.exact import ExactSource, on_grid, widened
from dpaudit.mechanisms.pairs import Floats, LaplacePair
from dpaudit.mechanisms.rounding import round_up
from dpaudit.mechanisms.tails import Tails, laplace_tails


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """Adds independent Laplace noise to every entry (Dwork, McSherry, Nissim and Smith 2006).

    Attributes:
        scale: scale b of the noise; ε is the L1 sensitivity over b.
        clip: optional interval (lower, upper) into which every entry is clipped before noise is
            added. It belongs to the mechanism: without it a value outside the assumed range breaks
            the claim.

    >>> Laplace.calibrated(epsilon=0.3, sensitivity=4).pair(4).pure_epsilon <= 0.3
    True
    """

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    numpy_law: ClassVar[str] = "laplace"
    long_shift_dominates: ClassVar[bool] = True
    scale: Positive
    clip: Interval | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, sensitivity: float, clip: tuple[float, float] | None = None
    ) -> Laplace:
        """The least scale whose ε does not exceed the wish, in exact arithmetic.

        Raises:
            InputError: if ε or the sensitivity is not above 0, or no float is so large a scale.
        """
        return cls(least_scale(Fraction(validate.positive(sensitivity=sensitivity)), epsilon), clip)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> LaplacePair:
        """A Laplace pair whose ε is the exact quotient of sensitivity and scale."""
        return LaplacePair(Fraction(checked_sensitivity(sensitivity)) / Fraction(self.scale))

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: a Laplace pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).ratio

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """Width of the clip where one value may replace another, else the way from 0, clipped."""
        if self.clip is None:
            return None
        lower, upper = map(Fraction, self.clip)
        zero = min(max(lower, Fraction(0)), upper)
        width = upper - lower if contribution_factor == 2 else max(upper - zero, zero - lower)
        return round_up(width * entries)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers, clipped."""
        array: NDArray[Any] = validate.real_array(value=value)
        return array if self.clip is None else np.clip(array, *self.clip)

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Laplace noise of scale b."""
        return rng.laplace(scale=self.scale, size=shape)

    def require_exact(self, sensitivity: float, source: ExactSource, entries: int = 1) -> None:
        """Refuse what no grid holds: the scale, or the sensitivity beside it."""
        super().require_exact(sensitivity, source, entries)
        self.grid_scale(sensitivity, entries, source.step(self.scale))

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """Discrete Laplace noise on a grid, as wide as :meth:`grid_scale` asks for."""
        step = source.step(self.scale)
        scale = self.grid_scale(sensitivity, math.prod(values.shape[1:]), step)
        return on_grid(values, step, partial(source.laplace, scale))

    def grid_scale(self, sensitivity: float, entries: int, step: float) -> float:
        """B (1 + 3dγ/Δ), in steps γ of a grid, for d entries: ε and the curve are at most declared.

        Let K be an integer shift and t the scale, both in grid steps. At the losses e_j =
        (2j − K)/t discrete Laplace noise has δ(e_j) = 1 − exp((j − K)/t), and δ falls in between.
        A continuous pair of ε = (K + 2)/t has δ(e_{j+1}) = 1 − exp((j − K)/t), no less. So it
        dominates, entry by entry; and over d entries, with K ≤ Δ/γ + d in all, one pair of
        ε = (Δ/γ + 3d)/t does (composition, and the walk of
        :class:`~dpaudit.mechanisms.LaplacePair`).
        """
        return widened(self.scale, step, sensitivity, 3 * entries)

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def log_noise_density(self, noise: Floats) -> Floats:
        """−|n|/b − ln 2b."""
        return -np.abs(noise) / self.scale - math.log(2 * self.scale)

    def noise_tails(self, noise: Floats, rng: np.random.Generator) -> Tails:
        """e^(−|n|/b)."""
        return laplace_tails(noise / self.scale)


def least_scale(distance: Fraction, epsilon: float) -> float:
    """The least float that is not below distance/ε.

    Raises:
        InputError: if there is none, or ε is not above 0.
    """
    scale = round_up(distance / Fraction(validate.positive(epsilon=epsilon)))
    if scale == math.inf:
        raise InputError(
            f"epsilon is {epsilon}; no float is so large a scale, so it must be larger."
        )
    return scale
