"""The statements of the papers: each has what measures it, and says what its numbers say."""

from __future__ import annotations

import inspect
import json
import math
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from audits.paper_rows.measurement import (
    ERRORS,
    Number,
    Verdict,
    exponent,
    judge,
    judge_agreement,
)
from audits.paper_rows.measures import code, federated, joint, local, outsourced
from audits.paper_rows.page import UNDECIDED
from audits.paper_rows.pictures import SHOWN
from audits.paper_rows.recording import FOLDER, Cell, Recording, experiments, table_of
from audits.paper_rows.rows import PAPERS, measure, measure_all, measuring, rows_of, table_in
from dpaudit.base.errors import InputError

# -- verdicts are what the numbers say, in both directions -----------------------------------------


def cell(level: float, spread: float = 0.01) -> Cell:
    """Ten trials around a level."""
    around = level * (1 + spread * np.sin(np.arange(10.0)))
    return Cell.of([value * np.linspace(0.1, 1.0, 50) for value in around])


def records(**levels: float):
    """A record of cells at these levels."""
    return lambda name: Recording(name, {label: cell(level) for label, level in levels.items()})


def test_agreement_is_within_two_errors_of_each() -> None:
    error = 0.1
    edge = 2 * math.sqrt(2) * error
    assert Number("x", 1.0, error, 10, 1.0 + 0.99 * edge).agrees()
    assert not Number("x", 1.0, error, 10, 1.0 + 1.01 * edge).agrees()
    assert Number("x", 1.0).agrees()
    assert Number("x", 1.01, paper=1.0).agrees(relative=0.02)
    many = Number("x", 1.0, error / 2, 40, 1.0 + 0.99 * math.sqrt(5) * error)
    assert many.agrees(runs=10)  # ten runs of the paper's have twice the error of 40
    assert not many.agrees()
    found = judge_agreement([Number("x", 1.0, paper=1.0), Number("y", 1.0, paper=2.0)], "So.")
    assert found.verdict is Verdict.NOT_FOUND
    assert found.because == "1 of 2 printed numbers came out. So."


def test_judged_and_for_sure() -> None:
    assert judge(True, [], "").verdict is Verdict.REPRODUCED
    assert judge(False, [], "", no=Verdict.REFUTED).verdict is Verdict.REFUTED
    assert not Number("x", 2.0, 1.0).above
    assert Number("x", 2.1, 1.0).above
    assert not Number("x", -2.0, 1.0).below
    assert Number("x", -2.1, 1.0).below


def test_exponent_of_a_power_law() -> None:
    curve = np.arange(1.0, 1001) ** 0.75
    value, error, trials = exponent(Cell.of([curve, 3 * curve]))
    assert value == pytest.approx(0.75, abs=2e-3)
    assert error == pytest.approx(0.0, abs=1e-12)
    assert trials == 2


def test_the_error_of_an_exponent_is_that_of_the_ratio() -> None:
    rng, rounds = np.random.default_rng(0), np.arange(1.0, 401)
    runs = [[rounds ** rng.normal(0.5, 0.1) for _ in range(20)] for _ in range(300)]
    found = [exponent(Cell.of(curves))[:2] for curves in runs]
    spread = np.std([value for value, _ in found])
    assert np.mean([error for _, error in found]) == pytest.approx(spread, rel=0.15)


def test_what_was_not_found_says_what_would_have_been() -> None:
    rng, error, missed = np.random.default_rng(0), 0.5, Number("x", -0.1, 0.5, 30)
    seen = rng.normal(-missed.least_found, error, 100_000) < -ERRORS * error
    assert seen.mean() == pytest.approx(0.8, abs=0.01)
    found = judge(False, [missed], "So.", undecided=[missed])
    assert found.because == "So. In 30 trials a difference of 1.4 (x) is found eight times of ten."
    assert judge(False, [missed], "So.", no=Verdict.REFUTED, undecided=[missed]).because == "So."


@pytest.mark.parametrize(
    ("apart", "verdict"), [(0.01, "reproduced"), (1.0, "false or empty as printed")]
)
def test_an_exponent_of_a_wide_interval_decides_nothing(apart: float, verdict: str) -> None:
    rounds = np.arange(1.0, 401)
    powers = 0.4 + apart * np.linspace(-0.5, 0.5, 20)
    wide = Cell.of([rounds**power for power in powers])
    sure = Cell.of([rounds**power for power in (0.39, 0.4, 0.41)])
    names = ("x", "theorem's width, tight noise, α = 1", "non-private", "uniform play")
    known = Recording("joint-figures", dict.fromkeys(names, sure) | {names[1]: wide})
    found = joint.growth(lambda _: known, "x", 0.5)  # the width of which the theorem speaks
    assert found.verdict == verdict
    assert "posterior's width it is." in found.because


