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
from dpaudit.errors import InputError


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
    value, _, trials = exponent(Cell.of([curve, curve]))
    assert value == pytest.approx(0.75, abs=1e-6)
    assert trials == 2


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
    assert federated.less_regret(known, "synthetic", order, average=True).verdict == verdict
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
