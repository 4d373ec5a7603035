"""Federated problems: their truth, their privacy boundary and wrong input."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from dpaudit.base.errors import InputError
from private_bo.federated import FederatedProblem, digits, landmines, synthetic
from private_bo.federated.problems import (
    ScaledObjective,
    Split,
    TabledObjective,
    TunedObjective,
    _rows_by_agent,
    unit_grid,
)
from private_bo.gp.types import Array


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
    asked: list[float] = []

    def square(split: Split, place: Array) -> float:
        asked.append(place[0])
        return float(place[0] ** 2)

    nothing = Split(*[np.empty(0)] * 4)  # type: ignore[arg-type]
    objective = TunedObjective(np.arange(4.0)[:, None], nothing, square)
    assert [objective.value(index) for index in (2, 1, 2)] == [4, 1, 4]
    assert asked == [2, 1]
    assert objective.values().tolist() == [0, 1, 4, 9]
    assert asked == [2, 1, 0, 3]


GRID = unit_grid(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FederatedProblem.tabled("t", np.array([[1.5]]), [[0.0]]), "domain"),
        (lambda: FederatedProblem("t", GRID, ()), "objectives is empty"),
        (lambda: FederatedProblem.tabled("t", GRID, [[0, 1], [0, 1, 2]]), "3 values for agent 1"),
        (lambda: FederatedProblem.tabled("t", GRID, [[0, 1]], noise=-1), "noise"),
    ],
)
def test_wrong_problems(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("table", [[0.0, np.nan], [0.0, np.inf], [], [[1.0], [2.0]], ["a"]])
def test_wrong_table(table: list[object]) -> None:
    with pytest.raises(InputError, match="table"):
        TabledObjective(np.array(table))


@pytest.mark.parametrize(("agent", "index"), [(-1, 0), (1, 0), (0, -1), (0, 2)])
def test_unknown_agent_or_point(agent: int, index: int) -> None:
    problem = FederatedProblem.tabled("t", GRID, [[0, 1]])
    with pytest.raises(InputError, match="it must be an integer of at least 0"):
        problem.observe(agent, index, np.random.default_rng(0))


def test_another_objective_of_one_agent() -> None:
    problem = FederatedProblem.tabled("t", unit_grid(2), [[0.0, 1.0], [3.0, 2.0]], noise=0.5)
    other = problem.with_agent(1, ScaledObjective(problem.objectives[1], -2.0))
    assert other.table.tolist() == [[0, 1], [-6, -4]]
    assert (other.name, other.noise) == ("t", 0.5)
    assert problem.table.tolist() == [[0, 1], [3, 2]]


class TestSynthetic:
    def test_shape_scale_and_distance(self) -> None:
        problem = synthetic(agents=5, points=200, perturbation=0.1)
        same = synthetic(agents=5, points=200, perturbation=0.0)
        assert problem.table.shape == (5, 200)
        assert (same.table == same.table[0]).all()
        assert same.table.min() == 0
        assert same.table.max() == 1
        distance = np.abs(problem.table - same.table).max(axis=1)
        assert distance == pytest.approx(np.full(5, 0.1), rel=1e-12)
        assert len(np.unique(problem.table[:, 0])) == 5

    def test_seed_and_generator_say_the_same(self) -> None:
        one, two, other = (
            synthetic(agents=2, points=50, seed=seed) for seed in (4, np.random.default_rng(4), 5)
        )
        assert np.array_equal(one.table, two.table)
        assert not np.array_equal(one.table, other.table)

    def test_draws_have_the_covariance_of_the_kernel(self) -> None:
        """Increments of f over a tenth of a length scale, against 2 (1 - k); scale-free ratio."""
        length, step = 0.1, 1 / 999
        ratios = []
        for seed in range(20):
            f = synthetic(agents=1, seed=seed, length_scale=length, perturbation=0.0).table[0]
            near = np.mean((f[10:] - f[:-10]) ** 2)
            far = np.mean((f[20:] - f[:-20]) ** 2)
            ratios.append(far / near)
        expected = np.expm1(-((20 * step / length) ** 2) / 2) / np.expm1(
            -((10 * step / length) ** 2) / 2
        )
        assert np.mean(ratios) == pytest.approx(expected, rel=0.01)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("agents", 0), ("points", 1), ("points", 5000), ("length_scale", 0.0),
         ("perturbation", -1.0), ("noise", -0.1), ("seed", -1), ("noise", float("nan"))],
    )  # fmt: skip
    def test_wrong_arguments(self, field: str, value: float) -> None:
        with pytest.raises(InputError, match=field):
            synthetic(**({"agents": 2, "points": 20} | {field: value}))


REAL = Path(os.environ.get("DPAUDIT_DATA", "")) / "landmine" / "LandmineData.mat"
needs_landmines = pytest.mark.skipif(
    not REAL.is_file(), reason="DPAUDIT_DATA does not name a directory with the landmine data"
)


def cells(arrays: list[Array]) -> np.ndarray:
    row = np.empty((1, len(arrays)), dtype=object)
    for place, array in enumerate(arrays):
        row[0, place] = array
    return row


def landmine_file(path: Path, fields: int = 3, **changes: object) -> Path:
    """A small file of the same form, with fields that can be told apart."""
    rng = np.random.default_rng(5)
    labels = [np.repeat([[1], [0]], [12, 28], axis=0) for _ in range(fields)]
    features = [rng.normal(size=(40, 9)) + label for label in labels]
    savemat(path, {"feature": cells(features), "label": cells(labels)} | changes)
    return path


@pytest.fixture(scope="module")
def small_landmines(tmp_path_factory: pytest.TempPathFactory) -> FederatedProblem:
    file = landmine_file(tmp_path_factory.mktemp("landmine") / "fields.mat")
    return landmines(file, per_axis=3)


@pytest.fixture(scope="module")
def writers() -> FederatedProblem:
    return digits(agents=6, per_axis=3)


@pytest.mark.parametrize("which", ["small_landmines", "writers"])
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_values_do_not_depend_on_the_order(
    which: str, data: st.DataObject, request: pytest.FixtureRequest
) -> None:
    problem: FederatedProblem = request.getfixturevalue(which)
    agent = data.draw(st.integers(0, problem.agents - 1))
    fresh = pickle.loads(pickle.dumps(problem.objectives[agent]))
    fresh._known.clear()
    order = data.draw(st.permutations(range(problem.size)))
    seen = {index: fresh.value(index) for index in order}
    assert [seen[index] for index in range(problem.size)] == problem.values(agent).tolist()


@pytest.mark.parametrize("which", ["small_landmines", "writers"])
def test_worker_processes_do_not_change_the_table(
    which: str, request: pytest.FixtureRequest
) -> None:
    problem: FederatedProblem = request.getfixturevalue(which)
    assert problem.table.tolist() == [problem.values(n).tolist() for n in range(problem.agents)]


class TestDigits:
    @given(st.integers(2, 12), st.floats(0.2, 5.0), st.integers(0, 100))
    @settings(max_examples=20, deadline=None)
    def test_every_image_is_dealt_once(self, agents: int, spread: float, seed: int) -> None:
        labels = load_digits(return_X_y=True)[1]
        rng = np.random.default_rng(seed)
        mixes = rng.dirichlet(np.full(10, spread), size=agents)
        dealt = _rows_by_agent(labels, mixes, rng)
        assert sorted(np.concatenate(dealt).tolist()) == list(range(len(labels)))
        for digit in range(10):
            total = np.count_nonzero(labels == digit)
            got = [np.count_nonzero(labels[own] == digit) for own in dealt]
            wanted = mixes[:, digit] / mixes[:, digit].sum() * total
            assert np.abs(np.array(got) - wanted).max() <= 1.000001

    def test_objectives_are_accuracies_that_matter(self, writers: FederatedProblem) -> None:
        assert writers.domain.shape == (27, 3)
        assert ((writers.table >= 0) & (writers.table <= 1)).all()
        assert (writers.optimum > 0.85).all()
        assert (writers.optimum - writers.table.mean(axis=1) > 0.1).all()
        # a slow step for one epoch learns less than the best
        assert (writers.table[:, 0] < writers.optimum).all()

    @pytest.mark.parametrize(
        ("index", "penalty", "step", "epochs"),
        [(0, 1e-6, 1e-3, 1), (13, 1e-3, 10**-1.5, 6), (26, 1.0, 1.0, 32), (18, 1.0, 1e-3, 1)],
    )
    def test_objective_is_the_accuracy_of_that_classifier(
        self, writers: FederatedProblem, index: int, penalty: float, step: float, epochs: int
    ) -> None:
        split = writers.objectives[3].split
        model = SGDClassifier(
            loss="log_loss",
            alpha=penalty,
            learning_rate="constant",
            eta0=step,
            max_iter=epochs,
            tol=None,
            random_state=0,
        ).fit(split.inputs, split.labels)
        accuracy = model.score(split.held_inputs, split.held_labels)
        assert writers.value(3, index) == pytest.approx(accuracy, abs=1e-12)

    def test_same_seed_same_problem(self, writers: FederatedProblem) -> None:
        again, other = digits(agents=6, per_axis=3), digits(agents=6, per_axis=3, seed=1)
        assert again.value(2, 13) == writers.value(2, 13)
        assert any(other.value(n, 13) != writers.value(n, 13) for n in range(6))

    @pytest.mark.parametrize(
        ("arguments", "field"),
        [({"agents": 1}, "agents"), ({"concentration": 0.0}, "concentration"),
         ({"per_axis": 1}, "per_axis"), ({"seed": -3}, "seed"), ({"agents": 600}, "agents"),
         ({"agents": 30, "concentration": 1e-4}, "concentration")],
    )  # fmt: skip
    def test_wrong_arguments(self, arguments: dict[str, float], field: str) -> None:
        with pytest.raises(InputError, match=field):
            digits(**arguments)


class TestLandmines:
    def test_objective_is_the_area_of_that_machine(self, small_landmines: FederatedProblem) -> None:
        split = small_landmines.objectives[1].split
        for index, (penalty, gamma) in enumerate(
            [(1e-4, 0.01), (1e-4, 5.005), (1e-4, 10.0), (5.00005, 0.01)]
        ):
            machine = SVC(C=penalty, gamma=gamma).fit(split.inputs, split.labels)
            scores = machine.decision_function(split.held_inputs)
            area = roc_auc_score(split.held_labels, scores)
            assert small_landmines.value(1, index) == pytest.approx(area, abs=1e-12)
        assert small_landmines.agents == 3
        assert small_landmines.domain.shape == (9, 2)

    def test_halves_are_stratified_and_disjoint(self, small_landmines: FederatedProblem) -> None:
        for objective in small_landmines.objectives:
            split = objective.split
            assert split.labels.sum() == split.held_labels.sum() == 6
            rows = np.concatenate([split.inputs, split.held_inputs])
            assert len(np.unique(rows, axis=0)) == 40

    @needs_landmines
    def test_the_real_fields(self) -> None:
        problem = landmines(REAL)
        splits = [objective.split for objective in problem.objectives]
        rows = sum(len(split.labels) + len(split.held_labels) for split in splits)
        positives = sum(int(split.labels.sum() + split.held_labels.sum()) for split in splits)
        assert (problem.agents, problem.size, rows, positives) == (29, 400, 14_820, 904)
        assert 0.5 < problem.value(0, 21) < 0.9
        assert landmines(REAL).value(28, 399) == problem.value(28, 399)

    def test_from_the_data_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "landmine").mkdir()
        landmine_file(tmp_path / "landmine" / "LandmineData.mat", fields=2)
        monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
        assert landmines(per_axis=2).agents == 2

    def test_wrong_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text, other = tmp_path / "text.mat", tmp_path / "other.mat"
        text.write_text("no matlab file")
        savemat(other, {"something": np.eye(2)})
        monkeypatch.delenv("DPAUDIT_DATA", raising=False)
        for file, message in (
            (tmp_path / "absent.mat", "no file"),
            (text, "LandmineData"),
            (other, "'feature' and 'label'"),
            (None, "DPAUDIT_DATA is not set"),
        ):
            with pytest.raises(InputError, match=message):
                landmines(file)

    @pytest.mark.parametrize(
        "changes",
        [
            {"label": cells([np.zeros((40, 1))])},
            {"label": cells([np.zeros((40, 1))] * 3)},
            {"label": cells([np.full((40, 1), 2)] * 3)},
            {"label": cells([np.repeat([[1], [0]], [12, 27], axis=0)] * 3)},
            {"label": cells([np.repeat([[1], [0]], [1, 39], axis=0)] * 3)},
            {"feature": cells([np.full((40, 9), np.nan)] * 3)},
            {"feature": cells([np.zeros((40, 0))] * 3)},
            {"feature": np.zeros((3, 2))},
        ],
    )
    def test_wrong_cells(self, tmp_path: Path, changes: dict[str, object]) -> None:
        with pytest.raises(InputError, match="it must be the landmine file"):
            landmines(landmine_file(tmp_path / "wrong.mat", **changes))
