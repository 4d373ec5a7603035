"""Scores of one's own: a function of an output to a number."""

import math

import numpy as np
import pytest

from dpaudit import AuditPair, InputError
from dpaudit.auditing import BlackBox, audit_release

PAIR = AuditPair([0], [1])
P = math.e**2 / (math.e**2 + 1)


def masked(data, rng):
    """The answer beside a key that it is enciphered with: neither says anything alone."""
    key = int(rng.integers(2**40))
    return {"key": key, "text": f"c{key % 97 % 2 ^ (data[0] ^ int(rng.random() > P))}"}


def opened(output):
    return output["key"] % 97 % 2 ^ int(output["text"][1])


def audit(function, score, **settings):
    settings = {"epsilon": 1.0, "runs": 4000, "seed": 3, **settings}
    return audit_release(BlackBox(function), PAIR, score=score, **settings)


def test_a_score_finds_what_is_not_found_without():
    assert not audit(masked, None).refuted
    found = audit(masked, opened)
    assert found.refuted
    assert 1.7 < found.epsilon_lower < 2
    assert "opened(output)" in found.event
    assert found.method == "score that was given"


def test_a_right_claim_is_not_refuted():
    assert not audit(masked, opened, epsilon=2.1).refuted


def test_a_useless_score_does_not_hide_what_others_show():
    def loud(data, rng):
        return {"sum": data[0] + rng.laplace(scale=0.4), "note": "x"}

    assert audit(loud, lambda output: 0.5).refuted


def test_exceptions_have_no_score():
    def sometimes(data, rng):
        if rng.random() < 0.2:
            raise ValueError("now and then")
        return masked(data, rng)

    assert audit(sometimes, opened).refuted


@pytest.mark.parametrize("score", [lambda output: output["nothing"], lambda output: "high"])
def test_a_score_that_fails_is_told_of(score):
    with pytest.raises(InputError, match=r"<lambda>\(output\) failed with .* must give a number"):
        audit(masked, score)


def test_batches_and_several_workers_are_scored_alike():
    def batch(data, size, rng):
        return data[0] + rng.laplace(scale=0.5, size=(size, 2))

    alone = audit(batch, np.sum, runs=1000)
    assert alone.refuted
    assert audit(batch, np.sum, runs=1000, workers=2) == alone


def test_it_may_stop_early():
    assert audit(masked, opened, stop_early=True).runs < 4000
