"""Two Laplace laws of the same scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats


def _exact(**field: Any) -> Fraction:
    """A number of at least 0, in exact arithmetic."""
    ((name, value),) = field.items()
    if not isinstance(value, Fraction):
        return Fraction(validate.non_negative(**field))
    if value < 0:
        raise InputError(f"{name} is {value}; it must be a number of at least 0.")
    return value


@dataclass(frozen=True)
class LaplacePair(DominatingPair):
    """Laplace(ε, 1) against Laplace(0, 1).

    A vector of independent Laplace noises with total shift Δ in L1 is dominated by one coordinate
    with the whole shift: its trade-off curve is at least that of going there coordinate by
    coordinate (group privacy, Dong, Roth and Su 2022, Theorem 2.14), and for a location family with
    monotone likelihood ratio the steps of such a walk compose exactly to the one long step.

    Attributes:
        ratio: ε, the shift over the scale, at least 0.
    """

    ratio: Annotated[Fraction, _exact]

    @property
    def epsilon(self) -> float:
        """Sensitivity over scale, as the nearest float; infinity beyond all floats."""
        try:
            return float(self.ratio)
        except OverflowError:
            return math.inf

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """An atom of P-mass 1/2 at ε, of e^-ε/2 at −ε, and an exponential between."""
        loss = np.asarray(loss, dtype=np.float64)
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        p = -np.expm1((inside - e) / 2 - math.log(2.0))
        q = np.exp(-(inside + e) / 2) / 2
        return (
            np.where(loss >= e, 0.0, np.where(loss < -e, 1.0, p)),
            np.where(loss >= e, 0.0, np.where(loss < -e, 1.0, q)),
        )

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        loss = np.asarray(loss, dtype=np.float64)
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        p = np.exp((inside - e) / 2) / 2
        q = -np.expm1(-(inside + e) / 2 - math.log(2.0))
        return (
            np.where(loss >= e, 1.0, np.where(loss < -e, 0.0, p)),
            np.where(loss >= e, 1.0, np.where(loss < -e, 0.0, q)),
        )

    def delta(self, epsilon: ArrayLike) -> Floats:
        """1 − exp((ε' − ε)/2) inside, 0 above ε, 1 − e^ε' below −ε."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        e = self.epsilon
        inside = -np.expm1((np.clip(epsilon, -e, e) - e) / 2)
        curve: Floats = np.where(epsilon < -e, -np.expm1(np.minimum(epsilon, 0.0)), inside)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """Mironov 2017, Proposition 6, in logarithms so that no order overflows."""
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        if not self.ratio:
            return np.zeros_like(a)
        first = np.log(a / (2 * a - 1)) + (a - 1) * e
        second = np.log((a - 1) / (2 * a - 1)) - a * e
        return np.clip(np.logaddexp(first, second) / (a - 1), 0.0, e)

    @property
    def pure_epsilon(self) -> Fraction | float:
        """Sensitivity over scale, as an exact fraction."""
        return self.ratio

    def upper_quantile(self, tail: float) -> float:
        """The atom at ε."""
        return self.epsilon

    def lower_quantile(self, tail: float) -> float:
        """Invert the exponential between the atoms."""
        return max(-self.epsilon, self.epsilon + 2 * math.log(min(2 * max(tail, 1e-300), 1.0)))

    @property
    def span(self) -> float | None:
        """ε, where both atoms lie."""
        return self.epsilon or None


@dataclass(frozen=True)
class LaplaceBound(LaplacePair):
    """The same two laws, as a bound on all that pays ε in small steps.

    Let a mechanism be tε-private for all t in [0, 1] and values t apart in a convex set of values.
    Then k steps of ε/k lead from any value to one at distance 1, and its trade-off curve is at
    least that of k of them, which tends to the curve of this pair (Dong, Roth and Su 2022, Theorem
    2.14 and Proposition 2.15). No two neighbours need have it as their law.
    """

    is_attained: ClassVar[bool] = False
