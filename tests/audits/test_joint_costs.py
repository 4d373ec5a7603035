"""What the paper's noise costs, against printed figures and a closed form."""

from __future__ import annotations

import math

import pytest

from audits.paper_rows.trials.joint import lemma_2_cost, lemma_5_cost
from dpaudit.accounting.closed_forms.additive import GaussianComposition
from private_bo.joint.statistics import lemma_2_sigma


@pytest.mark.parametrize(
    ("alpha", "bound", "printed"), [(1.0, 10.0, 0.44), (1.0, 100.0, 20.8), (10.0, 10.0, 25.1)]
)
def test_cost_of_lemma_2(alpha: float, bound: float, printed: float) -> None:
    cost = lemma_2_cost(alpha, 0.1, bound)
    assert cost.epsilon == pytest.approx(printed, abs=0.06)
    square = 1 + bound**2 + 2 * math.log(8 * 1024 / 0.1)
    sigma = lemma_2_sigma(alpha, 0.1, steps=1024, bound=bound, variance=1.0)
    mu = math.sqrt(11) * square / sigma  # n ‖D‖²/2σ² with ‖D‖² = 2 L⁴
    assert cost.epsilon == pytest.approx(GaussianComposition(mu).epsilon(0.1).upper, rel=1e-6)
    assert (cost.verdict == "holds") == (cost.epsilon <= alpha)
    assert lemma_2_cost(alpha, 0.1, bound, printed=True).verdict == "holds"


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("beta", [0.1, 1e-3, 1e-5])
def test_lemma_5_holds_for_small_budgets(alpha: float, beta: float) -> None:
    assert lemma_5_cost(alpha, beta, 1.0).verdict == "holds"


@pytest.mark.parametrize(("beta", "printed"), [(0.1, 11.05), (1e-3, 10.07)])
def test_cost_of_lemma_5(beta: float, printed: float) -> None:
    cost = lemma_5_cost(10.0, beta, 1.0)
    assert cost.orthogonal == pytest.approx(printed, abs=0.005)
    assert cost.epsilon > cost.orthogonal
    assert cost.verdict == "false"
