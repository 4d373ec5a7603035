"""Two Laplace laws of the same scale, both cut off at the same distance from their centres."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.rounding import exp_up, up

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
