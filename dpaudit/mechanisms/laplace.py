"""The Laplace mechanism, continuous and discrete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.fields import Interval, Positive
from dpaudit.mechanisms.base import (
    Mechanism,
    Norm,
    checked_sensitivity,
    integer_array,
    integer_sensitivity,
    sum_over_entries,
)
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    Floats,
    LaplacePair,
    exceeds_floats,
    vast_pair,
)

__all__ = ["DiscreteLaplace", "Laplace"]


@dataclass(frozen=True)
class Laplace(Mechanism):
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
    scale: Positive
    clip: Interval | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, sensitivity: float, clip: tuple[float, float] | None = None
    ) -> Laplace:
        """The least scale whose ε does not exceed the wish, in exact arithmetic."""
        wish = Fraction(validate.positive(epsilon=epsilon))
        distance = Fraction(validate.positive(sensitivity=sensitivity))
        scale = float(distance / wish)
        while distance / Fraction(scale) > wish:
            scale = math.nextafter(scale, math.inf)
        return cls(scale, clip)

    def pair(self, sensitivity: float) -> DominatingPair:
        """A Laplace pair whose ε is the exact quotient of sensitivity and scale."""
        return LaplacePair(Fraction(checked_sensitivity(sensitivity)) / Fraction(self.scale))

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """Width of the clip where one value may replace another, else its largest magnitude."""
        if self.clip is None:
            return None
        lower, upper = self.clip
        width = upper - lower if contribution_factor == 2 else max(abs(lower), abs(upper))
        return width * entries

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        array: NDArray[Any] = validate.real_array(value=value)
        if self.clip is not None:
            array = np.clip(array, *self.clip)
        return array

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        return values + rng.laplace(scale=self.scale, size=values.shape)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of −|y − x|/b − ln 2b."""
        distance = np.abs(np.asarray(outputs, dtype=np.float64) - self._prepare(value))
        return sum_over_entries(-distance / self.scale - math.log(2 * self.scale))


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Adds integer noise with mass proportional to exp(−|k|/b).

    The two-sided geometric mechanism of Ghosh, Roughgarden and Sundararajan 2009.

    Attributes:
        scale: scale b of the noise, above 0.
    """

    kind: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Norm] = Norm.L1
    scale: Positive

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer coordinate shifted by the whole sensitivity.

        For a shift s the loss at output k is (|k| − |k − s|)/b, one value for each k in 0…s, with
        geometric tails lumped at both ends. Several coordinates are dominated as for
        :class:`~dpaudit.mechanisms.pairs.LaplacePair`.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        if shift > 10**6:
            raise InputError(f"sensitivity is {sensitivity}; discrete-laplace takes at most 1e6.")
        if shift == 0:
            return FinitePair(np.zeros(1), np.ones(1), np.ones(1), bound=Fraction(0))
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

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        return integer_array(value)

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        success = -math.expm1(-1 / self.scale)
        released: NDArray[Any] = values + rng.geometric(success, values.shape)
        return released - rng.geometric(success, values.shape)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of −|k|/b + ln tanh(1/2b)."""
        outputs = np.asarray(outputs, dtype=np.float64)
        distance = np.abs(outputs - self._prepare(value))
        log_mass = -distance / self.scale + math.log(math.tanh(0.5 / self.scale))
        return sum_over_entries(np.where(outputs == np.floor(outputs), log_mass, -np.inf))
