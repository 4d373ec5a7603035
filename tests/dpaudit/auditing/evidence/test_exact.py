from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.auditing.subjects.exact import hockey_stick, loss_ratio
from dpaudit.base.errors import InputError


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


def test_randomised_response():
    p, q = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    assert loss_ratio(p, q) == 3
    assert hockey_stick(p, q, 1) == 0.5


def test_different_supports_have_no_finite_epsilon_until_delta_covers_them():
    p, q = [0.25, 0.75, 0.0], [0.0, 0.75, 0.25]
    assert loss_ratio(p, q) is None
    assert loss_ratio(p, q, 0.25) == 1


def test_identical_distributions_lose_nothing():
    assert loss_ratio([0.5, 0.5], [0.5, 0.5]) == 1


@pytest.mark.parametrize("bad", [[0.5, 0.6], [-0.5, 1.5], [math.nan, 1.0], []])
def test_bad_distributions_are_named(bad):
    with pytest.raises(InputError, match="p "):
        hockey_stick(bad, [0.5, 0.5][: len(bad)], 1)


def test_lengths_must_agree():
    with pytest.raises(InputError, match="2 outcomes"):
        loss_ratio([0.5, 0.5], [1.0])
