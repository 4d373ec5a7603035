"""What a membership audit tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from shifted_scores import DELTA, gaussian_plan

from dpaudit.auditing.evidence.one_run import (
    approximate_least,
    gaussian_least,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair
from dpaudit.plan import MetricBall
from dpaudit.training.membership.guessing import membership_null

P = np.array([0.01, 0.3, 0.9])


def test_a_claim_alone_is_a_point():
    null = membership_null(1.0, DELTA, None)
    assert (null.claim.epsilon, null.least, null.words) == (1.0, None, "(ε, δ) alone")


def test_a_plan_gives_its_epsilon_and_its_curve():
    null = membership_null(None, DELTA, gaussian_plan(1.0))
    assert null.claim.epsilon == pytest.approx(GaussianPair(1.0).least_epsilon(DELTA), rel=1e-6)
    np.testing.assert_allclose(null.least(P), gaussian_least(1.0)(P), rtol=0.02)
    assert not null.tighter


def test_a_looser_claim_is_tested_alone_and_a_tighter_one_beside_the_curve():
    assert membership_null(20.0, DELTA, gaussian_plan(1.0)).least is None
    null = membership_null(0.1, DELTA, gaussian_plan(1.0))
    assert null.tighter
    assert null.words.endswith("and the tighter (ε, δ) of the claim")
    np.testing.assert_allclose(
        null.least(P), np.maximum(approximate_least(0.1, DELTA)(P), gaussian_least(1.0)(P)), 0.02
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((None, DELTA, None), "epsilon is missing, and there is no plan"),
        ((1.0, DELTA, "x"), "plan is 'x'; it must be a Plan"),
        ((None, 0.0, gaussian_plan(1.0)), "proves no finite epsilon"),
        ((1.0, DELTA, gaussian_plan(1.0, MetricBall())), "relation metric-ball"),
        ((-1.0, DELTA, None), "epsilon is -1"),
        ((math.nan, DELTA, None), "epsilon is nan"),
    ],
)
def test_bad_claims_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        membership_null(*arguments)
