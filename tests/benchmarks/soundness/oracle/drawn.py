"""Laws of Gaussian noise whose unit is drawn several times, replaced, cut off or allocated.

Each is the law of neighbours that exist, so that it is a lower bound; where no neighbours cost
more, it is the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from tests.benchmarks.soundness.oracle.laws import Floats, GaussianLaw, Law, Tails
from tests.benchmarks.soundness.oracle.sampled import AddedLaw, RemovedLaw

EXACT = ("rows", "replaced", "again", "taken", "turns", "shares")
"""Those of which no neighbours cost more (of draws with replacement under add-remove)."""


@dataclass(frozen=True)
class MixedLaw(Law):
    """Normal laws at shifts of at least 0 against those at shifts of at most 0, with weights."""

    p: tuple[tuple[float, float], ...]
    q: tuple[tuple[float, float], ...]

    def _loss(self, t: Floats) -> Floats:
        def gain(parts: tuple[tuple[float, float], ...]) -> Floats:
            exponents = [s * (t - s / 2) for s, _ in parts]
            weighted = [(w, e) for (_, w), e in zip(parts, exponents, strict=True)]
            near = sum(w * np.expm1(np.minimum(e, 500)) for w, e in weighted)
            logs = [math.log(w) + e for w, e in weighted]
            far = np.logaddexp.reduce(np.array(logs), axis=0)
            return np.where(np.abs(near) < 0.5, np.log1p(np.clip(near, -0.5, 0.5)), far)

        return gain(self.p) - gain(self.q)

    def _output(self, x: Floats) -> Floats:
        """Where the loss is x, by bisection."""
        shifts = [s for s, _ in (*self.p, *self.q)]
        low = np.full(np.shape(x), min(shifts) - 39.0)
        high = np.full(np.shape(x), max(shifts) + 39.0)
        for _ in range(70):
            middle = (low + high) / 2
            under = self._loss(middle) <= x
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return high

    def above(self, x: Floats) -> Tails:
        t = self._output(np.asarray(x, dtype=np.float64))
        p, q = (sum(w * ndtr(s - t) for s, w in parts) for parts in (self.p, self.q))
        return p, q

    def below(self, x: Floats) -> Tails:
        t = self._output(np.asarray(x, dtype=np.float64))
        p, q = (sum(w * ndtr(t - s) for s, w in parts) for parts in (self.p, self.q))
        return p, q


def law(base: Law, drawn: tuple[Any, ...], way: int) -> Law:
    """The law of a unit that leaves (0) or joins (1); the base is that of one declared shift."""
    kind, *facts = drawn
    if kind == "allocated":  # the first release of an epoch alone is seen
        rate = facts[1] / facts[0] if len(facts) > 1 else 1 / facts[0]
        return base if rate >= 1 else (RemovedLaw, AddedLaw)[way](base, rate)
    assert isinstance(base, GaussianLaw)
    if kind == "rows":
        return _times(base.mu, facts[1], facts[0], way)
    if kind == "again":
        return _times(base.mu * facts[2], facts[0], 1 / facts[1], way)
    if kind == "shares":
        rest = ((0.0, 1 - math.fsum(facts[1])),) if math.fsum(facts[1]) < 1 else ()
        parts = [(share * base.mu, w) for share, w in zip(*facts, strict=True)]
        return _against_nothing([*rest, *parts], way)
    if kind == "replaced":
        q, half = facts[0], base.mu / 2
        rest = ((0.0, 1 - q),) if q < 1 else ()
        return MixedLaw((*rest, (half, q)), (*rest, (-half, q)))
    rate, shift = facts[0], base.mu
    if kind == "taken":  # all others are as far from the unit as they can be
        rate, shift = facts[0] / facts[-1], 2 * shift
    if kind == "truncated":  # all others add nothing
        q, most, units = facts
        full = float(binom.sf(most - 1, units - 1, q))
        taken = most / units * float(binom.sf(most, units, q)) * (1 - 1e-9)
        rate = q * (1 - full) + taken
    one = GaussianLaw(shift)
    if rate >= 1:
        return one
    return (RemovedLaw, AddedLaw)[way](one, rate)


def _times(step: float, times: int, rate: float, way: int) -> Law:
    weights = binom.pmf(np.arange(times + 1), times, rate)
    parts = [(j * step, float(w)) for j, w in enumerate(weights) if w > 1e-250]
    return _against_nothing(parts, way)


def _against_nothing(parts: list[tuple[float, float]], way: int) -> Law:
    if way == 0:
        return MixedLaw(tuple(parts), ((0.0, 1.0),))
    return MixedLaw(((0.0, 1.0),), tuple((-s, w) for s, w in parts))
