"""The Laplace mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Interval, Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.pairs import Floats, LaplacePair
from dpaudit.mechanisms.rounding import round_up


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

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def log_noise_density(self, noise: Floats) -> Floats:
        """−|n|/b − ln 2b."""
        return -np.abs(noise) / self.scale - math.log(2 * self.scale)


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
