"""Independent truth for the tests of the accounting layer, and what they do with intervals."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from dpaudit.accounting import Filter, Interval, PLDAccountant
from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.base.errors import BudgetExceededError
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)
from dpaudit.plan import Invocation


def exact_gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """δ of N(μ, 1) against N(0, 1), to sixty digits (Balle and Wang 2018, Theorem 8)."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def ends(interval: Interval) -> tuple[float, float]:
    """Both ends of an interval that must have them, in order."""
    assert interval.lower is not None
    assert interval.lower <= interval.upper
    return interval.lower, interval.upper


def pld_epsilon(*invocations: Invocation, delta: float = 1e-5) -> Interval:
    return PLDAccountant().compose(invocations).epsilon(delta)


def pld_delta(*invocations: Invocation, epsilon: float) -> Interval:
    return PLDAccountant().compose(invocations).delta(epsilon)


def fill(budget: Filter, invocation: Invocation, most: int = 10_000) -> int:
    """How many times a filter admits an invocation."""
    for done in range(most):
        try:
            budget.admit(invocation)
        except BudgetExceededError:
            return done
    return most


PAIRS: list[DirectedPair] = [
    PlainPair(GaussianPair(0.8)),
    PlainPair(LaplacePair(Fraction(1, 3))),
    PlainPair(approximate_pair(0.7, 1e-3)),
    PlainPair(DiscreteLaplace(3.0).pair(2)),
    PlainPair(DiscreteGaussian(2.0).pair(1)),
    RemovedPair(GaussianPair(1.0), 0.05),
    AddedPair(GaussianPair(1.0), 0.05),
    RemovedPair(approximate_pair(0.7, 1e-3), 0.2),
    RemovedPair(LaplacePair(Fraction(1, 2)), 0.3),
]
"""Laws that a grid must dominate: with atoms and without, sampled and whole."""
