"""Landmine fields and writers of digits."""

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

from dpaudit.errors import InputError
from private_bo.federated import FederatedProblem, digits, landmines
from private_bo.federated.problems import _rows_by_agent
from private_bo.gp.types import Array

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
    assert np.array_equal(problem.evaluated(workers=2).table, problem.evaluated().table)


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

    def test_a_smaller_concentration_makes_agents_differ_more(self) -> None:
        labels = load_digits(return_X_y=True)[1]

        def largest_share(spread: float) -> float:
            rng = np.random.default_rng(0)
            mixes = rng.dirichlet(np.full(10, spread), size=10)
            dealt = _rows_by_agent(labels, mixes, rng)
            return float(np.mean([np.bincount(labels[own]).max() / len(own) for own in dealt]))

        assert largest_share(0.3) > 1.5 * largest_share(30.0)

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
        split = writers.objectives[3]._split
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
        split = small_landmines.objectives[1]._split
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
            split = objective._split
            assert split.labels.sum() == split.held_labels.sum() == 6
            rows = np.concatenate([split.inputs, split.held_inputs])
            assert len(np.unique(rows, axis=0)) == 40

    @needs_landmines
    def test_the_real_fields(self) -> None:
        problem = landmines(REAL)
        splits = [objective._split for objective in problem.objectives]
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

    def test_missing_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InputError, match="no file"):
            landmines(tmp_path / "absent.mat")
        monkeypatch.delenv("DPAUDIT_DATA", raising=False)
        with pytest.raises(InputError, match="DPAUDIT_DATA is not set"):
            landmines()

    def test_file_that_is_no_matlab_file(self, tmp_path: Path) -> None:
        file = tmp_path / "text.mat"
        file.write_text("no matlab file")
        with pytest.raises(InputError, match="LandmineData"):
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

    def test_file_without_fields(self, tmp_path: Path) -> None:
        file = tmp_path / "other.mat"
        savemat(file, {"something": np.eye(2)})
        with pytest.raises(InputError, match="'feature' and 'label'"):
            landmines(file)
