from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import AuditPair, Laplace, RandomizedResponse
from dpaudit.auditing.subjects.exact import audit_exact, hockey_stick, loss_ratio
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ExponentialMechanism

HALF = Fraction(1, 2)


class Table:
    """A mechanism given by its probabilities."""

    def __init__(self, **rows):
        self.rows = rows

    def probabilities(self, data):
        return self.rows[data]


def test_randomised_response_has_its_own_epsilon_exactly():
    for k in (2, 5):
        mechanism = RandomizedResponse.calibrated(epsilon=1.0, k=k)
        record = audit_exact(mechanism, AuditPair(0, 1), epsilon=1.0)
        assert not record.refuted
        assert record.epsilon_lower == pytest.approx(1.0, abs=1e-12)
        assert record.confidence is None
        assert record.runs == 0
        assert record.seed is None
        assert audit_exact(mechanism, AuditPair(0, 1), epsilon=0.999).refuted
        assert not audit_exact(mechanism, AuditPair(1, 1), epsilon=0.0).refuted
        assert all(isinstance(p, Fraction) for p in mechanism.probabilities(0))


def test_vectors_of_answers_are_enumerated():
    mechanism = RandomizedResponse(p=0.5, k=2)
    pair = AuditPair([0, 0], [1, 1])
    record = audit_exact(mechanism, pair, epsilon=math.log(3))
    assert record.refuted
    assert record.epsilon_lower == pytest.approx(2 * math.log(3))
    assert record.details["outputs"] == 4
    with pytest.raises(UnsupportedError, match="audit one answer"):
        audit_exact(mechanism, AuditPair([0] * 30, [1] * 30), epsilon=1.0)


def test_epsilon_is_the_largest_of_both_directions_at_every_delta():
    p, q = (Fraction(9, 10), Fraction(1, 10), Fraction(0)), (HALF, Fraction(3, 10), Fraction(1, 5))
    pair = AuditPair("x", "y")
    table = Table(x=p, y=q)
    assert audit_exact(table, pair, epsilon=5.0).epsilon_lower == math.inf
    at_delta = audit_exact(table, pair, epsilon=math.log(3), delta=0.2)
    assert not at_delta.refuted
    assert at_delta.epsilon_lower == pytest.approx(math.log(3))
    assert at_delta.details["delta_at_claim"] == pytest.approx(0.2)
    assert audit_exact(table, pair, epsilon=math.log(3), delta=0.19).refuted


def test_the_exponential_mechanism_is_enumerated_over_its_candidates():
    mechanism = ExponentialMechanism(1.0)
    pair = AuditPair([0.0, 0.0], [1.0, -1.0])
    record = audit_exact(mechanism, pair, epsilon=1.0)
    assert record.epsilon_lower == pytest.approx(math.log((1 + math.e) / 2))
    assert not record.refuted
    assert "output number 1" in record.event


def test_what_cannot_be_enumerated_is_refused():
    with pytest.raises(UnsupportedError, match="laplace has no finite list"):
        audit_exact(Laplace(1.0), AuditPair(0.0, 1.0), epsilon=1.0)
    with pytest.raises(InputError, match="adds up to"):
        audit_exact(Table(x=(0.5, 0.6), y=(0.5, 0.5)), AuditPair("x", "y"), epsilon=1.0)
    with pytest.raises(InputError, match="equally many"):
        audit_exact(Table(x=(HALF, HALF), y=(Fraction(1),)), AuditPair("x", "y"), epsilon=1.0)


def test_records_are_json():
    record = audit_exact(RandomizedResponse(0.5), AuditPair(np.int64(0), 1), epsilon=0.1)
    assert json.loads(json.dumps(record.to_dict()))["confidence"] is None


def distribution(weights):
    return [Fraction(weight, sum(weights)) for weight in weights]


weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
pairs = st.tuples(weights.map(distribution), weights.map(distribution))
settings_here = settings(max_examples=60, derandomize=True, deadline=None)


@settings_here
@given(pairs, st.fractions(1, 5))
def test_hockey_stick_is_the_largest_gap_over_all_events(pair, ratio):
    p, q = pair
    events = chain.from_iterable(combinations(range(4), size) for size in range(5))
    gap = max(sum(p[i] for i in s) - ratio * sum(q[i] for i in s) for s in events)
    assert hockey_stick(p, q, ratio) == gap


@settings_here
@given(pairs, st.fractions(0, Fraction(1, 2)))
def test_ratio_is_the_smallest_that_meets_delta(pair, delta):
    p, q = pair
    ratio = loss_ratio(p, q, delta)
    if ratio is None:
        assert max(hockey_stick(p, q, 10**9), hockey_stick(q, p, 10**9)) > delta
        return
    assert max(hockey_stick(p, q, ratio), hockey_stick(q, p, ratio)) <= delta
    if ratio > 1:
        less = ratio - Fraction(1, 10**9)
        assert max(hockey_stick(p, q, less), hockey_stick(q, p, less)) > delta


def test_different_supports_have_no_finite_epsilon_until_delta_covers_them():
    p, q = [0.25, 0.75, 0.0], [0.0, 0.75, 0.25]
    assert loss_ratio(p, q) is None
    assert loss_ratio(p, q, 0.25) == 1


@pytest.mark.parametrize("bad", [[0.5, 0.6], [-0.5, 1.5], [math.nan, 1.0], []])
def test_bad_distributions_are_named(bad):
    with pytest.raises(InputError, match="p "):
        hockey_stick(bad, [0.5, 0.5][: len(bad)], 1)
