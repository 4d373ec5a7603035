"""Quantiles of the privacy loss of symmetric pairs, to know where a loss distribution ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.mechanisms import DominatingPair, FinitePair, GaussianPair, LaplacePair

__all__ = ["lower_quantile", "upper_quantile"]


def upper_quantile(pair: DominatingPair, tail: float) -> float:
    """A loss with at most about ``tail`` of the P-mass above it, mass at infinity apart."""
    if isinstance(pair, GaussianPair):
        return pair.mu * pair.mu / 2 + pair.mu * _normal_reach(tail)
    if isinstance(pair, LaplacePair):
        return pair.epsilon
    if isinstance(pair, FinitePair):
        beyond = np.cumsum(pair.p[::-1])[::-1]
        kept = np.flatnonzero(beyond > tail)
        return float(pair.losses[kept[-1]] if kept.size else pair.losses[0])
    infinite = float(pair.above(math.inf)[0])
    return _search(lambda loss: float(pair.above(loss)[0]) - infinite <= tail)


def lower_quantile(pair: DominatingPair, tail: float) -> float:
    """A loss with at most about ``tail`` of the P-mass below it."""
    if isinstance(pair, GaussianPair):
        return pair.mu * pair.mu / 2 - pair.mu * _normal_reach(tail)
    if isinstance(pair, LaplacePair):
        return max(-pair.epsilon, pair.epsilon + 2 * math.log(min(2 * max(tail, 1e-300), 1.0)))
    if isinstance(pair, FinitePair):
        kept = np.flatnonzero(np.cumsum(pair.p) > tail)
        return float(pair.losses[kept[0]] if kept.size else pair.losses[-1])
    return -_search(lambda loss: float(pair.below(-loss)[0]) <= tail)


def _normal_reach(tail: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(max(tail, 1e-300)))


def _search(enough: Callable[[float], bool]) -> float:
    """The least loss, to a thousandth of its distance, from which on ``enough`` holds."""
    high = 1e-6
    while not enough(high):
        high *= 2
        if high > 1e15:
            return high
    low = -high if enough(-high) else (0.0 if enough(0.0) else high / 2)
    if enough(low):
        return low
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
