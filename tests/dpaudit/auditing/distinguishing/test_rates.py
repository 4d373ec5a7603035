"""A claimed true-positive rate, tested by one event."""

import json

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit.auditing.distinguishing.design import CurveNull, Design, RatesNull
from dpaudit.certificate import Claim

T, A = 0.5, 0.2


def fed(rates, sides, error=0.05):
    null = RatesNull(rates, error)
    for start in range(0, len(sides[0]), 200):
        null.update(*(side[start : start + 200] for side in sides))
    return null


def coins(p, q, runs, rng):
    """Outputs 0 and 1: the corner of the ROC curve is (q, p)."""
    return [(rng.random(runs) < rate).astype(float) for rate in (p, q)]


@pytest.mark.parametrize("q", [0.05, 0.1, A, 0.5])
def test_a_true_claim_is_refuted_with_at_most_its_error(q):
    """Corners whose ROC curve, or that of x', is T at A; more than 27 of 200 by chance 1e-6."""
    p = 1 - (1 - T) * (1 - q) / (1 - A) if q <= A else 1 - A
    rng = np.random.default_rng(0)
    wrong = sum(fed((T, A), coins(p, q, 500, rng)).refuted for _ in range(200))
    assert wrong <= binom.isf(1e-6, 200, 0.05)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_more_than_is_claimed_is_found_in_any_direction(swapped, sign):
    mu, rng = 1.25, np.random.default_rng(1)
    sides = [sign * rng.normal(mu, size=6000), sign * rng.normal(size=6000)]
    claimed = norm.cdf(1 - norm.isf(0.01))
    null = fed((claimed, 0.01), sides[::-1] if swapped else sides)
    assert null.refuted
    assert json.dumps(null.details(), allow_nan=False)
    assert "TPR" in null.in_words("output")
    # The (ε, δ) that follows from the claim is kept all the same.
    implied = Claim.of(tpr=claimed, fpr=0.01)
    delta = norm.cdf(mu / 2 - implied.epsilon / mu) - np.exp(implied.epsilon) * norm.cdf(
        -mu / 2 - implied.epsilon / mu
    )
    assert delta < implied.delta


def test_too_few_runs_refute_nothing():
    null = RatesNull((0.05, 0.01), 0.05)
    null.update(np.ones(500), np.zeros(500))
    assert not null.refuted
    assert null.details()["event"] is None


def test_a_new_score_begins_again():
    null = fed((T, A), [np.ones(2000), np.zeros(2000)])
    assert null.refuted
    null.change_score()
    assert (null.refuted, null.pairs) == (False, 0)


def test_an_audit_that_may_stop_tests_what_follows_by_bets():
    def null(stop_early):
        claim = Claim.of(tpr=T, fpr=A)
        return Design(claim, 0.95, claim.curve, (), None, stop_early).curve_null()

    assert isinstance(null(False), RatesNull)
    assert isinstance(null(True), CurveNull)
