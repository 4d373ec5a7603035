"""The lookahead beside Figure 2."""

from __future__ import annotations

import json

import numpy as np

from private_bo.local.experiments.panels import PANELS
from private_bo.local.experiments.utility import ahead_trial, main, one_bit, relative

SYNTHETIC = [panel for panel in PANELS if panel.source == "synthetic"]


def test_ranges_follow_from_what_is_measured() -> None:
    problem = SYNTHETIC[0].problem(np.random.default_rng(0))
    assert one_bit(SYNTHETIC[0], problem, 9).range == (-2.0, 2.0)
    readings = next(panel for panel in PANELS if panel.letter == "b")
    subject = one_bit(readings, problem, 9)
    assert (subject.range, subject.epsilon) == ((0.0, 2.0), 0.5)


def test_trials_are_those_of_their_seed_beside_the_papers() -> None:
    shown = relative(SYNTHETIC, trials=2, steps=30, seed=4, workers=1)
    for panel, first in zip(SYNTHETIC, ("LDPOneBitGP", "LookaheadGP"), strict=True):
        assert next(iter(shown[panel])) == first
        assert len(shown[panel]) == 4
        own = np.random.SeedSequence(4, spawn_key=(ord(panel.letter), 1))
        again = ahead_trial(panel, 30, own)
        assert again.regret.tolist() == shown[panel][first][1].regret.tolist()
        uniform = {runs[1].uniform for runs in shown[panel].values()}
        assert uniform == {again.uniform}  # the same problem for all


def test_command_writes_table_and_record(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    arguments = ["-o", str(tmp_path), "--trials", "2", "--steps", "30", "--workers", "1"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "ldp_utility.md").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "ldp_utility.json").read_text(encoding="utf-8"))["relative"]
    mean = 100 * np.mean(record["a"]["LDPOneBitGP"])
    assert f"| (a) synthetic, Matérn | LDPOneBitGP | 1 | {mean:.0f} ± " in printed
    assert set(record) == {"a", "d", "g"}