def test_a_panel_of_a_wide_interval_is_no_evidence_of_competing() -> None:
    rng = np.random.default_rng(0)
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    cells = {
        f"a: {name}": Cell.of([np.full(9, max(0.0, each)) for each in rng.normal(level, 60.0, 30)])
        for name, level in zip(names, (100.0, 120.0, 105.0, 600.0), strict=True)
    }
    found = local.panel(lambda name: Recording(name, cells), "a")
    assert not found.numbers[-1].above
    assert found.verdict is Verdict.UNDERSPECIFIED


def test_a_panel_bears_the_error_of_the_regret_that_is_the_measure() -> None:
    """MoMA has 100 % ± 1 of the other's mean, but 120 % of it vary by 21 %."""
    spread = np.linspace(-1.0, 1.0, 30)
    levels = {
        "LDP-ATA-GP-UCB": 100 + 100 * spread,
        "LDP-TGP-UCB": 300 + 0 * spread,
        "LDP-MoMA-GP-UCB": 102 + 100 * spread,
        "uniform play": 600 + 0 * spread,
    }
    cells = {f"a: {name}": Cell.of([np.full(9, x) for x in xs]) for name, xs in levels.items()}
    wide = {"a: LDP-ATA-GP-UCB": Cell.of([np.full(9, x) for x in 100 + 500 * spread])}
    names = ("a: LDP-MoMA-GP-UCB", "a: LDP-TGP-UCB", "a: uniform play")
    alike = {names[0]: Cell.of([np.full(9, x) for x in 102 + 500 * spread])}
    for found, verdict in ((cells, "reproduced"), (cells | wide | alike, "underspecified")):
        assert local.panel(lambda _, known=found: Recording("x", known), "a").verdict == verdict


def test_the_error_of_a_ratio_bears_that_of_what_it_is_over() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(2000):
        base = rng.normal(100.0, 30.0, 40)
        runs = {"a": rng.normal(50.0, 1.0, 40) + base, "b": base}
        known = {name: Cell.of([np.array([x]) for x in xs]) for name, xs in runs.items()}
        found.append(Number.over("x", Recording("x", known), "a", "b"))
    spread = np.std([each.ours for each in found])
    assert np.mean([each.error for each in found]) == pytest.approx(spread, rel=0.1)


def test_what_decides_is_among_the_numbers() -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, (3.0, 2.0, 1.0), strict=True)))
    shown = [number.what for number in federated.trend(known, "synthetic", order).numbers]
    assert shown[3:] == [
        "FTS less TS, mean of all rounds",
        "FTS-DE, P = 4 less FTS, mean of all rounds",
        "FTS-DE, P = 4 less TS, mean of all rounds",
    ]
    found = federated.beats(known, "synthetic", order[1:])
    assert [number.ours for number in found.numbers[3:5]] == [
        pytest.approx(found.numbers[place].ours - found.numbers[0].ours) for place in (1, 2)
    ]
    assert found.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize(("task", "verdict"), [("digits", "reproduced"), ("rugged", "not found")])
def test_tuning_is_judged_at_the_end_and_functions_over_all_rounds(task: str, verdict: str) -> None:
    slow = Cell.of([level * np.r_[np.full(40, 3.0), 0.1] for level in (1.0, 1.01, 0.99)])
    even = Cell.of([level * np.full(41, 1.0) for level in (1.0, 1.01, 0.99)])
    known = Recording(task, {"TS": even, "z = 1": slow})
    assert federated.beats(lambda _: known, task, ["z = 1"]).verdict == verdict


@pytest.mark.parametrize(
    ("smallest", "verdict"), [(2.0, "false or empty as printed"), (2.01, "not found")]
)
def test_clips_that_change_nothing_cannot_be_too_small(smallest: float, verdict: str) -> None:
    levels = {"S = 3": smallest, "S = 5.5": 2.0, "S = 11": 2.05, "S = 22": 3.0, "S = 44": 4.0}
    found = federated.clip(records(**levels), "synthetic", 11)
    assert found.verdict == verdict
    assert ("give the same runs" in found.because) == (smallest == 2.0)


