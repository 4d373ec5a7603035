"""Adaptive composition of the exponential mechanism, by the value of the best adversary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dpaudit.accounting.accountant import Accountant, AccountantName, Composition, Interval
from dpaudit.accounting.closed_forms.additive import zcdp_epsilon
from dpaudit.accounting.terms import attained, pure_sum, terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.pairs import BoundedRangePair, Floats
from dpaudit.mechanisms.rounding import concentration, up
from dpaudit.plan import Invocation

_MOST_WORK, _OF_A_CALL = 1e8, 3000
"""Cells of all steps, some ten nanoseconds each, and what a call of numpy takes in them."""
_FINEST, _FINE, _COARSEST = 64, 16, 4
"""Cells of the grid to one ε; a quarter of the work is allowed for more than are fine enough."""
_SMALLEST, _LARGEST = 1e-290, 30.0
_SMALLEST_DELTA = 1e-20
_SLACK = 1e-14
"""Relative rounding of one step: some twenty operations on positive numbers."""


@dataclass(frozen=True)
class BoundedRangeComposition(Composition):
    """The largest δ(x) that ``count`` choices of bounded range ε may have, chosen adaptively.

    Given the first of n choices, the others have at most the curve V of n − 1, so that
    V_n(x) = max E[V_{n−1}(x − L)] over the laws of its loss L, with V_0(x) = (1 − e^x)+. A law of
    losses within [t − ε, t] is a post-processing of the two losses t and t − ε, of P-mass
    p(t) = (1 − e^(t−ε))/(1 − e^−ε) and its rest, and E is a divergence, hence the largest for
    those (Dong, Durfee and Rogers 2020, *Optimal differential privacy composition for exponential
    mechanisms*, whose recursion for adaptive composition this is):

        V_n(x) = max over t in [0, ε] of p(t) V_{n−1}(x − t) + (1 − p(t)) V_{n−1}(x − t + ε).

    It is computed on the grid kε/m. From below with t on that grid alone; from above with the
    chords of V in e^x, in which it is convex. Between two places of the grid the bound is then
    a + bu + c/u with u = e^t: at most the parabola with its ends and its largest curvature. V(−x)
    follows from V(x), as P and Q may change places. Of choices that are fixed beforehand less is
    true; no plan says that they are.

    Attributes:
        span: ε, or the largest of several.
        count: n, of all uses.
        cap: the pure ε of the same uses.
        cells: m.
        is_attained: whether all uses have that ε and cost as declared: then there is a lower end.
    """

    span: float
    count: int
    cap: float
    cells: int
    is_attained: bool = True

    def epsilon(self, delta: float) -> Interval:
        """Where the chords cross δ, and the last place of the grid with a larger one."""
        x, low, high = self._curves
        above = int(np.searchsorted(-high, -delta))
        below = int(np.searchsorted(-low, -delta))
        lower = (float(x[below - 1]) if below else 0.0) if self.is_attained and delta > 0 else None
        if above == 0:
            return Interval(lower, 0.0)
        if above == x.size or delta == 0:
            return Interval(lower, self.cap)
        share = (high[above - 1] - delta) / (high[above - 1] - high[above])
        upper = float(x[above - 1] + np.log1p(share * np.expm1(x[1])))
        return Interval(lower, min(up(upper, 8) * (1 + _SLACK), self.cap))

    def delta(self, epsilon: float) -> Interval:
        """The chord at ε, and the value at the next place of the grid."""
        x, low, high = self._curves
        if epsilon >= self.cap:
            return Interval(None, 0.0)
        at = int(np.searchsorted(x, epsilon, side="right"))
        lower = (float(low[at]) if at < x.size else 0.0) if self.is_attained else None
        if at == x.size:
            return Interval(lower, float(high[-1]))
        share = np.expm1(epsilon - x[at - 1]) / np.expm1(x[1]) * (1 - _SLACK)
        upper = float(high[at - 1] + share * (high[at] - high[at - 1]))
        return Interval(lower, min(upper * (1 + _SLACK), 1.0))

    @property
    def native(self) -> Mapping[str, Any]:
        """The range, the number of uses, and the cells of the grid."""
        return {"range": self.span, "uses": self.count, "cells": self.cells}

    @cached_property
    def _curves(self) -> tuple[Floats, Floats, Floats]:
        """The grid from 0 on, and both ends of V on it."""
        return _values(self.span, self.count, self.cells)


class BoundedRangeAccountant(Accountant):
    """Adaptive choices by the exponential mechanism (Dong, Durfee and Rogers 2020)."""

    kind: ClassVar[str] = AccountantName.BOUNDED_RANGE

    def compose(self, invocations: Sequence[Invocation]) -> BoundedRangeComposition:
        """Count the uses; where they differ in ε all count as those of the largest.

        Raises:
            UnsupportedError: if one is sampled or of another kind, or they are too many.
        """
        parts = terms(invocations)
        spans = []
        for part in parts:
            if part.amplification is not None or not isinstance(part.pair, BoundedRangePair):
                raise UnsupportedError(
                    f"{part.invocation.describe()} is not of bounded range, or is sampled; the "
                    "bounded-range accountant takes nothing else."
                )
            spans.append(part.pair.epsilon)
        span, count = max(spans, default=0.0), sum(part.count for part in parts)
        cells = _cells(span, count) if spans else _COARSEST
        known = len({*spans}) == 1 and attained(parts)
        return BoundedRangeComposition(span, count, pure_sum(parts), cells, known)


def _reach(span: float, count: int) -> float:
    """Where the grid ends: at the pure ε, or where δ is of no interest."""
    return min(count * span, zcdp_epsilon(count * concentration(span, 0.125), _SMALLEST_DELTA))


def _cells(span: float, count: int) -> int:
    """The finest grid within the work that is allowed, if there is one."""
    cells = _FINEST
    while cells >= _COARSEST and _SMALLEST <= span <= _LARGEST:
        work = count * cells * (_reach(span, count) / span * cells + _OF_A_CALL)
        if work <= (_MOST_WORK if cells <= _FINE else _MOST_WORK / 4):
            return cells
        cells //= 2
    raise UnsupportedError(
        f"{count} choices of range {span:g} are too many, or too large, for the recursion of the "
        "bounded-range accountant."
    )


@lru_cache(maxsize=64)
def _values(span: float, count: int, cells: int) -> tuple[Floats, Floats, Floats]:
    if span == 0:
        return np.zeros(1), np.zeros(1), np.zeros(1)
    step = span / cells
    places = np.arange(math.ceil(_reach(span, count) / step) + 2)
    x = np.asarray(places * step, dtype=np.float64)
    low, high = np.zeros(x.size), np.zeros(x.size)
    for _ in range(count):
        low, high = _once_more(low, high, x, cells)
    low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    for each in (x, low, high):
        each.setflags(write=False)
    return x, low, high


def _once_more(low: Floats, high: Floats, x: Floats, cells: int) -> tuple[Floats, Floats]:
    """Both ends of V_n from those of V_{n−1}; the grid is x ≥ 0."""
    step = float(x[1])
    span, size, pad = cells * step, x.size, cells + 1
    t = np.arange(cells + 1) * step
    whole = -math.expm1(-span)
    chance, rest = -np.expm1(t - span) / whole, np.expm1(t) * (math.exp(-span) / whole)
    below, above = _extended(low, 0.0, x, pad), _extended(high, float(high[-1]), x, pad)
    drops = above[:-1] - above[1:]
    bend = 2 * math.expm1(step) * math.exp(step) / whole
    bends = np.maximum(bend * (drops[:-cells] - math.exp(-span) * drops[cells:]), 0.0)
    least, most, left = low, high, high
    for at in range(1, cells + 1):
        near, far = (
            slice(pad - at, pad - at + size),
            slice(pad - at + cells, pad - at + cells + size),
        )
        right = chance[at] * above[near] + rest[at] * above[far]
        most = np.maximum(most, _largest_of_parabola(left, right, bends[near]))
        least = np.maximum(least, chance[at] * below[near] + rest[at] * below[far])
        left = right
    return least * (1 - _SLACK), np.minimum(most * (1 + _SLACK), 1.0)


def _extended(values: Floats, end: float, x: Floats, pad: int) -> Floats:
    """V at ``pad`` places more to either side: V(−x) = 1 − e^−x + e^−x V(x)."""
    mirrored = np.full(pad + 1, end)
    mirrored[: values.size] = values[: pad + 1]
    places = np.arange(pad, 0, -1) * x[1]
    before = -np.expm1(-places) + np.exp(-places) * mirrored[:0:-1]
    return np.concatenate([before, values, np.full(pad, end)])


def _largest_of_parabola(left: Floats, right: Floats, bend: Floats) -> Floats:
    """The largest value of parabolas between two ends; ``bend`` is curvature times width²."""
    rise = right - left
    inside = 2 * np.abs(rise) < bend
    curved = (left + right) / 2 + bend / 8 + rise * rise / (2 * np.where(inside, bend, 1.0))
    largest: Floats = np.where(inside, curved, np.maximum(left, right))
    return largest
