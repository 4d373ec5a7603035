"""Power of the joint test against enumeration of all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.joint import Box, critical_region, fewest_runs, joint_p_value, power
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.base.errors import InputError


def least_rejected(other, n, epsilon):
    """The fewest hits that refute beside ``other`` ones, as p-values fall with the hits."""
    low, high = -1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        refuted = joint_p_value(PairCounts(middle, n, other, n), epsilon, 0.0) <= 0.05
        low, high = (low, middle) if refuted else (middle, high)
    return high


@pytest.mark.parametrize(("n", "p", "q", "epsilon"), [(30, 0.8, 0.2, 0.5), (40, 0.6, 0.1, 0.8)])
def test_power_agrees_with_enumeration_of_the_test(n, p, q, epsilon):
    least = np.array([least_rejected(other, n, epsilon) for other in range(n + 1)])
    truth = binom.pmf(np.arange(n + 1), n, q) @ binom.sf(least - 1, n, p)
    assert 0.5 < truth < 0.99
    assert power(p, q, n, epsilon, 0.0) == pytest.approx(truth, abs=0.05)


def test_power_at_the_boundary_is_at_most_the_level():
    assert power(0.5, 0.5 / math.e, 2000, 1.0, 0.0) <= 0.05


def test_fewest_runs_is_where_the_extreme_outcome_becomes_unlikely():
    q = np.linspace(0, 1, 20001)
    for epsilon, delta in ((0.0, 0.0), (1.0, 1e-5), (3.0, 0.1)):
        chance = np.minimum(1, math.exp(epsilon) * q + delta) * (1 - q)
        runs = fewest_runs(epsilon, delta, 0.05)
        assert chance.max() ** runs <= 0.05 < chance.max() ** (runs - 1)


def test_the_critical_region_keeps_the_level():
    region = critical_region(50, 1.0, 0.0, 0.05, Box())
    least = region.least(np.arange(51))
    for q in np.linspace(0.01, 1 / math.e, 50):
        chance = binom.pmf(np.arange(51), 50, q) @ binom.sf(least - 1, 50, min(1, math.e * q))
        assert chance <= 0.05


def test_too_few_runs_have_no_power():
    assert power(1.0, 0.0, 3, 1.0, 0.0) < 1e-6
    assert power(1.0, 0.0, 7, 1.0, 0.0) == pytest.approx(1.0)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="error is 0"):
        fewest_runs(1.0, 0.0, 0.0)
