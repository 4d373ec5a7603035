"""Curves as a test sees them, and families of them ordered by strength."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.evidence.one_run_families import (
    approximate_least,
    curve_least,
    gaussian_family,
    gaussian_least,
    largest_refuted,
    scaled_family,
)
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, GaussianPair, RandomizedResponse
from dpaudit.plan import AddRemove, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel


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


def test_the_scaled_family_is_the_plan_at_strength_one():
    steps = plan(Gaussian(2.0), count=4)
    family = scaled_family(steps)
    # Four times sigma 2 is mu = 1; with half the noise 2.
    for strength, mu in ((1.0, 1.0), (2.0, 2.0)):
        assert family.epsilon(strength, 1e-5) == pytest.approx(
            GaussianPair(mu).least_epsilon(1e-5), rel=1e-6
        )
        np.testing.assert_allclose(
            family.least(strength)(np.array([0.1, 0.6])),
            gaussian_least(mu)(np.array([0.1, 0.6])),
            rtol=0.02,
        )
    assert family.epsilon(0.0, 1e-5) == 0.0
    assert 1.0 in family.strengths
    assert list(family.strengths) == sorted(family.strengths)


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
    with pytest.raises(InputError, match="no noise that can be scaled"):
        scaled_family(plan(RandomizedResponse.calibrated(epsilon=1.0)))
    assert scaled_family(plan(Gaussian(1.0), sampling=PoissonSampling(0.1))).strengths