def test_a_trade_off_needs_both_ends() -> None:
    names = ("FTS", "FTS-DE, P = 2", "FTS-DE, P = 4", "FTS-DE, P = 8")
    for levels, verdict in (((3, 2, 2.1, 3), "reproduced"), ((3, 2, 2.1, 2.0), "not found")):
        known = records(**dict(zip(names, map(float, levels), strict=True)))
        assert federated.regions(known, "synthetic").verdict == verdict


def test_a_table_of_regret_is_judged_with_the_noise_of_the_paper() -> None:
    for paper, verdict in (((1, 2, 3), "reproduced"), ((3, 2, 1), "underspecified")):
        levels = {
            f"{noise} noise, α = {alpha:g}": 10.0 * level
            for noise, listed in (("tight", (1, 2, 3)), ("paper", paper))
            for alpha, level in zip((10.0, 1.0, 0.1), listed, strict=True)
        }
        levels |= {"non-private": 1.0, "uniform play": 40.0}
        known = records(**{f"camelback, {name}": level for name, level in levels.items()})
        found = joint.table_1(known, "camelback")
        assert found.verdict == verdict
        assert "with calibrated noise it does." in found.because


def test_a_theorem_is_held_against_uniform_play_of_as_many_rounds() -> None:
    names = ("LDP-MoMA-GP-UCB, theorem's width", "uniform play")
    known = records(**{f"a: {name}": 100.0 for name in names})
    found = local.theorem_4(known)
    assert found.verdict is Verdict.AS_PRINTED
    assert found.numbers[3].ours == pytest.approx(83.7, rel=0.01)  # 3 epochs of 279


def test_a_figure_that_is_not_at_hand_is_no_verdict() -> None:
    (row,) = rows_of(["K26"])
    found = measure(row)
    assert found["verdict"] == Verdict.NO_DATA
    assert found["numbers"]


@pytest.mark.parametrize(
    ("moma", "verdict"),
    [(90.0, "reproduced"), (99.0, "reproduced"), (150.0, "underspecified")],
)
def test_a_panel_is_judged_by_paired_differences(moma: float, verdict: str) -> None:
    levels = {"a: LDP-ATA-GP-UCB": 100.0, "a: LDP-TGP-UCB": 120.0, "a: LDP-MoMA-GP-UCB": moma}
    found = local.panel(records(**levels, **{"a: uniform play": 600.0}), "a")
    assert found.verdict == verdict


def test_where_nothing_is_learnt_nothing_is_reproduced() -> None:
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    found = local.panel(records(**{f"a: {name}": 100.0 for name in names}), "a")
    assert found.verdict is Verdict.UNDERSPECIFIED
    assert "nothing is learnt" in found.because


@pytest.mark.parametrize(
    ("levels", "verdict"), [((3, 2, 1), "reproduced"), ((3, 1, 2), "not found")]
)
def test_an_order_is_judged_step_by_step(levels, verdict: str) -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, map(float, levels), strict=True)))
    assert federated.less_regret(known, "synthetic", order).verdict == verdict
    assert federated.trend(known, "synthetic", order).verdict == verdict


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "reproduced"), (1.5, "not found")])
def test_a_table_is_judged_cell_by_cell(scale: float, verdict: str) -> None:
    printed = outsourced.TABLES["grid"][1.1]
    levels = {f"ε = e^1.1, r = {r}": scale * value for r, value in printed}
    found = outsourced.table(records(**levels, **{"rows in the clear": 0.01}), "grid", 1.1)
    assert found.verdict == verdict


def test_lemmas_have_the_verdicts_of_their_costs() -> None:
    known = records()
    assert joint.lemma_2(known, printed=False).verdict is Verdict.REFUTED
    assert joint.lemma_2(known, printed=True).verdict is Verdict.REPRODUCED
    assert joint.lemma_5(known, [10.0]).verdict is Verdict.REFUTED
    assert joint.lemma_5(known, [0.1, 1.0]).verdict is Verdict.REPRODUCED


def test_beyond_the_range_the_loss_is_laplaces() -> None:
    found = local.unbounded_inputs(records())
    # δ(ε) of Laplace noise at distance 3ε by quadrature of the positive part.
    x = np.linspace(-60.0, 60.0, 400_001)
    p, q = (np.exp(-np.abs(x - shift)) / 2 for shift in (0.0, 3.0))
    expected = float(np.maximum(p - math.e * q, 0.0).sum() * (x[1] - x[0]))
    assert found.numbers[0].ours == pytest.approx(expected, abs=1e-4)
    assert found.verdict is Verdict.REFUTED


