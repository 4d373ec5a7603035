"""Privacy and trade-off curves between the points that are proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpaudit.accounting import CurvePoint, Guarantee
from dpaudit.mechanisms.pairs import Floats

_LARGEST_EXPONENT = 700.0


def proved_points(guarantee: Guarantee) -> tuple[CurvePoint, ...]:
    """Every finite (ε, δ) that the guarantee states, by increasing ε."""
    own = CurvePoint(guarantee.epsilon, guarantee.delta)
    points = {(p.epsilon, p.delta) for p in (*guarantee.curve, own) if p.epsilon < math.inf}
    return tuple(CurvePoint(*point) for point in sorted(points, key=lambda p: (p[0], -p[1])))


def probability(epsilon: float, delta: float) -> float:
    """Success that (ε, δ) leaves to the best guess between two equally likely data sets.

    The sum of the two error rates of any test is at least 2(1 − δ)/(1 + e^ε) (Kairouz, Oh and
    Viswanath 2015, Theorem 2.1), so a guess is right with probability at most
    (e^ε + δ)/(1 + e^ε).

    >>> round(probability(1, 0), 4), probability(0, 0), probability(float("inf"), 0)
    (0.7311, 0.5, 1.0)
    """
    shrunk = math.exp(-epsilon)
    return (1 + delta * shrunk) / (1 + shrunk)


def best_odds(points: Sequence[CurvePoint]) -> float:
    """Success of the best guess at even odds, by all points together; 1 where there are none."""
    return min((probability(point.epsilon, point.delta) for point in points), default=1.0)


def densify(points: Sequence[CurvePoint]) -> tuple[Floats, Floats]:
    """The curve through proved points, never below what they prove.

    δ is a convex function of e^ε (a supremum of lines P(S) − e^ε Q(S)), so the chord in (e^ε, δ)
    between two points that hold, holds as well.

    Args:
        points: by increasing ε, at least one.

    Returns:
        ε and δ, each of shape (1 + 7 (len(points) − 1),): six more points on each chord.
    """
    epsilons, deltas = [points[0].epsilon], [points[0].delta]
    shares = np.linspace(0, 1, 8)[1:]
    for left, right in pairwise(points):
        gap = min(right.epsilon - left.epsilon, _LARGEST_EXPONENT)
        drawn = left.epsilon + (right.epsilon - left.epsilon) * shares
        width = math.expm1(gap)
        weight = shares if width == 0 else np.expm1(gap * shares) / width
        epsilons.extend(drawn.tolist())
        deltas.extend((left.delta + (right.delta - left.delta) * weight).tolist())
    return np.array(epsilons), np.array(deltas)


def trade_off(points: Sequence[CurvePoint], false_alarms: Floats) -> Floats:
    """The least rate of misses that any test can have, given its rate of false alarms.

    Each (ε, δ) that holds in both directions bounds it from below by
    max(0, 1 − δ − e^ε α, e^−ε (1 − δ − α)) (Dong, Roth and Su 2022, Proposition 3); all of them
    hold together.

    Args:
        points: (ε, δ) that hold; none prove nothing.
        false_alarms: rates α in [0, 1], any shape.
    """
    misses = np.zeros_like(false_alarms)
    for point in points:
        grown = math.exp(min(point.epsilon, _LARGEST_EXPONENT))
        direct = 1 - point.delta - grown * false_alarms
        swapped = (1 - point.delta - false_alarms) / grown
        misses = np.maximum(misses, np.maximum(direct, swapped))
    return misses


def thin_series(values: Sequence[float], most: int = 400) -> tuple[Floats, Floats]:
    """Rounds (from 1) and values of a long series; each stretch keeps its extremes and the ends.

    >>> rounds, kept = thin_series([0.0] * 5000 + [9.0] + [0.0] * 5000, most=100)
    >>> len(kept) <= 100, float(kept.max())
    (True, 9.0)
    """
    series = np.asarray(values, dtype=np.float64)
    if len(series) <= most:
        return np.arange(1, len(series) + 1, dtype=np.float64), series
    edges = np.linspace(0, len(series), (most - 2) // 2 + 1).astype(int)
    kept = {0, len(series) - 1}
    for start, stop in pairwise(edges):
        part = series[start:stop]
        kept |= {start + int(part.argmin()), start + int(part.argmax())}
    chosen = np.array(sorted(kept))
    return (chosen + 1).astype(np.float64), series[chosen]
