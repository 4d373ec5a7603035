"""Verdicts are what the numbers say, in both directions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.paper_rows.measured import (
    Number,
    Verdict,
    agreeing,
    exponent,
    judged,
    not_worse,
)
from audits.paper_rows.measures import federated, joint, local, measuring, outsourced
from audits.paper_rows.recording import Cell, Recording
from audits.paper_rows.rows import measure, rows_of
from dpaudit.base.errors import InputError


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
    found = agreeing([Number("x", 1.0, paper=1.0), Number("y", 1.0, paper=2.0)], "So.")
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert found.because == "1 of 2 printed numbers came out. So."


def test_judged_and_not_worse() -> None:
    assert judged(True, [], "").verdict is Verdict.REPRODUCED
    assert judged(False, [], "", no=Verdict.REFUTED).verdict is Verdict.REFUTED
    assert not_worse((2.0, 1.0))
    assert not not_worse((2.1, 1.0))


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


@pytest.mark.parametrize(("apart", "verdict"), [(0.01, "reproduced"), (1.0, "not reproduced")])
def test_an_exponent_of_a_wide_interval_decides_nothing(apart: float, verdict: str) -> None:
    rounds = np.arange(1.0, 401)
    powers = 0.4 + apart * np.linspace(-0.5, 0.5, 20)
    wide = Cell.of([rounds**power for power in powers])
    names = ("x", "theorem's width, tight noise, α = 1", "non-private", "uniform play")
    known = Recording("joint-figures", dict.fromkeys(names, wide))
    assert joint.growth(lambda _: known, "x", 0.5).verdict == verdict


def test_a_panel_of_a_wide_interval_is_no_evidence_of_competing() -> None:
    rng = np.random.default_rng(0)
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    cells = {
        f"a: {name}": Cell.of([np.full(9, max(0.0, each)) for each in rng.normal(level, 60.0, 30)])
        for name, level in zip(names, (100.0, 120.0, 105.0, 600.0), strict=True)
    }
    found = local.panel(lambda name: Recording(name, cells), "a")
    assert not_worse((found.numbers[-1].ours, found.numbers[-1].error))
    assert found.verdict is Verdict.NOT_REPRODUCED


def test_what_decides_is_among_the_numbers() -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, (3.0, 2.0, 1.0), strict=True)))
    shown = [number.what for number in federated.trend(known, "synthetic", order).numbers]
    assert shown[3:] == [
        "FTS less TS, mean of all rounds",
        "FTS-DE, P = 4 less FTS, mean of all rounds",
        "FTS-DE, P = 4 less TS, mean of all rounds",
    ]
    found = federated.beats(known, "digits", order[1:])
    assert [number.ours for number in found.numbers[3:5]] == [
        pytest.approx(found.numbers[place].ours - found.numbers[0].ours) for place in (1, 2)
    ]
    assert found.verdict is Verdict.REPRODUCED


def test_what_falls_at_the_end_alone_does_not_beat() -> None:
    slow = Cell.of([level * np.r_[np.full(40, 3.0), 0.1] for level in (1.0, 1.01, 0.99)])
    even = Cell.of([level * np.full(41, 1.0) for level in (1.0, 1.01, 0.99)])
    known = Recording("federated-digits", {"TS": even, "z = 1": slow})
    found = federated.beats(lambda _: known, "digits", ["z = 1"])
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert "at the end 1 are" in found.because


def test_a_figure_that_is_not_at_hand_is_not_reproduced() -> None:
    (row,) = rows_of(["K26"])
    found = measure(row).measured
    assert found.verdict is Verdict.NOT_POSSIBLE
    assert found.numbers


@pytest.mark.parametrize(
    ("moma", "verdict"),
    [(90.0, "reproduced"), (99.0, "reproduced"), (150.0, "not reproduced")],
)
def test_a_panel_is_judged_by_paired_differences(moma: float, verdict: str) -> None:
    levels = {"a: LDP-ATA-GP-UCB": 100.0, "a: LDP-TGP-UCB": 120.0, "a: LDP-MoMA-GP-UCB": moma}
    found = local.panel(records(**levels, **{"a: uniform play": 600.0}), "a")
    assert found.verdict == verdict


def test_where_nothing_is_learnt_nothing_is_reproduced() -> None:
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    found = local.panel(records(**{f"a: {name}": 100.0 for name in names}), "a")
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert "nothing is learnt" in found.because


@pytest.mark.parametrize(
    ("levels", "verdict"), [((3, 2, 1), "reproduced"), ((3, 1, 2), "not reproduced")]
)
def test_an_order_is_judged_step_by_step(levels, verdict: str) -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, map(float, levels), strict=True)))
    assert federated.less_regret(known, "synthetic", order).verdict == verdict
    assert federated.trend(known, "synthetic", order).verdict == verdict


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "reproduced"), (1.5, "not reproduced")])
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
