"""Records of trials, and spot checks of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audits.paper_rows import recording
from audits.paper_rows.experiments import Experiment, experiments
from audits.paper_rows.recording import Recording, record, spot_checks
from dpaudit.base.errors import InputError

CHEAP = {
    "local-sub-weibull": "at (ln t)^θ, θ = 1",
    "outsourced-branin": "ε = e^1.1, r = 10",
    "joint-figures": "non-private",
    "federated-synthetic": "S = 11",
}
"""One cell for each paper, in which no choice hangs on a last bit."""


def noise(cells, trial):
    """Curves that grow by the trial's own step."""
    steps = {"a": 1.0, "b": 2.0}
    return {cell: (trial + 1) * steps[cell] * np.arange(1.0, 101) for cell in cells}


SMALL = Experiment("small", "A small one", ("a", "b"), noise, 4, ("a", "b"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setattr(recording, "experiments", lambda: {"small": SMALL})
    return SMALL


def test_a_cell_has_the_textbook_mean_and_error(small: Experiment) -> None:
    cell = record(small).cell("b")
    assert cell.final.tolist() == [200.0, 400.0, 600.0, 800.0]
    mean, error = cell.regret
    assert mean == 500.0
    assert error == pytest.approx(np.std(cell.final, ddof=1) / 2)
    assert cell.average.tolist() == pytest.approx([101.0, 202.0, 303.0, 404.0])
    assert (cell.rounds[0], cell.rounds[-1], cell.trials) == (1.0, 100.0, 4)
    assert cell.mean[-1] == 500.0


def test_differences_are_paired(small: Experiment) -> None:
    mean, error = record(small).less("b", "a")
    assert mean == 250.0
    assert error == pytest.approx(np.std([100, 200, 300, 400], ddof=1) / 2)


def test_a_record_is_read_as_it_was_written(small: Experiment, tmp_path: Path) -> None:
    made = record(small)
    made.write(small, tmp_path)
    read = Recording.read("small", tmp_path)
    assert read is not None
    for label, cell in made.cells.items():
        assert read.cell(label).final.tolist() == cell.final.tolist()
    assert Recording.read("other", tmp_path) is None
    with pytest.raises(InputError, match="has no cell 'c'"):
        read.cell("c")


def test_a_spot_check_finds_another_number(small: Experiment) -> None:
    made = record(small)
    assert all(spot.agrees for spot in spot_checks({"small": made}))
    a = made.cells["a"]
    far = replace(a, final=a.final + np.array([2 * a.regret[1], 0, 0, 0]))
    spots = {
        spot.cell: spot
        for spot in spot_checks({"small": Recording("small", {**made.cells, "a": far})})
    }
    assert not spots["a"].agrees
    assert spots["b"].agrees


def test_what_cannot_be_run_is_said(small: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(cells, trial):
        raise InputError("file is missing; set DPAUDIT_DATA to the folder that has it.")

    made = record(small)
    monkeypatch.setattr(recording, "experiments", lambda: {"small": replace(SMALL, run=missing)})
    assert [spot.found for spot in spot_checks({"small": made})] == [None, None]


@pytest.mark.parametrize(("name", "label"), CHEAP.items())
def test_one_recorded_trial_of_each_paper_comes_out_again(name: str, label: str) -> None:
    known = Recording.read(name)
    assert known is not None
    found = experiments()[name].run((label,), 1)[label][-1]
    assert found == pytest.approx(known.cell(label).final[1], rel=1e-4, abs=1e-7)


def test_a_chaotic_cell_is_another_draw_of_the_same_law() -> None:
    known, label = Recording.read("joint-figures"), "paper noise, α = 10, β = 0.1"
    assert known is not None
    assert label in experiments()["joint-figures"].chaotic
    found = experiments()["joint-figures"].run((label,), 1)[label][-1]
    mean, error = known.cell(label).regret
    assert abs(found - mean) < 7 * error * 21**0.5  # Student's t of 19, once in a million


def test_a_spot_of_a_chaotic_cell_has_room_for_one_more_trial(
    small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = record(small)
    loose = {"small": replace(SMALL, chaotic=("a",))}
    monkeypatch.setattr(recording, "experiments", lambda: loose)
    a, b = spot_checks({"small": made})
    assert (a.recorded, b.recorded) == (250.0, 200.0)
    assert a.agrees
    assert a.allowed > 5 * made.cell("a").regret[1] > 5 * b.allowed / 3
