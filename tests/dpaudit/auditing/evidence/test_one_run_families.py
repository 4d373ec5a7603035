"""Curves as a test sees them, and families of them ordered by strength."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.evidence.one_run import (
    approximate_least,
    curve_least,
    gaussian_family,
    gaussian_least,
    largest_refuted,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair, RandomizedResponse
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel


def gaussian_curve(mu):
    return lambda epsilons: GaussianPair(mu).delta(epsilons)


def plan(mechanism, **fields):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(mechanism, 1, row, AddRemove(), TrustModel.CENTRAL, **fields))


def test_a_gaussian_curve_read_at_points_is_slightly_more_permissive_than_the_closed_form():
    read, exact = curve_least(gaussian_curve(1.3)), gaussian_least(1.3)
    p = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1 - np.geomspace(1e-6, 0.5, 60)])
    assert (read(p) <= exact(p) * (1 + 1e-9)).all()
    np.testing.assert_allclose(read(p), exact(p), rtol=0.02, atol=1e-9)


def test_a_pure_curve_is_followed_to_its_jump():
    plan_curve = privacy_curve(plan(RandomizedResponse.calibrated(epsilon=1.0)))
    least = curve_least(plan_curve)
    assert plan_curve(np.array([1.001]))[0] == 0
    p = np.array([0.3, 0.5, 0.9])
    expected = approximate_least(1.0, 0.0)(p)
    assert (least(p) <= expected + 1e-12).all()
    np.testing.assert_allclose(least(p), expected, rtol=1e-3)


def test_least_of_a_point_spelt_out():
    least = approximate_least(math.log(2), 0.1)
    # (0.5 - 0.1) / 2, and 1 - 0.1 - 2 (1 - 0.98).
    np.testing.assert_allclose(least(np.array([0.05, 0.5, 0.98, 1.0])), [0.0, 0.2, 0.86, 0.9])
    assert gaussian_least(0.7)(np.array([0.5]))[0] == pytest.approx(ndtr(-0.7))


def test_the_largest_refuted_strength_is_the_last_below_the_threshold():
    family = gaussian_family()

    def below(limit):
        # A curve is rejected where it allows too little.
        return lambda least: least(np.array([0.5]))[0] > ndtr(-limit)

    assert largest_refuted(family, below(0.5012)) == 0.5
    assert largest_refuted(family, below(0.004)) == 0.0
    assert largest_refuted(family, below(50.0)) == family.strengths[-1]


def test_bad_input_is_named():
    with pytest.raises(InputError, match="mu is -1"):
        gaussian_least(-1)
    with pytest.raises(InputError, match="curve has shape"):
        curve_least(lambda epsilons: np.zeros(3))
