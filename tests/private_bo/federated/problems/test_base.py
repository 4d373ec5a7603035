"""Federated problems: their truth, their privacy boundary and wrong input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import InputError
from private_bo.federated import FederatedProblem
from private_bo.federated.problems import (
    Distorted,
    EvaluatedObjective,
    TabledObjective,
    unit_grid,
)


class Counting(EvaluatedObjective):
    """Counts its evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    @property
    def size(self) -> int:
        return 4

    def evaluate(self, index: int) -> float:
        self.asked.append(index)
        return float(index**2)


@given(st.integers(1, 4).map(lambda half: 2 * half), st.integers(1, 3))
def test_halves_of_an_even_grid_hold_equally_many_points(per_axis: int, depth: int) -> None:
    grid = unit_grid(per_axis, depth)
    assert grid.shape == (per_axis**depth, depth)
    assert len(np.unique(grid, axis=0)) == len(grid)
    assert grid.min() == 0
    assert grid.max() == 1
    assert ((grid < 0.5).sum(axis=0) == len(grid) // 2).all()


def test_a_table_is_copied_and_cannot_be_written() -> None:
    table = np.array([[0.0, 1.0], [3.0, 2.0]])
    problem = FederatedProblem.tabled("t", unit_grid(2), table)
    table[:] = -1
    assert problem.table.tolist() == [[0, 1], [3, 2]]
    assert problem.optimum.tolist() == [1, 3]
    with pytest.raises(ValueError, match="read-only"):
        problem.table[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        problem.domain[0, 0] = 5


def test_observations_have_the_mean_and_deviation_stated() -> None:
    """False alarm below 1e-6: five standard errors of mean and deviation."""
    problem = FederatedProblem.tabled("t", unit_grid(2), [[2.0, 7.0]], noise=0.5)
    rng = np.random.default_rng(3)
    seen = np.array([problem.observe(0, 1, rng) for _ in range(10_000)])
    assert seen.mean() == pytest.approx(7, abs=5 * 0.5 / 100)
    assert seen.std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(2e4))


def test_without_noise_the_generator_is_untouched() -> None:
    problem = FederatedProblem.tabled("t", unit_grid(2), [[2.0, 7.0]])
    rng = np.random.default_rng(3)
    assert problem.observe(0, 1, rng) == 7
    assert rng.random() == np.random.default_rng(3).random()


def test_an_evaluation_is_made_once() -> None:
    objective = Counting()
    assert [objective.value(index) for index in (2, 1, 2)] == [4, 1, 4]
    assert objective.asked == [2, 1]
    assert objective.values().tolist() == [0, 1, 4, 9]
    assert objective.asked == [2, 1, 0, 3]


class TestWrongProblems:
    def test_points_outside_the_cube(self) -> None:
        with pytest.raises(InputError, match="domain"):
            FederatedProblem.tabled("t", np.array([[1.5]]), [[0.0]])

    def test_no_agents(self) -> None:
        with pytest.raises(InputError, match="objectives is empty"):
            FederatedProblem("t", unit_grid(2), ())

    def test_objective_of_another_size(self) -> None:
        with pytest.raises(InputError, match="3 values for agent 1"):
            FederatedProblem.tabled("t", unit_grid(2), [[0, 1], [0, 1, 2]])

    @pytest.mark.parametrize("table", [[0.0, np.nan], [0.0, np.inf], [], [[1.0], [2.0]], ["a"]])
    def test_wrong_table(self, table: list[object]) -> None:
        with pytest.raises(InputError, match="table"):
            TabledObjective(np.array(table))

    def test_negative_noise(self) -> None:
        with pytest.raises(InputError, match="noise"):
            FederatedProblem.tabled("t", unit_grid(2), [[0, 1]], noise=-1)

    @pytest.mark.parametrize(("agent", "index"), [(-1, 0), (1, 0), (0, -1), (0, 2)])
    def test_unknown_agent_or_point(self, agent: int, index: int) -> None:
        problem = FederatedProblem.tabled("t", unit_grid(2), [[0, 1]])
        with pytest.raises(InputError, match="it must be from 0 to"):
            problem.observe(agent, index, np.random.default_rng(0))

    def test_no_workers(self) -> None:
        with pytest.raises(InputError, match="workers"):
            FederatedProblem.tabled("t", unit_grid(2), [[0, 1]]).evaluated(workers=0)


def test_another_objective_of_one_agent() -> None:
    problem = FederatedProblem.tabled("t", unit_grid(2), [[0.0, 1.0], [3.0, 2.0]], noise=0.5)
    other = problem.with_agent(1, Distorted(problem.objectives[1], -2.0))
    assert other.table.tolist() == [[0, 1], [-6, -4]]
    assert (other.name, other.noise) == ("t", 0.5)
    assert problem.table.tolist() == [[0, 1], [3, 2]]
