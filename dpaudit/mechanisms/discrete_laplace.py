"""The discrete Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.base import Norm, integer_sensitivity
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair, vast_pair
from dpaudit.mechanisms.pairs.finite import WORK_OF_LOSS
from dpaudit.mechanisms.rounding import exceeds_floats

_LARGEST_SHIFT, _LARGEST_SCALE = 10**6, 1e15


@dataclass(frozen=True)
class DiscreteLaplace(IntegerNoise):
    """Adds integer noise with mass proportional to exp(−|k|/b).

    The two-sided geometric mechanism of Ghosh, Roughgarden and Sundararajan 2009.

    Attributes:
        scale: scale b of the noise, above 0 and at most 1e15.
    """

    kind: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Norm] = Norm.L1
    long_shift_dominates: ClassVar[bool] = True
    scale: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > _LARGEST_SCALE:
            raise InputError(f"scale is {self.scale}; discrete-laplace takes at most 1e15.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer coordinate shifted by the whole sensitivity.

        For a shift s the loss at output k is (|k| − |k − s|)/b, one value for each k in 0…s, with
        geometric tails lumped at both ends. Several coordinates are dominated as for
        :class:`~dpaudit.mechanisms.LaplacePair`.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        if shift > _LARGEST_SHIFT:
            raise InputError(f"sensitivity is {sensitivity}; discrete-laplace takes at most 1e6.")
        if shift == 0:
            return costless_pair()
        bound = Fraction(shift) / Fraction(self.scale)
        if exceeds_floats(bound):
            return vast_pair(bound)
        ratio = math.exp(-1 / self.scale)
        k = np.arange(shift + 1)
        q = np.exp(-k / self.scale) * (-math.expm1(-1 / self.scale) / (1 + ratio))
        q[0] = 1 / (1 + ratio)
        q[-1] = math.exp(-shift / self.scale) / (1 + ratio)
        losses = (2 * k - shift) / self.scale
        # P is the mirror image of Q: its mass at k is that of Q at s − k.
        return FinitePair(losses, q[::-1].copy(), q, bound=bound)

    def work(self, sensitivity: float) -> float:
        """A loss for each whole number up to the sensitivity."""
        # A law of equal steps is kept on them, which few of them make no smaller.
        return WORK_OF_LOSS * (sensitivity + 8 * min(sensitivity, 10_000))

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def log_mass(self, noise: Floats) -> Floats:
        """−|k|/b + ln tanh(1/2b)."""
        with np.errstate(over="ignore"):
            return -np.abs(noise) / self.scale + math.log(math.tanh(0.5 / self.scale))

    def at_least(self, noise: NDArray[Any]) -> Floats:
        """r^n/(1 + r) for n ≥ 1, where r = e^(−1/b)."""
        with np.errstate(over="ignore"):
            tail = np.exp(-np.where(noise > 0, noise, 1 - noise) / self.scale)
        tail = tail / (1 + math.exp(-1 / self.scale))
        return np.where(noise > 0, tail, 1 - tail)

    def mean_size(self) -> float:
        """1/sinh(1/b)."""
        return -2 * math.exp(-1 / self.scale) / math.expm1(-2 / self.scale)
