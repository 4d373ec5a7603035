from __future__ import annotations

import math

import mpmath
import pytest

from dpaudit.auditing.evidence.gdp_estimate import gdp_delta, gdp_epsilon, gdp_estimate
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.multiplicity import (
    best_lower_bound,
    mean_log_e_value,
    share_error,
    split_error,
)
from dpaudit.auditing.evidence.types import Estimate, LowerBound, PairCounts
from dpaudit.errors import InputError


def test_gaussian_delta_matches_mpmath():
    mpmath.mp.dps = 40
    for epsilon, mu in ((0.0, 0.3), (1.0, 1 / 3.7306), (4.0, 1.0), (30.0, 5.0)):
        a = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        b = mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        expected = float(a - mpmath.e**epsilon * b)
        assert gdp_delta(epsilon, mu) == pytest.approx(expected, rel=1e-8)


def test_calibrated_sigma_gives_epsilon_one():
    assert gdp_epsilon(1 / 3.7306, 1e-5) == pytest.approx(1.0, abs=1e-4)
    assert gdp_epsilon(2 / 3.7306, 1e-5) == pytest.approx(2.155, abs=1e-3)
    assert gdp_epsilon(1.0, 0.0) == math.inf
    assert gdp_epsilon(0.0, 0.0) == 0.0


def test_estimate_is_no_bound_and_recovers_mu():
    n = 10**6
    estimate = gdp_estimate(PairCounts(841_345, n, 500_000, n), 1e-5)
    assert isinstance(estimate, Estimate)
    assert not isinstance(estimate, LowerBound)
    assert dict(estimate.parameters)["mu"] == pytest.approx(1.0, abs=1e-4)
    assert estimate.epsilon == pytest.approx(4.377, abs=2e-3)
    assert gdp_estimate(PairCounts(1, 10, 9, 10), 1e-5).epsilon == 0.0


def test_shares_add_up_to_the_error():
    assert 12 * share_error(0.05, pairs=3, directions=2, events=2) == pytest.approx(0.05)
    assert sum(split_error(0.05, [5, 2, 1, 1])) == pytest.approx(0.05)
    with pytest.raises(InputError, match="weight is -1"):
        split_error(0.05, [1, -1])


def test_the_best_of_several_bounds_pays_for_all():
    strong, weak = PairCounts(500, 1000, 100, 1000), PairCounts(500, 1000, 480, 1000)
    index, bound = best_lower_bound([weak, strong, weak], 0.0, 0.94)
    assert index == 1
    assert bound.confidence == 0.94
    assert bound.epsilon == pytest.approx(joint_lower_bound(strong, 0.0, 0.98).epsilon, abs=1e-3)
    assert bound.epsilon < joint_lower_bound(strong, 0.0, 0.94).epsilon


def test_mean_of_e_values():
    assert mean_log_e_value([math.log(30), math.log(10)]) == pytest.approx(math.log(20))
    assert mean_log_e_value([1000.0, -1000.0]) == pytest.approx(1000 - math.log(2))
