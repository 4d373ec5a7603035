"""The lookahead beside Figure 2."""

from __future__ import annotations

import json

import numpy as np
import pytest

from private_bo.local.experiments import utility
from private_bo.local.experiments.figure2 import PANELS, Algorithm, Setting, run_trial
from private_bo.local.experiments.utility import ahead_trial, main

SYNTHETIC = [panel for panel in PANELS if panel.source == "synthetic"]


@pytest.mark.parametrize("panel", SYNTHETIC, ids=lambda panel: panel.letter)
def test_a_trial_is_that_of_its_seed_on_the_papers_problem(panel) -> None:
    one, again, other = (
        ahead_trial(panel, 30, np.random.SeedSequence(4, spawn_key=(key,))) for key in (1, 1, 2)
    )
    assert one.regret.tolist() == again.regret.tolist() != other.regret.tolist()
    seed = np.random.SeedSequence(4, spawn_key=(1,))
    assert run_trial(panel, Algorithm.TGP, Setting(), 30, seed).uniform == one.uniform


def test_command_writes_table_and_record(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    ranges = []

    class Watched(utility.LDPOneBitGP):
        def plan(self):
            ranges.append(self.range)
            return super().plan()

    Watched.__name__ = "LDPOneBitGP"
    monkeypatch.setattr(utility, "LDPOneBitGP", Watched)
    arguments = ["-o", str(tmp_path), "--trials", "2", "--steps", "30", "--workers", "1"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "ldp_utility.md").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "ldp_utility.json").read_text(encoding="utf-8"))["relative"]
    mean = 100 * np.mean(record["a"]["LDPOneBitGP"])
    assert f"| (a) synthetic, Matérn | LDPOneBitGP | 1 | {mean:.0f} ± " in printed
    assert set(record) == {"a", "d", "g"}
    assert {len(each) for each in record.values()} == {4}
    assert set(ranges) == {(-2.0, 2.0), (-1.4, 1.4)}
    assert main([*arguments, "--trials", "0"]) == 3
    assert capsys.readouterr().err.startswith("trials is 0")
