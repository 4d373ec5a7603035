"""The largest chance of a region under the null, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.joint import (
    Box,
    Region,
    clopper_pearson,
    likelihood_region,
    null_supremum,
    region_probability,
)
from dpaudit.auditing.evidence.types import PairCounts


def outcome_probabilities(n: int, m: int, p: float, q: float) -> np.ndarray:
    return np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q))


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
