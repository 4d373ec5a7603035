"""From the runs to the record: the verdict, its event and what silence is worth.

What would have been found, against what is found.
Noise that can be made smaller, around what the outputs are without it.
"""

import json
import math
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import AuditPair, Claim, DiscreteLaplace, Laplace, RandomizedResponse
from dpaudit.auditing import LinearScore, audit_release
from dpaudit.auditing.distinguishing.design import AnytimeNull, Design, PointNull
from dpaudit.auditing.distinguishing.outcome import (
    Forecast,
    Sample,
    as_json,
    facts_of_sides,
    power_statement,
)
from dpaudit.auditing.distinguishing.scores import Identity, WhiteBox
from dpaudit.auditing.evidence.events import Event
from dpaudit.auditing.evidence.two_counts import power
from dpaudit.mechanisms import LaplacePair

pytestmark = pytest.mark.unabridged

PAIR = AuditPair(0.0, 1.0)


def audit(mechanism, pair=PAIR, **settings):
    settings = {"epsilon": 1.0, "seed": 7, "runs": 3000, **settings}
    return audit_release(mechanism.release_many, pair, **settings)


def share(record):
    """By how much the noise could be smaller, as the record states it."""
    return float(record.power.split(" % smaller")[0].split()[-1]) / 100


@pytest.mark.unabridged
class TestPower:
    def test_what_would_have_been_found_is_found(self):
        noise = share(audit(Laplace(1.0)))
        assert 0.05 < noise < 0.3
        found = [audit(Laplace(1 - noise), seed=seed).refuted for seed in range(10)]
        # With probability 0.9 each: P(Bin(10, 0.9) < 4) < 1e-5, and forecasts are rough.
        assert sum(found) >= 4

    @pytest.mark.parametrize("curve", [None, LaplacePair(1).delta])
    def test_sequential_audits_have_one_too(self, curve):
        assert 0.05 < share(audit(Laplace(1.0), stop_early=True, curve=curve)) < 0.5

    def test_a_fixed_score_of_vectors_forecasts_no_noise_without_a_pilot(self):
        """Only scores were kept, and a weighted sum cannot be undone."""
        pair = AuditPair([0.0, 0.0], [0.5, 0.5])
        score = LinearScore((1.0, 1.0))
        record = audit(Laplace(1.0), pair, score=score, stop_early=True, runs=500)
        assert not record.refuted
        assert "% smaller" not in record.power

    def test_refutations_need_none(self):
        assert audit(Laplace(0.5)).power == ""

    def test_discrete_noise_has_no_size(self):
        record = audit(RandomizedResponse.calibrated(epsilon=1.0), AuditPair(0, 1))
        assert "noise" not in record.power.lower()
        assert "the tested event's probabilities" in record.power


class TestRecord:
    def test_is_strict_json_and_replays(self):
        record = audit(Laplace(0.5), AuditPair([0.0], [1.0], "a row"), seed=None, runs=500)
        text = json.dumps(record.to_dict(), allow_nan=False)
        assert json.loads(text)["pair"] == {"x": [0.0], "x_prime": [1.0]}
        again = audit(Laplace(0.5), AuditPair([0.0], [1.0]), seed=record.seed, runs=500)
        assert again == record

    def test_the_bound_and_the_verdict_agree(self):
        for scale in (0.5, 0.9, 1.0):
            record = audit(Laplace(scale), curve=LaplacePair(1).delta)
            assert record.refuted == bool(record.details["rejected_by"])
            assert record.refuted or record.epsilon_lower <= 1.0

    def test_what_the_curve_alone_refutes_is_told_as_such(self):
        curve = LaplacePair(1).delta
        records = [audit(Laplace(0.85), curve=curve, seed=seed) for seed in range(5)]
        (record, *_) = [each for each in records if each.details["rejected_by"] == ["curve"]]
        assert "against the whole curve δ(ε), e-value" in record.event

    def test_text_in_place_of_the_method(self):
        assert audit(Laplace(1.0), method="by hand", runs=300).method == "by hand"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(1.5), 1.5),
        (np.array([[1, 2]]), [[1, 2]]),
        ({1: (True, None)}, {"1": [True, None]}),
        (math.inf, "inf"),
        ([float("nan")], ["nan"]),
        (3 + 4j, "(3+4j)"),
    ],
)
def test_data_as_json(value, expected):
    assert as_json(value) == expected
    json.dumps(as_json(value), allow_nan=False)


@pytest.mark.parametrize(
    ("x", "x_prime", "equal"),
    [
        ({0, 8}, frozenset({8, 0}), True),
        (Decimal("1.0"), Decimal("1.00"), True),
        (Fraction(1), 1.0, True),
        ({"a": np.zeros(2)}, {"a": [0, 0.0]}, True),
        ((1, (2,)), [1, [2]], True),
        ([1, 2], [2, 1], False),
        ({0: 1}, {"0": 1}, False),
        ("1", 1, False),
        (2**53 + 1, 2.0**53, False),
        (mock.ANY, 1, False),
    ],
)
def test_sides_are_compared_as_data(x, x_prime, equal):
    assert facts_of_sides(AuditPair(x, x_prime)) == ({"equals": True} if equal else {})


@pytest.mark.parametrize(("values", "equal"), [((20.0, 30.0), True), ((20.0, 3.0), False)])
def test_sides_that_a_clip_makes_equal(values, equal):
    mechanism, pair = Laplace(5.0, clip=(0.0, 10.0)), AuditPair(*values)
    record = audit(mechanism, pair, runs=300, score=WhiteBox.of(mechanism, pair))
    assert record.is_of_equals is equal
    assert record.is_of_a_pair is not equal


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


def test_too_few_runs_would_have_found_nothing():
    point = PointNull(CLAIM, Event(lower=1.0))
    point.update(np.array([2.0, 0.0]), np.array([0.0, 0.0]))
    made = Forecast(Identity(), None, point, Design(CLAIM, 0.95, None, (), None, False), 1)
    assert power_statement(made).startswith("No fault would have been detected")


def test_of_outputs_shrinks_towards_their_median():
    rng = np.random.default_rng(0)
    x, x_prime = 3.0 + rng.laplace(size=5000), rng.laplace(size=5000)
    sample = Sample.of(Identity(), (x, x_prime))
    assert sample.centres == pytest.approx((3.0, 0.0), abs=0.1)
    np.testing.assert_allclose(sample.scores(Identity(), 1.0), (x, x_prime))
    half = sample.scores(Identity(), 0.5)
    assert np.std(half[0]) == pytest.approx(np.std(x) / 2)


def test_of_a_declared_mechanism_needs_no_outputs():
    score = WhiteBox(Laplace(2.0, clip=(-1.0, 1.0)), 5.0, -5.0)
    sample = Sample.of(score, (np.empty(0), np.empty(0)))
    assert sample.centres == (1.0, -1.0)
    assert len(sample.outputs[0]) == 20_000
    assert set(sample.scores(score, 0.0)[0]) == {1.0}


def test_discrete_noise_has_no_size():
    score = WhiteBox(DiscreteLaplace(1.0), 1, 0)
    assert Sample.of(score, (np.empty(0), np.empty(0))) is None
    assert Sample.of(Identity(), (np.zeros(1), np.ones(1))) is None
