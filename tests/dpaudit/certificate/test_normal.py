"""Curves against a Gaussian one: exact where the truth is known, on a dense grid elsewhere."""

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import compose
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.certificate.normal import excess_over_normal
from dpaudit.mechanisms import Gaussian, Laplace, RandomizedResponse

PLANS = {
    "laplace": plan(use(Laplace(2.0))),
    "response": plan(use(RandomizedResponse(0.5))),
    "mixed": plan(use(Laplace(4.0)), use(Gaussian(3.0))),
    "sampled": plan(use(Gaussian(1.5), sampling=poisson(0.1), count=20)),
}


def exceeds_on_a_grid(whole, mu, slack):
    end = min(whole.epsilon(max(slack, 1e-12)).upper, 30.0)
    claimed = GaussianComposition(mu)
    return any(
        whole.delta(epsilon).upper > slack + (1 - slack) * claimed.delta(epsilon).lower + 1e-12
        for epsilon in np.linspace(0, end, 60)
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_least_mu_is_that_of_a_dense_grid(name):
    whole, slack = compose(PLANS[name]), 1e-7
    low, high = 0.01, 20.0
    for _ in range(12):
        mu = (low * high) ** 0.5
        low, high = (low, mu) if excess_over_normal(whole, mu, slack) is None else (mu, high)
    assert not exceeds_on_a_grid(whole, high, slack)
    assert exceeds_on_a_grid(whole, low * 0.99, slack)


def test_a_pure_plan_needs_no_delta_and_an_unbounded_tail_does():
    assert excess_over_normal(compose(PLANS["response"]), 5.0, 0.0) is None
    found = excess_over_normal(compose(PLANS["sampled"]), 5.0, 0.0)
    assert "how much of the tail is left out" in found


def test_a_spike_between_the_first_points_is_found():
    """Randomised response touches the curve only near its ε."""
    whole = compose(plan(use(RandomizedResponse(0.3))))
    kept = [mu for mu in np.linspace(0.5, 4, 60) if excess_over_normal(whole, mu, 0.0) is None]
    assert not exceeds_on_a_grid(whole, min(kept), 0.0)
