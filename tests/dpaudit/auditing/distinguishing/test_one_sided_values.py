"""Values of one side alone, in continuous outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.auditing import audit_release
from dpaudit.auditing.distinguishing.scores import FlaggedScore, Identity, flag_values
from dpaudit.project import AuditPair

PAIR = AuditPair({"name": [3.25, 1.0]}, {"name": [1.0]})


def pilot(*leaked):
    x = np.random.default_rng(0).normal(size=500)
    x[: len(leaked)] = leaked
    return x, np.random.default_rng(1).normal(size=500)


@pytest.mark.parametrize("leaked", [(3.25,), (7.5, 7.5, 7.5)], ids=["of the input", "repeated"])
def test_a_value_of_one_side_alone_tells_of_it(leaked):
    x, x_prime = pilot(*leaked)
    score = flag_values(Identity(), x, x_prime, PAIR)
    assert score(np.array([leaked[0], 0.5])).tolist() == [math.inf, 0.5]
    swapped = flag_values(Identity(), x_prime, x, AuditPair(PAIR.x_prime, PAIR.x))
    assert swapped(np.array([leaked[0], 0.5])).tolist() == [-math.inf, 0.5]


@pytest.mark.parametrize("leaked", [(), (1.0,), (7.5, 7.5)])
def test_what_both_may_show_is_not_flagged(leaked):
    x, x_prime = pilot(*leaked)
    assert flag_values(Identity(), x, x_prime, PAIR) == Identity()
    counts = np.random.default_rng(0).integers(0, 5, 500).astype(float)
    assert flag_values(Identity(), counts, counts, PAIR) == Identity()


def test_arrays_are_flagged_where_any_entry_is():
    score = FlaggedScore(lambda outputs: outputs[:, 0], (9.0,), (8.0,))
    outputs = np.array([[0.0, 1.0], [0.0, 9.0], [8.0, 0.0]])
    scores = score(outputs)
    assert scores.tolist() == [0.0, math.inf, -math.inf]
    event = score.alone(scores, np.zeros(3))
    assert event.indicator(scores).tolist() == [False, True, False]
    event = score.alone(np.zeros(3), scores)
    assert event.indicator(scores).tolist() == [False, False, True]
    assert score.alone(np.zeros(3), np.zeros(3)) is None
    assert "one side alone" in score.in_words(event)


def test_the_event_is_that_value_even_where_noise_is_far_out_too():
    def release(data, size, rng):
        noisy = data + rng.laplace(size=size)
        return np.where(rng.random(size) < 2e-3, 1000.0 * data + 500, noisy)

    for seed in range(3):
        record = audit_release(release, AuditPair(1.0, 2.0), epsilon=1.0, runs=40_000, seed=seed)
        assert record.refuted
        assert record.event.startswith("output holds a value that one side alone shows")


@pytest.mark.parametrize("leak", [lambda data: 7.0 * data, lambda data: data])
def test_a_leak_in_one_run_of_a_thousand_is_found(leak):
    """As found in 9 of 10 audits of 10⁵ runs; the miss is a pilot that shows too few."""

    def release(data, size, rng):
        noisy = data + rng.laplace(size=size)
        return np.where(rng.random(size) < 1e-3, leak(data), noisy)

    found = [
        audit_release(release, AuditPair(1.0, 0.0), epsilon=1.0, runs=100_000, seed=seed)
        for seed in range(3)
    ]
    assert sum(each.refuted for each in found) >= 2
