"""Nodes and weights for integrals over noise whose density has corners."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np

from dpaudit.mechanisms.pairs import Floats

_NODES = 24


def panels(low: float, high: float, corners: Floats, width: float = 2.0) -> tuple[Floats, Floats]:
    """Gauss–Legendre nodes and weights on [low, high], where all is smooth between corners and 0.

    Panels have a width of at most ``width``; corners are of any order, and may lie outside.
    """
    inside = corners[(corners > low) & (corners < high)]
    ends = np.unique(np.concatenate([[low, 0.0, high], inside]))
    cuts = [np.linspace(a, b, 1 + math.ceil((b - a) / width))[:-1] for a, b in pairwise(ends)]
    starts = np.concatenate(cuts)
    widths = np.diff(np.append(starts, high))
    nodes, weights = _unit()
    places = starts[:, None] + widths[:, None] * nodes
    return places.ravel(), (widths[:, None] * weights).ravel()


@cache
def _unit() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2
