"""How much the kink of (1 − e^(−u))₊ gains when losses are moved to a grid: the function G.

Derived in :mod:`dpaudit.accounting.pld.law`.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.mechanisms.pairs import Floats

_NEARBY = 2.5
NEAR = 1 - 2 * math.exp(-_NEARBY * _NEARBY / 2)
"""Least probability that |D| ≤ r s + m, with r = 2.5."""


def layers(s: float, m: float, log_scale: float) -> tuple[Floats, Floats, float]:
    """(reach, falls, rest) with E G(|S − ε|) ≤ Σ falls[j] P[|S̃ − ε| ≤ reach[j]] / NEAR + rest."""
    # The rest is multiplied by a probability of up to one: it must be far below the scale of δ.
    reach = s * math.sqrt(2 * (max(-log_scale, 0.0) + 40.0)) + m
    near = np.linspace(0.0, 4 * s + m, 17)
    edges = np.concatenate([near, np.geomspace(near[-1], reach, 13)[1:]])
    heights = _excess_bound(edges, s, m)
    reaches = (edges[1:] + _NEARBY * s + m) * (1 + 1e-12)
    return reaches, heights[:-1] - heights[1:], float(heights[-1])


def _excess_bound(distance: Floats, s: float, m: float) -> Floats:
    """G: a decreasing bound on the excess at |u| = distance, on both sides of the kink."""
    from scipy.special import ndtr

    root = math.sqrt(2 * math.pi)
    right = np.exp(np.minimum(s * s / 2 - distance, 700.0)) * s * root * ndtr(s - distance / s)
    if s < 1:
        # The variance of e^(−D), of mean 1, is at most e^(2s²) − 1.
        step = np.expm1(np.minimum(distance, 700.0))
        variance = math.expm1(2 * s * s)
        right = np.minimum(right, np.exp(-distance) * _mean_excess(variance, step))
    beyond = distance - m
    left = np.where(beyond >= 0, s * root * ndtr(-beyond / s), np.inf)
    left = np.minimum(left, _mean_excess(s * s, beyond))
    bound = np.minimum(np.maximum(left, right), 1.0)
    monotone: Floats = np.maximum.accumulate(bound[::-1])[::-1]
    return monotone


def _mean_excess(variance: float, level: Floats) -> Floats:
    """E(X − a)₊ ≤ (√(v + a²) − a)/2 for any X of mean at most 0 and variance at most v."""
    hypot = np.sqrt(variance + level * level)
    above = variance / (2 * (hypot + np.abs(level)))
    value: Floats = np.where(level > 0, above, (hypot - level) / 2)
    return value
