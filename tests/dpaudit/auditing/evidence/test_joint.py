"""The joint test against enumeration of all outcomes.

The largest chance of a region under the null, against brute force.
Power of the joint test against enumeration of all outcomes.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.events import PairCounts
from dpaudit.auditing.evidence.two_counts import (
    Box,
    Region,
    clopper_pearson,
    critical_region,
    fewest_runs,
    joint_lower_bound,
    joint_p_value,
    likelihood_ratio,
    likelihood_region,
    null_supremum,
    power,
    region_probability,
)
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


def test_supremum_is_above_and_close_to_a_brute_force_maximum():
    n, m, epsilon, delta = 40, 30, 0.7, 0.01
    region = likelihood_region(n, m, epsilon, delta, 1.4)
    least = region.least(np.arange(m + 1))
    inside = np.arange(n + 1)[:, None] >= least[None, :]
    brute = max(
        outcome_probabilities(n, m, min(1.0, math.exp(epsilon) * q + delta), q)[inside].sum()
        for q in np.linspace(0, 1, 4001)
    )
    bound = null_supremum(region, epsilon, delta, Box())
    assert brute <= bound <= 1.05 * brute


def test_probability_of_a_region_matches_a_direct_sum():
    region = Region(50, 60, lambda b: np.minimum(51, b + 5))
    p, q = np.array([0.4, 0.05, 1.0]), np.array([0.3, 0.0, 0.5])
    inside = np.arange(51)[:, None] >= np.minimum(51, np.arange(61) + 5)[None, :]
    direct = [outcome_probabilities(50, 60, *pair)[inside].sum() for pair in zip(p, q, strict=True)]
    np.testing.assert_allclose(region_probability(region, p, q), direct, rtol=1e-7, atol=1e-11)


def test_no_null_in_the_box_has_no_probability():
    region = likelihood_region(20, 20, 0.0, 0.0, 1.0)
    assert null_supremum(region, 0.0, 0.0, Box(p_low=0.9, q_high=0.1)) == 0.0


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (10, 10), (3, 10), (500, 1000)])
def test_intervals_hold_the_counts_at_their_ends(hits, runs):
    low, high = clopper_pearson(hits, runs, 0.05)
    assert low <= hits / runs <= high
    assert hits == 0 or binom.sf(hits - 1, runs, low) == pytest.approx(0.025)
    assert hits == runs or binom.cdf(hits, runs, high) == pytest.approx(0.025)


def test_intervals_cover_at_their_error_by_enumeration():
    ends = np.array([clopper_pearson(hits, 30, 0.1) for hits in range(31)])
    for chance in np.linspace(0.01, 0.99, 50):
        missed = (ends[:, 0] > chance) | (ends[:, 1] < chance)
        assert binom.pmf(np.arange(31), 30, chance)[missed].sum() <= 0.1


def test_a_box_shares_its_error():
    box = Box.around(PairCounts(3, 10, 5, 20), 0.1)
    assert (box.p_low, box.p_high) == clopper_pearson(3, 10, 0.05)
    assert (box.q_low, box.q_high) == clopper_pearson(5, 20, 0.05)


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


def test_bad_numbers_of_runs_are_named():
    with pytest.raises(InputError, match="error is 0"):
        fewest_runs(1.0, 0.0, 0.0)
