"""The tables on the panels of Figure 2: what the page says is what was recorded, and it runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audits.paper_rows.trials.local import PANELS, Algorithm, Setting, run_trial, seed_of
from tests.benchmarks.panels import (
    FLOOR,
    LEARNERS,
    LOOKAHEAD,
    STUDIES,
    TRUSTS,
    UNSEEN,
    answers_of,
    by_learner,
    by_trust,
    line,
    main,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
RECORD = EXAMPLES / "panels.json"
OF = {panel.letter: panel for panel in (*PANELS, UNSEEN)}
SHIPPED = [OF[letter] for letter in "adg"]


@pytest.mark.parametrize(
    ("path", "epsilon"), [(RECORD, None), (EXAMPLES / "panels-epsilon-5.json", 5.0)]
)
def test_the_page_says_what_was_recorded(path, epsilon) -> None:
    page = (ROOT / "docs" / "local-utility.md").read_text(encoding="utf-8")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert set(record) == set(OF) - {"f"}
    for letter, cells in record.items():
        assert tuple(cells) == STUDIES
        assert all(len(each) == 24 for each in cells.values())
        found = {trust: np.array(each) for trust, each in cells.items()}
        panel = replace(OF[letter], epsilon=epsilon or OF[letter].epsilon)
        assert line(panel, found, trusts=True) in page


@pytest.mark.pages
def test_a_spot_of_the_record_comes_out_again() -> None:
    """The first trial on house prices; on another processor a search may take other turns."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))["g"]
    for trust in STUDIES:
        found = by_trust(UNSEEN, trust, 1000, seed_of(UNSEEN, 0, 2))
        assert found == pytest.approx(record[trust][0], abs=0.1)


@pytest.mark.parametrize("panel", SHIPPED, ids=lambda panel: panel.letter)
def test_a_trial_is_that_of_its_seed(panel) -> None:
    for run, methods in ((by_learner, (LOOKAHEAD,)), (by_trust, STUDIES)):
        for method in methods:
            one, again, other = (run(panel, method, 30, seed_of(panel, k, 4)) for k in (1, 1, 2))
            assert one == again != other


@pytest.mark.parametrize("panel", SHIPPED, ids=lambda panel: panel.letter)
def test_the_floor_and_its_problem_are_the_same_whatever_epsilon(panel) -> None:
    seed = seed_of(panel, 1, 4)
    assert by_trust(panel, FLOOR, 30, seed, 5.0) == by_trust(panel, FLOOR, 30, seed)


def test_learners_are_those_of_the_paper_on_its_problems() -> None:
    seed = seed_of(OF["a"], 1, 4)
    trial = run_trial(OF["a"], Algorithm.TGP, Setting(0.001), 30, seed)
    assert by_learner(OF["a"], Algorithm.TGP.value, 30, seed) == trial.relative


def test_ranges_are_public_and_rewards_of_student_are_clipped() -> None:
    rng = np.random.default_rng(0)
    found = [answers_of(panel, panel.problem(rng)) for panel in SHIPPED]
    assert found == [(-2.0, 2.0), (-4.0, 4.0), pytest.approx((-1.4, 1.4))]


@pytest.mark.parametrize(
    ("flags", "methods", "ratios"), [((), STUDIES, len(TRUSTS) - 1), (("--learners",), LEARNERS, 0)]
)
def test_command_prints_a_table_and_keeps_it(
    flags, methods, ratios, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    path = tmp_path / "panels.json"
    arguments = ["--trials", "2", "--users", "30", "--record", str(path), *flags]
    monkeypatch.setattr(sys, "argv", ["panels", *arguments])
    main()
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.count(" | ") == 1 + len(methods) + ratios
    record = json.loads(path.read_text(encoding="utf-8"))
    assert list(record) == ["a", "d", "g"]
    for panel, row in zip(SHIPPED, rows, strict=True):
        assert tuple(record[panel.letter]) == methods
        mean = 100 * np.mean(record[panel.letter][methods[0]])
        assert row.startswith(f"| {panel.letter}, {panel.title} | ")
        assert f" | {mean:.0f} ± " in row
