"""What has been spent so far: a statement that holds at all times at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import use
from scipy import stats

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    RandomizedResponse,
    TrustModel,
)
from dpaudit.accounting import Odometer, ZcdpFilter
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, PureBlackBox

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)


def test_nothing_is_spent_before_the_first_release():
    assert Odometer(1e-5).epsilon == 0.0


@pytest.mark.parametrize("sigma", [0.01, 0.5, 3.0, 100.0, 1e5])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_loss_of_one_gaussian_release_exceeds_it_rarely_enough(sigma, delta):
    """Of N(μ, 1) against N(0, 1) the loss is N(μ²/2, μ²)."""
    odometer, mu = Odometer(delta), 1 / sigma
    odometer.admit(use(Gaussian(sigma)))
    assert stats.norm.sf(odometer.epsilon, mu * mu / 2, mu) <= delta


def test_it_is_not_far_above_a_filter_that_knew_the_budget():
    odometer = Odometer(1e-5)
    for _ in range(100):
        odometer.admit(use(Gaussian(20.0)))
    filtered = ZcdpFilter(epsilon=odometer.epsilon, delta=1e-5)
    assert 1 <= filtered.rho / odometer.spent <= 2.6


def test_it_never_falls_and_pure_releases_never_cost_more_than_their_sum():
    odometer, before = Odometer(1e-6), 0.0
    for number in range(1, 60):
        odometer.admit(use(PureBlackBox(0.1)))
        assert before <= odometer.epsilon <= 0.1 * number * (1 + 1e-12)
        before = odometer.epsilon
    assert before < 5.9 * (1 + 1e-12)


def test_an_adversary_that_chooses_the_noise_and_the_end_exceeds_it_rarely():
    """20 000 runs at δ = 0.05: above 5.4 standard deviations with a probability below 1e-7.

    The adversary raises the noise where the loss is small, lowers it where it is near the odometer,
    and ends as soon as the loss is above it.
    """
    rng, delta, runs = np.random.default_rng(0), 0.05, 20_000
    loss, rho, exceeded = np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=bool)
    read = {}
    for _ in range(40):
        odometers = []
        for value in rho:
            key = float(np.round(value, 9))
            if key not in read:
                own = Odometer(delta)
                if key:
                    own.admit(use(Gaussian(1 / math.sqrt(2 * key))))
                read[key] = own.epsilon
            odometers.append(read[key])
        bound = np.array(odometers)
        exceeded |= loss > bound
        mu = np.where(loss > 0.5 * bound, 0.5, 0.1)
        loss = np.where(exceeded, loss, loss + rng.normal(mu * mu / 2, mu))
        rho = np.where(exceeded, rho, rho + mu * mu / 2)
    assert exceeded.mean() < delta + 5.4 * math.sqrt(delta / runs)


def test_a_ledger_takes_it_as_a_budget_that_refuses_nothing():
    plan = Plan.of(use(Laplace(1.0), count=50, total=50))
    odometer = Odometer(1e-6)
    with Ledger(plan, rng=np.random.default_rng(0), budget=odometer) as ledger:
        readings = []
        for _ in range(50):
            ledger.release(Laplace(1.0), 0.0)
            readings.append(odometer.epsilon)
    assert odometer.admitted == 50
    assert readings == sorted(readings)
    assert readings[0] == 1.0


def test_noise_that_hides_nothing_costs_everything():
    odometer = Odometer(1e-6)
    odometer.admit(use(Gaussian(1e-200)))
    assert odometer.epsilon == math.inf
    odometer = Odometer(1e-6)
    odometer.admit(use(Gaussian(1e200)))
    assert 0 < odometer.epsilon < 0.25


def test_what_it_has_no_theorem_for_is_refused_and_charged_nothing():
    odometer = Odometer(1e-6)
    with pytest.raises(UnsupportedError, match="δ of its own"):
        odometer.admit(use(ApproximateBlackBox(1.0, 1e-9)))
    odometer.admit(use(RandomizedResponse(0.5, 2)))
    with pytest.raises(InputError, match="this budget is for row"):
        odometer.admit(Invocation(Laplace(1.0), 1.0, PrivacyUnit("day"), *FACTS[1:]))
    assert odometer.admitted == 1
    for bad in (0.0, 1.0, -1.0):
        with pytest.raises(InputError, match="delta"):
            Odometer(bad)
