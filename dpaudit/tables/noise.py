"""How far noise moves a released number: intervals that hold with at least the stated probability.

An interval speaks of the noise alone: of the number that the bounds left, and not of what they cut.
Each holds for its own cell; of many cells a twentieth may lie outside.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.numbers import up
from dpaudit.mechanisms import AdditiveNoise, DiscreteLaplace, Gaussian, Mechanism

CONFIDENCE = 0.95
"""Of each interval."""
_MISS = 1 - CONFIDENCE
_CELLS = 512
"""Of the grid of means."""


def half_width(mechanism: Mechanism, miss: float = _MISS) -> float:
    """The least t with P(|noise| > t) ≤ miss, whole for whole noise, and else rounded up.

    >>> half_width(DiscreteLaplace(scale=2.0)), half_width(Gaussian(sigma=1.0))
    (6.0, 1.95997)
    """
    assert isinstance(mechanism, AdditiveNoise)
    width = mechanism.accuracy(1 - miss)
    return width if isinstance(mechanism, DiscreteLaplace) else float(up(width))


def ratio_intervals(
    totals: NDArray[Any],
    counts: NDArray[Any],
    over: Mechanism,
    under: Mechanism,
    ends: tuple[float, float],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every mean m within the ends for which total − m count is noise of its own 95 %.

    The released total and count of a true total s and count n differ from them by noise Y and Z; of
    the true mean m = s/n it holds that total − m count = Y − mZ, whose law is known for every m
    (Fieller 1954). So the set of all m for which |total − m count| is at most the 95 % point q(m)
    of |Y − mZ| holds the true mean with that probability; told is the least interval around it.

    The set need not be an interval, and nothing of it is missed: as both laws are symmetric with
    one peak, q grows with |m| (Anderson 1955), so that within a cell of a grid it is at most that
    of the end further from 0; with that instead, the m of a cell are an interval in closed form.
    Where nothing fits all means are told. Whole noise is less far out than continuous noise of the
    same scale that is rounded, and wider by that half is what is told.

    Args:
        totals: released sums, in steps from the middle.
        counts: released numbers.
        over: noise of the totals.
        under: noise of the counts.
        ends: between which a mean lies, whatever the data are.
    """
    places = np.linspace(*ends, _CELLS + 1)
    left, right = places[:-1], places[1:]
    reach = np.array(
        [mean_reach(over, under, m) for m in np.maximum(-left, right).tolist()], dtype=np.float64
    )
    found = np.empty((2, len(totals)))
    for number, (total, count) in enumerate(zip(totals, counts, strict=True)):
        with np.errstate(over="ignore"):
            one, other = (total - reach) / (count or 1e-300), (total + reach) / (count or 1e-300)
        lows = np.maximum(left, np.minimum(one, other))
        highs = np.minimum(right, np.maximum(one, other))
        held = lows <= highs
        found[:, number] = (lows[held].min(), highs[held].max()) if held.any() else ends
    return found[0], found[1]


def mean_reach(over: Mechanism, under: Mechanism, m: float) -> float:
    """The 95 % point of |Y − mZ|, and what wholeness may add: n times the error of a mean of n."""
    a, b = _scale_of(over), m * _scale_of(under)
    whole = sum(
        factor / 2
        for factor, each in ((1.0, over), (m, under))
        if isinstance(each, DiscreteLaplace)
    )
    if isinstance(over, Gaussian):
        return _normal(math.hypot(a, b)) + whole
    return _laplace_sum(a, b) + whole


def _normal(deviation: float, miss: float = _MISS) -> float:
    from scipy.special import ndtri

    return -deviation * float(ndtri(miss / 2))


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
