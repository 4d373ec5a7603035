"""Pairs of two Laplace laws of one scale, whole or cut off at one distance from their centres."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.rounding import exp_up, up


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


_HUGE = Fraction(10) ** 300


@dataclass(frozen=True)
class TruncatedLaplacePair(DominatingPair):
    """Densities ∝ e^−|x−e| on [e − u, e + u] and ∝ e^−|x| on [−u, u], with 0 < e < 2u.

    Where both are positive the loss is |x| − |x − e|, from −t to t with t = min(e, 2u − e); beyond
    u it is infinite. With Z = 2(1 − e^−u) the outputs above (l + e)/2, which are those of a loss
    above l, have the mass 1/2 + (1 − e^((l−e)/2))/Z under P, for e above u as well as below, and
    (e^(−(l+e)/2) − e^−u)/Z under Q.

    Attributes:
        ratio: e, the shift over the scale.
        end: u, the bound over the scale, at least 2^−30.
    """

    ratio: Fraction
    end: Fraction

    @cached_property
    def _facts(self) -> tuple[float, float, float, float]:
        """The floats e, u, t and Z."""
        top = min(self.ratio, 2 * self.end - self.ratio)
        e, u, t = (float(min(each, _HUGE)) for each in (self.ratio, self.end, top))
        return e, u, t, -2 * math.expm1(-u)

    @cached_property
    def infinite(self) -> float:
        """The mass beyond the other law's end, rounded up: (e^(e−u) − e^−u)/Z for e up to u."""
        e, _, _, whole = self._facts
        gap = float(max(self.ratio - self.end, -_HUGE))
        if gap > 0:
            return min(up(0.5 - math.expm1(-gap) / whole, 8), 1.0)
        return max(up(exp_up(gap, -gap) * -math.expm1(-e) / whole, 8), 5e-324)

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Between the ends by their formulas; from t on only the infinite loss is left, to P."""
        asked = np.asarray(loss, dtype=np.float64)
        e, u, t, whole = self._facts
        x = np.clip(asked, -t, t)
        p = 0.5 - np.expm1((x - e) / 2) / whole
        q = np.exp(-(x + e) / 2) * -np.expm1((x + e) / 2 - u) / whole
        return (
            np.where(asked >= t, self.infinite, np.where(asked < -t, 1.0, p)),
            np.where(asked >= t, 0.0, np.where(asked < -t, 1 - self.infinite, q)),
        )

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`, where each has a tail that stays accurate."""
        asked = np.asarray(loss, dtype=np.float64)
        e, u, t, whole = self._facts
        x = np.clip(asked, -t, t)
        p = np.exp((x - e) / 2) * -np.expm1((e - x) / 2 - u) / whole
        q = 0.5 - np.expm1(-(x + e) / 2) / whole
        return (
            np.where(asked >= t, 1 - self.infinite, np.where(asked < -t, 0.0, p)),
            np.where(asked >= t, 1.0, np.where(asked < -t, self.infinite, q)),
        )

    def delta(self, epsilon: ArrayLike) -> Floats:
        """(2(1 − e^((x−e)/2)) + e^(x−u) − e^−u)/Z between the ends (Geng et al. 2020 at x = e)."""
        asked = np.asarray(epsilon, dtype=np.float64)
        e, u, t, whole = self._facts
        x = np.clip(asked, -t, t)
        grown = np.sign(x) * np.exp(np.maximum(x, 0.0) - u) * -np.expm1(-np.abs(x))
        inside = np.maximum((grown - 2 * np.expm1((x - e) / 2)) / whole, self.infinite)
        low = np.minimum(asked, 0.0)
        left = self.infinite * np.exp(low) - np.expm1(low)
        curve = np.where(asked >= t, self.infinite, np.where(asked < -t, left, inside))
        return np.minimum(curve, 1.0)

    def renyi(self, orders: ArrayLike) -> Floats:
        """Infinite, as is the loss."""
        return np.full_like(np.asarray(orders, dtype=np.float64), np.inf)

    @property
    def pure_epsilon(self) -> float:
        """None."""
        return math.inf

    def upper_quantile(self, tail: float) -> float:
        """The largest finite loss."""
        return self._facts[2]

    def lower_quantile(self, tail: float) -> float:
        """Invert the formula of P."""
        e, u, t, whole = self._facts
        return max(-t, e + 2 * math.log(math.exp(-u) + whole * min(max(tail, 1e-300), 0.5)))

    @property
    def span(self) -> float | None:
        """The shift, where both atoms lie if it is below the bound."""
        e, _, t, _ = self._facts
        return e if 0 < e == t else None
