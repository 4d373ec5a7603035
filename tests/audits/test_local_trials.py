"""The experiment behind Figure 2 of the local-privacy paper."""

from __future__ import annotations

import pytest

from audits.paper_rows.trials import local as trials
from audits.paper_rows.trials.local import PANELS, main, tune


def test_the_table_does_not_depend_on_the_number_of_workers(monkeypatch) -> None:
    for name, tried in (("_WIDTHS", (0.1,)), ("_PLAYS", (3,)), ("_TRIALS", 2)):
        monkeypatch.setattr(trials, name, tried)
    synthetic = [panel for panel in PANELS if panel.source == "synthetic"]
    one, two, other = (
        tune(synthetic, seed=seed, workers=workers, steps=40)
        for seed, workers in ((0, 1), (0, 2), (1, 1))
    )
    assert one == two != other


def test_the_panels_are_those_of_the_paper() -> None:
    assert [(panel.letter, panel.source, panel.epsilon) for panel in PANELS] == [
        ("a", "synthetic", 1.0),
        ("b", "sensors", 0.5),
        ("c", "stocks", 1.0),
        ("d", "synthetic", None),
        ("e", "sensors", None),
        ("f", "stocks", None),
    ]


def test_the_command_shows_every_setting_that_was_tried(monkeypatch, capsys) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    for name, tried in (("_WIDTHS", (0.1,)), ("_PLAYS", (3,))):
        monkeypatch.setattr(trials, name, tried)
    assert main(["--tune", "--steps", "30", "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("Panels (b), (c), (e), (f) are left out: ")
    assert captured.err.count("\n") == 1
    assert captured.out.count(" | 0.1 | ") == 6
    assert "| LDP-MoMA-GP-UCB | 3 | 0.1 | " in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "1"], "steps is 1; it must be at least the number of plays per epoch"),
        (["--workers", "0"], "workers is 0"),
        (["--seed", "-2"], "seed is -1"),
    ],
)
def test_bad_numbers_are_one_sentence(monkeypatch, capsys, arguments, message) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    for name, tried in (("_WIDTHS", (0.1,)), ("_PLAYS", (3,))):
        monkeypatch.setattr(trials, name, tried)
    assert main(["--tune", "--workers", "1", *arguments]) == 3
    assert message in capsys.readouterr().err
