"""What follows from some (ε, δ) that are claimed together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from dpaudit.accounting import Composition, CurvePoint, Interval
from dpaudit.mechanisms.rounding import up


@dataclass(frozen=True)
class PointsCurve(Composition):
    """All that follows from some (ε, δ) which hold together.

    Attributes:
        points: at least one.
    """

    points: tuple[CurvePoint, ...]

    def epsilon(self, delta: float) -> Interval:
        """The least ε of the points whose δ is not larger."""
        held = (point.epsilon for point in self.points if point.delta <= delta)
        return Interval(None, min(held, default=math.inf))

    def delta(self, epsilon: float) -> Interval:
        """The least that a point leaves (Kairouz, Oh and Viswanath 2015, Theorem 2.1)."""
        return Interval(None, min(_left(point, epsilon) for point in self.points))

    @property
    def native(self) -> Mapping[str, Any]:
        """The points."""
        return {"points": [point.to_dict() for point in self.points]}

    @property
    def corners(self) -> tuple[float, ...]:
        """The ε at which it says most."""
        return tuple(point.epsilon for point in self.points)

    def __call__(self, epsilons: ArrayLike) -> Any:
        """Its δ, of any shape."""
        return self.deltas(epsilons)


@dataclass(frozen=True)
class RatesCurve(PointsCurve):
    """The curve that follows from a largest TPR at an FPR.

    Attributes:
        rates: TPR and FPR.
    """

    rates: tuple[float, float] = (1.0, 1.0)


def _left(point: CurvePoint, epsilon: float) -> float:
    """The δ at ε that follows from one point: δ is convex in e^ε, and 1 at e^ε = −1."""
    if epsilon >= point.epsilon:
        return point.delta
    share = -math.expm1(epsilon - point.epsilon) / (1 + math.exp(-point.epsilon))
    return min(1.0, up(point.delta + (1 - point.delta) * share, 4))
