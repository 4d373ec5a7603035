import json
from pathlib import Path

import numpy as np
import pytest

from private_bo.federated import DPFTS, DPFTSDE, FTSDE, PlainTS, Sensitivity
from private_bo.federated.experiments.cells import (
    PAPER,
    PLAIN,
    SAME,
    Experiment,
    Task,
    comparisons,
    panels,
)
from private_bo.federated.experiments.figures import document, main
from private_bo.federated.experiments.runs import curves_of, problem_of

SMALL = DPFTSDE(agents=6, rate=0.5, features=10, rounds=3, initial=3)


def test_results_do_not_depend_on_the_workers() -> None:
    alike = {f: getattr(SMALL, f) for f in ("agents", "features", "rounds", "initial")}
    algorithms = [SMALL, DPFTS(**alike, rate=0.5), FTSDE(**alike), PlainTS(**alike)]
    one = curves_of(algorithms, None, trials=3, seed=4, workers=1)
    two = curves_of(algorithms, None, trials=3, seed=4, workers=2)
    assert list(one) == list(two) == algorithms
    for algorithm in algorithms:
        assert one[algorithm].shape == (3, 4)
        assert np.array_equal(one[algorithm], two[algorithm])
    assert not np.array_equal(one[SMALL][0], one[SMALL][1])


def test_the_settings_are_those_of_the_figures() -> None:
    shown = panels(Experiment.FIGURE_2, Task.SYNTHETIC)
    assert [each.rate for each in shown["(c) q"].values()] == [0.15, 0.25, 0.5]  # type: ignore[union-attr]
    assert [type(each).__name__ for each in shown["(a) distributed exploration"].values()] == [
        "PlainTS", "FTS", "FTSDE", "FTSDE",
    ]  # fmt: skip
    losses = [each.published_loss for each in shown["(d) z"].values() if isinstance(each, DPFTSDE)]
    assert losses == pytest.approx([9.91, 7.39, 5.22], abs=0.01)
    real = panels(Experiment.FIGURE_3, Task.LANDMINES)
    losses = [
        each.published_loss
        for cells in real.values()
        for each in cells.values()
        if isinstance(each, DPFTSDE)
    ]
    published = [15.17, 7.12, 5.14, 3.05, 2.16, 3.75, 5.98, 7.69, 9.82, 15.17]
    assert losses == pytest.approx(published, abs=0.01)


def test_equal_epsilon_is_equal() -> None:
    (cells,) = panels(Experiment.EQUAL, Task.LANDMINES, rounds=12).values()
    paper, same = cells[PAPER], cells[SAME]
    assert isinstance(paper, DPFTSDE)
    assert isinstance(same, DPFTSDE)
    assert same.certified(Sensitivity.JOINT) == pytest.approx(paper.published_loss, rel=1e-3)
    assert same.certified(Sensitivity.JOINT) <= paper.published_loss
    assert (same.sigmas < 0.7 * paper.sigmas).all()
    labels = {label for pair in comparisons(Experiment.EQUAL) for label in pair}
    assert labels <= set(cells)
    assert PLAIN in cells


def test_the_command_prints_a_table_and_writes_only_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ["--trials", "2", "--rounds", "1", "--workers", "1"]
    assert main(["equal", *few]) == 0
    text = capsys.readouterr().out
    assert "| TS | – | – |" in text
    assert not list(tmp_path.iterdir())
    assert main(["equal", *few, "-o", "out"]) == 0
    assert capsys.readouterr().out == text  # the same seed
    written = sorted(path.suffix for path in (tmp_path / "out").iterdir())
    assert written == [".json", ".md", ".png", ".svg"]
    record = json.loads((tmp_path / "out" / "federated_equal_synthetic.json").read_text())
    assert np.shape(record["equal certified ε"][PLAIN]) == (2, 2)


def test_wrong_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["figure2", "--trials", "1", "--rounds", "1"]) == 3
    assert "trials is 1" in capsys.readouterr().err
    monkeypatch.setenv("DPAUDIT_DATA", "/nowhere")
    assert main(["figure3"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_differences_are_paired() -> None:
    cells = {"first": SMALL, "second": PlainTS()}
    curves = {SMALL: np.array([[1.0, 0.5], [3.0, 2.0]]), PlainTS(): np.array([[1.0, 1], [3, 2.5]])}
    text = document("x", {"p": cells}, curves, (("first", "second"), ("first", "absent")))
    assert "| first against second | 0.5000 ± 0.0000 | 0.5000 ± 0.0000 |" in text
    assert "absent" not in text


def test_synthetic_functions_are_new_in_every_trial() -> None:
    assert problem_of(Task.SYNTHETIC, 10) is None


def test_the_mean_over_rounds_is_shown() -> None:
    curves = {PlainTS(): np.array([[9.0, 1.0, 0.5], [9.0, 3.0, 2.5]])}  # means .75 and 2.75
    text = document("x", {"p": {"TS": PlainTS()}}, curves, ())
    assert "| t = 1 | t = 2 | mean of t = 1…2 |" in text
    assert "| TS | – | – | 2.0000 ± 1.0000 | 1.5000 ± 1.0000 | 1.7500 ± 1.0000 |" in text
