"""One bit alone and through a shuffler, trial by trial."""

from __future__ import annotations

import json

import numpy as np

from private_bo.local.experiments.shuffled import PROBLEMS, main, paired_trial


def test_a_trial_is_that_of_its_seed():
    seed = np.random.SeedSequence(4)
    one, again = (paired_trial(PROBLEMS[0], 1.0, 60, 30, seed) for _ in range(2))
    assert one == again
    assert min(one) > 0


def test_command_writes_table_and_record(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    arguments = ["-o", str(tmp_path), "--trials", "2", "--steps", "60", "--batch", "30"]
    assert main([*arguments, "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "shuffled.md").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "shuffled.json").read_text(encoding="utf-8"))["relative"]
    assert {title[:3] for title in record} == {"(g)", "(a)", "(d)"}
    ratios = [np.mean(each["shuffled"]) / np.mean(each["alone"]) for each in record.values()]
    assert f"Mean of the ratios: {np.mean(ratios):.2f}." in printed
    assert main([*arguments, "--batch", "61"]) == 3
    assert capsys.readouterr().err.startswith("batch is 61")
    assert main([*arguments, "--trials", "0"]) == 3
