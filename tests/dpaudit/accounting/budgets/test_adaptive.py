from __future__ import annotations

import math

import pytest
from accounting_builders import use
from accounting_truths import fill

from dpaudit.accounting import AdaptiveFilter
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian, Laplace


def test_without_delta_it_adds_up() -> None:
    budget = AdaptiveFilter(1.0, 0.0)
    assert fill(budget, use(Laplace(8.0))) == 8
    assert budget.spent == 1.0


@pytest.mark.parametrize(("scale", "delta"), [(100.0, 1e-6), (30.0, 1e-3)])
def test_with_delta_it_adds_up_squares(scale: float, delta: float) -> None:
    """√(2 ln(1/δ) k ε²) + k ε²/2 ≤ 1 for k uses."""
    budget = AdaptiveFilter(1.0, delta)
    admitted = fill(budget, use(Laplace(scale)))

    def reached(uses: int) -> float:
        squares = uses / scale**2
        return math.sqrt(-2 * math.log(delta) * squares) + squares / 2

    assert reached(admitted) <= 1.0 < reached(admitted + 1)
    assert budget.spent == pytest.approx(reached(admitted))


def test_black_boxes_pay_from_their_own_share_of_delta() -> None:
    box = use(ApproximateBlackBox(0.01, 1e-8))
    assert fill(AdaptiveFilter(1.0, 1e-6, slack=5.5e-8), box) == 5
    assert fill(AdaptiveFilter(1.0, 0.0), box) == 0


@pytest.mark.parametrize(("delta", "slack"), [(1e-6, 1e-6), (1e-6, -1.0), (0.0, 1e-9)])
def test_the_share_must_leave_something(delta: float, slack: float) -> None:
    with pytest.raises(InputError, match="slack is"):
        AdaptiveFilter(1.0, delta, slack=slack)


def test_unbounded_losses_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="gaussian at 'g' has no pure ε"):
        AdaptiveFilter(1.0, 1e-6).admit(use(Gaussian(1.0), at="g"))
