"""The problems of the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from private_bo.joint.subject import BENCHMARKS, DecisionProblem, ReplacedUser, benchmark, bump


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_benchmarks_fill_their_scale(name: str) -> None:
    function = BENCHMARKS[name]
    values = function(function.domain.sample(20_000, np.random.default_rng(0)))
    assert values.min() >= -1e-4
    assert values.max() <= 1 + 1e-4
    assert benchmark(name, np.random.default_rng(0), 3).table.shape == (3, 25)
    if name == "camelback":
        best = np.array([[0.0898 / 4, -0.7126 / 2]])
        assert function.raw(best)[0] == pytest.approx(1.0316 / 5, abs=1e-4)


def test_bump_keeps_its_gap() -> None:
    table = bump(np.random.default_rng(3), 50).table
    assert (np.sort(table, axis=1)[:, -2] <= 0.6).all()
    assert (table.max(axis=1) >= 0.8).all()


def test_regret_is_that_of_the_table() -> None:
    table = np.array([[0.1, 0.5], [0.9, 0.2]])
    problem = DecisionProblem("t", np.zeros((2, 2, 1)), table, np.zeros(2))
    np.testing.assert_allclose(problem.regret([0, 1]), [0.4, 1.1])
    assert replace(problem, bernoulli=False).reward(0, 1) == 0.5


def test_another_user_is_another_in_one_round_alone() -> None:
    problem = bump(np.random.default_rng(0), 3)
    arms = np.zeros((2, 2))
    other = ReplacedUser.of(problem, 1, arms, 7.0)
    assert (other.name, other.rounds) == ("bump", 3)
    for turn in (0, 2):
        assert other.decision_set(turn) is not arms
        np.testing.assert_array_equal(other.decision_set(turn), problem.decision_set(turn))
        assert other.reward(turn, 4) == problem.reward(turn, 4)
        np.testing.assert_array_equal(other.means(turn), problem.means(turn))
    assert other.decision_set(1) is arms
    assert other.reward(1, 0) == 7.0
    assert other.means(1).tolist() == [7.0, 7.0]
    same_arms = ReplacedUser.of(problem, 1, None, 7.0)
    np.testing.assert_array_equal(same_arms.decision_set(1), problem.decision_set(1))
