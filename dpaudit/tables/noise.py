"""How far noise moves a released number: intervals that hold with at least the stated probability.

An interval speaks of the noise alone: of the number that the bounds left, and not of what they cut.
Each holds for its own cell; of many cells a twentieth may lie outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.base.numbers import up
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace, Mechanism

CONFIDENCE = 0.95
"""Of each interval."""
_MISS = 1 - CONFIDENCE


def half_width(mechanism: Mechanism, miss: float = _MISS) -> float:
    """The least t with P(|noise| > t) ≤ miss, whole for whole noise, and else rounded up.

    >>> half_width(DiscreteLaplace(scale=2.0)), half_width(Gaussian(sigma=1.0))
    (6.0, 1.95997)
    """
    if isinstance(mechanism, DiscreteLaplace):
        # P(|noise| ≥ n) = 2r^n/(1 + r), where r = e^(−1/b)
        ratio = math.exp(-1 / mechanism.scale)
        least = mechanism.scale * math.log(2 / (miss * (1 + ratio))) - 1
        width = max(0, math.ceil(least * (1 + 1e-12)))
        return float(width)
    scale = _scale_of(mechanism)
    if isinstance(mechanism, Laplace):
        return _rounded(scale * math.log(1 / miss))
    from scipy.special import ndtri

    return _rounded(-scale * float(ndtri(miss / 2)))


def ratio_interval(
    total: float, count: float, over: Mechanism, under: Mechanism, ends: tuple[float, float]
) -> tuple[float, float]:
    """Every mean m within the ends for which total − m count is noise of its own 95 %.

    The released total and count of a true total s and count n differ from them by noise Y and Z; of
    the true mean m = s/n it holds that total − m count = Y − mZ, whose law is known for every m
    (Fieller 1954). So the set of all m for which |total − m count| is at most the 95 % point of
    |Y − mZ| holds the true mean with that probability; told is the least interval around it. Whole
    noise is within 1/2 of continuous noise of the same scale, and wider by that is what is told.

    Args:
        total: released sum, in steps from the middle.
        count: released number.
        over: noise of the total.
        under: noise of the count.
        ends: between which a mean lies, whatever the data are.
    """

    def inside(m: float) -> bool:
        return abs(total - m * count) <= _difference(over, under, abs(m))

    low, high = ends
    near = min(max(total / count if count > 0 else 0.0, low), high)
    if not inside(near):
        return near, near
    points = np.linspace(low, high, 65)
    held = [m for m in (*points, near) if inside(m)]
    return _edge(inside, min(held), low), _edge(inside, max(held), high)


def _edge(inside: Callable[[float], bool], within: float, end: float) -> float:
    """Where the set ends between a point of it and an end; a point outside, to be wide enough."""
    if inside(end):
        return end
    # The set may leave and come again between two points of the grid: the next point outside.
    outside = end
    for _ in range(60):
        middle = (within + outside) / 2
        within, outside = (middle, outside) if inside(middle) else (within, middle)
    return outside


def _difference(over: Mechanism, under: Mechanism, m: float) -> float:
    """The 95 % point of |Y − mZ|, and what wholeness may add to it."""
    a, b = _scale_of(over), m * _scale_of(under)
    whole = sum(
        factor / 2
        for factor, each in ((1.0, over), (m, under))
        if isinstance(each, DiscreteLaplace)
    )
    if isinstance(over, Gaussian):
        return _normal(math.hypot(a, b)) + whole
    return _laplace_sum(a, b) + whole


def _normal(deviation: float) -> float:
    from scipy.special import ndtri

    return deviation * -float(ndtri(_MISS / 2))


def _laplace_sum(a: float, b: float) -> float:
    """The t with P(|Y + Z| > t) = 5 % for Laplace laws of scales a and b, rounded up.

    P = (a² e^(−t/a) − b² e^(−t/b)) / (a² − b²), and (1 + t/2a) e^(−t/a) where both are equal.
    """
    a, b = max(a, b), min(a, b)
    if b < 1e-9 * a:
        return a * math.log(1 / _MISS) * (1 + 1e-6)
    b = min(b, a * (1 - 1e-6))  # where both are equal the difference of both terms is lost
    a = max(a, b * (1 + 1e-6))

    def beyond(t: float) -> float:
        return (a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (a * a - b * b)

    low, high = 0.0, a * (2 + math.log(2 / _MISS))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > _MISS else (low, middle)
    return high * (1 + 1e-5)


def _scale_of(mechanism: Mechanism) -> float:
    scale = mechanism.noise_scale
    assert scale is not None
    return scale


def _rounded(value: float) -> float:
    return float(up(value))
