"""The joint test against enumeration of all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.joint import (
    clopper_pearson,
    joint_lower_bound,
    joint_p_value,
    likelihood_ratio,
)
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.base.errors import InputError


def outcome_probabilities(n: int, m: int, p: float, q: float) -> np.ndarray:
    return np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q))


def table(n: int, m: int, function) -> np.ndarray:
    return np.array(
        [[function(PairCounts(a, n, b, m)) for b in range(m + 1)] for a in range(n + 1)]
    )


@pytest.mark.parametrize(("n", "m", "epsilon", "delta"), [(14, 14, 0.5, 0.0), (9, 17, 0.2, 0.05)])
def test_p_value_is_valid_by_enumeration(n, m, epsilon, delta):
    values = table(n, m, lambda counts: joint_p_value(counts, epsilon, delta))
    for error in (0.2, 0.05, 0.01):
        rejected = values <= error
        assert rejected.any()
        sizes = []
        for q in np.linspace(0, 1, 401):
            p = min(1.0, math.exp(epsilon) * q + delta)
            # The boundary and the inside of the null.
            sizes += [outcome_probabilities(n, m, s * p, q)[rejected].sum() for s in (1.0, 0.9)]
        assert max(sizes) <= error + 1e-12
        assert max(sizes) > error / 5  # not valid merely by never rejecting


def test_lower_bound_covers_by_enumeration():
    n = 8
    bounds = table(n, n, lambda counts: joint_lower_bound(counts, 0.02, 0.9))
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        for q in np.linspace(0, 1, 101):
            p = min(1.0, math.exp(epsilon) * q + 0.02)
            assert outcome_probabilities(n, n, p, q)[bounds > epsilon].sum() <= 0.1


def test_likelihood_ratio_is_a_minimum_and_monotone():
    n, m, epsilon, delta = 12, 15, 0.4, 0.03
    a, b = np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")
    value = likelihood_ratio(a, b, n, m, epsilon, delta)
    assert (np.diff(value, axis=0) >= -1e-9).all()
    assert (np.diff(value, axis=1) <= 1e-9).all()
    q = np.linspace(1e-9, (1 - delta) / math.exp(epsilon) - 1e-9, 20001)
    p = math.exp(epsilon) * q + delta
    free = binom.logpmf(9, n, 9 / n) + binom.logpmf(3, m, 3 / m)
    constrained = (binom.logpmf(9, n, p) + binom.logpmf(3, m, q)).max()
    assert value[9, 3] == pytest.approx(free - constrained, abs=1e-6)


def test_rule_of_three_at_zero_false_hits():
    bound = joint_lower_bound(PairCounts(10_000, 10_000, 0, 10_000), 0.0, 0.95)
    assert bound == pytest.approx(math.log(10_000 / -math.log(0.05)), abs=0.01)


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_large_counts_approach_the_normal_bound(n):
    p, q = 0.5, 0.5 / math.e
    counts = PairCounts(round(n * p), n, round(n * q), n)
    error = 1.6449 * math.sqrt((1 - p) / (n * p) + (1 - q) / (n * q))
    bound = joint_lower_bound(counts, 0.0, 0.95)
    assert 1 - error - 2e-3 <= bound <= 1 - error + 5e-4


def test_beats_two_clopper_pearson_bounds():
    counts = PairCounts(5000, 10_000, 1839, 10_000)
    low, _ = clopper_pearson(5000, 10_000, 0.05)
    _, high = clopper_pearson(1839, 10_000, 0.05)
    assert joint_lower_bound(counts, 0.0) > math.log(low / high) + 0.01


def test_bound_shrinks_with_confidence_and_delta():
    counts = PairCounts(300, 1000, 50, 1000)
    bounds = [joint_lower_bound(counts, 0.01, c) for c in (0.5, 0.9, 0.99, 1 - 1e-6)]
    assert bounds == sorted(bounds, reverse=True)
    assert joint_lower_bound(counts, 0.1) < joint_lower_bound(counts, 0.01)


def test_nothing_is_claimed_without_evidence():
    counts = PairCounts(50, 100, 50, 100)
    assert joint_lower_bound(counts, 0.0) == 0.0
    assert joint_p_value(counts, 0.5, 0.0) == 1.0


def test_bad_input_is_named():
    counts = PairCounts(1, 2, 1, 2)
    with pytest.raises(InputError, match="delta is 1"):
        joint_p_value(counts, 0.5, 1)
    with pytest.raises(InputError, match=r"confidence is 1\.0"):
        joint_lower_bound(counts, 0.0, 1.0)
