"""What would have been found, against what is found."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import Claim
from dpaudit.auditing.distinguishing.design import AnytimeNull, Design, PointNull
from dpaudit.auditing.distinguishing.outcome import Forecast, Sample, power_statement
from dpaudit.auditing.distinguishing.scores import Identity
from dpaudit.auditing.evidence.joint import power
from dpaudit.auditing.evidence.types import Event
from dpaudit.mechanisms import LaplacePair

pytestmark = pytest.mark.unabridged

CLAIM = Claim(1.0)
RUNS = 9000


def forecast(point=None, sample=True, curve=None, scale=1.0):
    rng = np.random.default_rng(0)
    x, x_prime = 1.0 + scale * rng.laplace(size=RUNS), scale * rng.laplace(size=RUNS)
    point = point or PointNull(CLAIM, Event(lower=1.0))
    point.update(x, x_prime)
    found = Sample.of(Identity(), (x, x_prime)) if sample else None
    return Forecast(
        Identity(), found, point, Design(CLAIM, 0.95, curve, (), None, False), RUNS // 9
    )


def test_rates_never_promise_more_than_the_claim_allows():
    p, q = forecast().rates()
    assert p <= math.e * q
    assert (p, q) == pytest.approx((0.5, 0.5 / math.e), abs=0.02)
    p, q = forecast(scale=0.5).rates()
    assert p == pytest.approx(math.e * q)


def test_the_least_epsilon_is_found_with_the_power_that_is_stated():
    made = forecast()
    least, (_, q) = made.epsilon(), made.rates()
    found = [
        power(
            math.exp(epsilon) * min(q, math.exp(-epsilon) * 0.999),
            min(q, math.exp(-epsilon) * 0.999),
            RUNS,
            1.0,
            0.0,
        )
        for epsilon in (least, (1 + least) / 2)
    ]
    assert found[0] >= 0.88
    assert found[1] < 0.6


def test_less_noise_is_found_by_the_event_and_by_bets():
    by_event = forecast().noise()
    assert 0.03 < by_event < 0.2
    curve = forecast(curve=LaplacePair(1).delta)
    assert curve.noise_by_bets(None) == pytest.approx(by_event, abs=0.1)
    assert curve.noise_by_bets(0.001) == 0.001
    anytime = forecast(point=AnytimeNull(CLAIM))
    assert anytime.epsilon() is anytime.noise() is None
    assert 0.03 < anytime.noise_by_bets(None) < 0.4


@pytest.mark.parametrize("seed", [2, 11])
def test_few_hits_and_a_lucky_sample_promise_no_more_than_the_exact_test_keeps(seed):
    rng, claim = np.random.default_rng(seed), Claim(2.318, 0.01)  # of N(1, 1) against N(0, 1)
    both = 1.0 + rng.normal(size=900), rng.normal(size=900)
    point = PointNull(claim, Event(lower=1.8))
    point.update(*both)
    design = Design(claim, 0.95, None, (), None, False)
    made = Forecast(Identity(), Sample.of(Identity(), both), point, design, 100)
    width = 1 - made.noise()
    events = [(norm.sf((cut - 1) / width), norm.sf(cut / width)) for cut in (1.5, 1.7)]
    found = [power(p, q, 900, claim.epsilon, claim.delta) for p, q in events]
    assert max(found) >= 0.9
    assert width > 0.4


def test_noise_without_a_size_is_left_out():
    made = forecast(sample=False)
    assert made.noise() is made.noise_by_bets(None) is None
    words = power_statement(made)
    assert words.startswith("A ratio of ")
    assert " between the tested event's probabilities would have been detected" in words
    assert "%" not in words
    ratio = float(words.split()[3])
    assert math.exp(made.epsilon()) <= ratio <= 1.01 * math.exp(made.epsilon())


def test_an_event_that_always_happens_tests_nothing():
    point = PointNull(CLAIM, Event(lower=-1.0))
    point.update(np.zeros(5000), np.zeros(5000))
    made = Forecast(Identity(), None, point, Design(CLAIM, 0.95, None, (), None, False), 1)
    assert made.epsilon() is None
    assert power_statement(made) == (
        "No event was tested, so that no fault would have been detected; this is no verdict on "
        "the code."
    )


def test_a_delta_is_taken_off_the_event():
    claim = Claim(1.0, 0.01)
    point = PointNull(claim, Event(lower=1.0))
    rng = np.random.default_rng(0)
    point.update(1 + rng.normal(size=5000), rng.normal(size=5000))
    made = Forecast(Identity(), None, point, Design(claim, 0.95, None, (), None, False), 1)
    assert "the tested event's probabilities (the larger less δ = 0.01) " in power_statement(made)


def test_statements_name_the_faults_and_their_probability():
    words = power_statement(forecast())
    assert words.startswith("Noise ")
    assert words.endswith(
        " would have been detected with probability 0.9 at these runs; this is no verdict on the "
        "code."
    )


def test_too_few_runs_would_have_found_nothing():
    point = PointNull(CLAIM, Event(lower=1.0))
    point.update(np.array([2.0, 0.0]), np.array([0.0, 0.0]))
    made = Forecast(Identity(), None, point, Design(CLAIM, 0.95, None, (), None, False), 1)
    assert power_statement(made).startswith("No fault would have been detected")