def test_another_measure_is_one_sentence() -> None:
    for name in ("local.nothing", "nowhere.panel", "local"):
        with pytest.raises(InputError, match=r"it must be module\.function"):
            measuring(name)


# -- every row has what measures it, and says what its numbers say ---------------------------------


ROOT = Path(__file__).parents[2]
ROWS = {row.id: row for row in rows_of()}
RECORDED = (
    "Z6", "Z13", "Z14", "Z17", "K8", "K11", "K12", "K16", "K26", "D3", "D11", "D12",
    "D18", "D21", "F8", "F9", "F11", "F13", "F17", "F19", "F20", "F21", "F23", "F26",
)  # fmt: skip
"""Rows that rest on records alone, which are read at once."""


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_has_what_measures_it_or_a_reason(row) -> None:
    assert bool(row.measure) != bool(row.impossible)
    assert row.place
    assert row.claim.endswith(".")
    if row.measure:
        inspect.signature(measuring(row.measure)).bind(None, **row.arguments)


def test_ids_count_the_rows_of_a_paper() -> None:
    letters = [list(group) for _, group in groupby(ROWS, key=lambda name: name[0])]
    assert [len(PAPERS[place].rows) for place in range(4)] == [len(each) for each in letters]
    for names in letters:
        assert names == [f"{names[0][0]}{number}" for number in range(1, len(names) + 1)]


def test_tests_and_pictures_that_rows_name_are_there() -> None:
    for row in ROWS.values():
        for node in row.arguments.get("nodes", ()):
            file, _, name = node.partition("::")
            text = (ROOT / "tests" / "private_bo" / file).read_text(encoding="utf-8")
            assert f"def {name}(" in text or not name
    assert {name for paper in PAPERS for name in paper.pictures} <= set(experiments())
    assert list(SHOWN) == list(experiments())
    for name, experiment in experiments().items():
        assert {cell for cells in SHOWN[name].values() for cell in cells} <= set(experiment.cells)


def test_the_results_have_every_row_and_at_most_25_are_open() -> None:
    found = table_in(FOLDER).found()
    assert set(found) == set(ROWS)
    verdicts = [Verdict(row["verdict"]) for row in found.values()]
    assert sum(verdict in UNDECIDED for verdict in verdicts) <= 25


@pytest.mark.parametrize("name", RECORDED)
def test_a_verdict_follows_from_the_record(name: str) -> None:
    found = ROWS[name].asked | measure(ROWS[name])
    assert json.loads(json.dumps(found)) == table_in(FOLDER).found()[name]


def test_every_experiment_has_its_record_of_as_many_trials_as_it_says() -> None:
    for experiment in experiments().values():
        table = table_of(experiment)
        assert list(table.load()) == list(experiment.cells)
        assert not table.missing()
        assert all(len(each["final"]) == experiment.trials for each in table.found().values())
        assert set(experiment.spot) <= set(experiment.cells)


def test_without_a_record_a_row_is_not_run(tmp_path: Path) -> None:
    found = measure(ROWS["Z14"], folder=tmp_path)
    assert found["verdict"] == Verdict.NOT_RUN
    assert not found["numbers"]


def test_without_its_data_a_row_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    row = next(row for row in ROWS.values() if row.arguments == {"data": "loans"})
    found = measure(row)
    assert found["verdict"] == Verdict.NOT_RUN
    assert "DPAUDIT_DATA" in found["because"]


def test_rows_come_in_their_order_with_tests_among_them() -> None:
    outcomes = measure_all(rows_of(["K7", "Z2", "F25"]))
    assert list(outcomes) == ["Z2", "K7", "F25"]
    assert outcomes["K7"]["verdict"] == Verdict.REPRODUCED


@pytest.mark.parametrize("word", ["FAILED", "SKIPPED", "ERROR", None])
def test_one_test_that_does_not_pass_decides(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    home = "tests/private_bo/"
    words = {f"{home}x::a": "PASSED"} | (
        {f"{home}x::b": word, f"{home}y::c": "PASSED"} if word else {}
    )
    monkeypatch.setattr(code, "outcomes", lambda names: words)
    found = code.tests(None, ["x", "y"], future=False)
    assert found.verdict is Verdict.NOT_FOUND
    assert found.numbers[1].ours == 1


def test_another_row_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^row is 'Q1'; it must be one of Z1, .*\.$"):
        rows_of(["Q1"])
