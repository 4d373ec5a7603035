"""Asking users through a channel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from crowds import F, problem, run
from scipy import stats

from dpaudit.base.errors import InputError
from private_bo.gp import FiniteDomain, SquaredExponential
from private_bo.local import LDPATAGPUCB
from private_bo.local.policies import (
    Users,
    ask_ahead,
    clear_channel,
    expected_earnings,
    prior_covariance,
)


def test_running_out_of_sellers_is_one_sentence() -> None:
    subject = LDPATAGPUCB(steps=371)
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with pytest.raises(InputError, match="steps is too large for 'neighbourhood prices'"):
        run(subject, data)


def test_the_prior_has_three_equal_parts() -> None:
    far = FiniteDomain(np.array([[0.0], [100.0]]))
    covariance = prior_covariance(far, SquaredExponential(0.1))
    np.testing.assert_allclose(covariance, [[1 / 3, 1 / 9], [1 / 9, 1 / 3]], atol=1e-15)


@pytest.mark.parametrize("gap", [0.0, 0.4, -0.4])
def test_worth_of_two_independent_points(gap: float) -> None:
    """E max(a, b + sZ) = a + d Φ(d/s) + s φ(d/s) with d = b − a; of r = 2 and r = 1 the better."""
    values = []
    for rounds in (2, 1):
        s = 1 / math.sqrt(1 + 3 / rounds)
        best = gap * stats.norm.cdf(gap / s) + s * stats.norm.pdf(gap / s)
        values.append(rounds * gap + (4 - rounds) * best)
    found = expected_earnings(np.array([0.0, gap]), np.diag([0.0, 1.0]), 3.0, 4)
    assert found[1] == pytest.approx(max(values), abs=0.15)  # eight nodes meet a kink
    assert found[0] == pytest.approx(3 * max(gap, 0.0))  # asked once, which teaches nothing


def test_the_last_round_plays_what_looks_best() -> None:
    mean = np.array([0.1, 0.7, -2.0])
    np.testing.assert_allclose(expected_earnings(mean, np.eye(3), 1.0, 1), mean)


def test_it_finds_the_best_of_clear_rewards() -> None:
    users = Users(problem(), clear_channel, np.random.default_rng(0))
    outcome = ask_ahead(users, 60, 0.01)
    assert outcome.choices.size == 60
    assert outcome.recommended == F.argmax()
    assert np.mean(outcome.choices == F.argmax()) > 0.8
    assert outcome.mean[F.argmax()] == pytest.approx(F.max(), abs=0.05)
