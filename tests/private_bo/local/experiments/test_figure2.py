"""The experiment behind Figure 2 of the local-privacy paper."""

from __future__ import annotations

import json

import pytest

from private_bo.local.experiments.figure2 import PANELS, figure2, main, tuned

SYNTHETIC = [panel for panel in PANELS if panel.source == "synthetic"]


def finals(workers: int, seed: int = 0) -> dict:
    curves = figure2(SYNTHETIC, tuned, trials=2, steps=40, seed=seed, workers=workers)
    return {
        (panel.letter, algorithm): curve.regret.tolist()
        for panel, by_name in curves.items()
        for algorithm, curve in by_name.items()
    }


def test_result_does_not_depend_on_the_number_of_workers() -> None:
    one, two = finals(1), finals(2)
    assert one == two
    assert one != finals(1, seed=1)
    assert len(one) == 6


def test_command_without_data_runs_the_synthetic_panels(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    arguments = ["-o", str(tmp_path / "out"), "--trials", "1", "--steps", "250", "--workers", "1"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("Panels (b), (c), (e), (f) are left out: ")
    assert captured.err.count("\n") == 1
    assert "(a) synthetic, Matérn | LDP-MoMA-GP-UCB" in captured.out
    folder = tmp_path / "out"
    assert (folder / "ldp_figure2.md").read_text(encoding="utf-8") == captured.out
    record = json.loads((folder / "ldp_figure2.json").read_text(encoding="utf-8"))
    assert set(record["scaled"]) == {"a", "d"}
    assert len(record["scaled"]["a"]["LDP-TGP-UCB"]["mean"]) == 250
    assert (folder / "ldp_figure2.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "ldp_figure2.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "trials is 0"),
        (["--steps", "100"], "steps is 100; it must be at least the number of plays per epoch"),
        (["--workers", "0"], "workers is 0"),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_bad_numbers_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, message) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    small = ["-o", str(tmp_path / "out"), "--trials", "1", "--steps", "250", "--workers", "1"]
    assert main([*small, *arguments]) == 3
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
