"""From the runs to the record: the verdict, its event and what silence is worth."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from dpaudit import AuditPair, Laplace, RandomizedResponse
from dpaudit.auditing import LinearScore, audit_release
from dpaudit.auditing.distinguishing.outcome import as_json, facts_of_sides
from dpaudit.auditing.distinguishing.scores import WhiteBox
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
