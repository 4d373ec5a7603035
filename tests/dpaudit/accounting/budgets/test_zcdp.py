from __future__ import annotations

import pytest
from accounting_builders import use
from accounting_truths import fill

from dpaudit.accounting import ZcdpFilter
from dpaudit.accounting.closed_forms.zcdp import zcdp_epsilon
from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian


def test_a_refusal_names_the_invocation_and_charges_nothing() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    budget.admit(use(Gaussian(20.0)))
    before = budget.spent
    with pytest.raises(BudgetExceededError, match="gaussian at 'big' would exceed"):
        budget.admit(use(Gaussian(0.1), at="big"))
    assert budget.spent == before
    assert budget.admitted == 1
    budget.admit(use(Gaussian(20.0)))


def test_black_boxes_pay_from_their_own_share_of_delta() -> None:
    box = use(ApproximateBlackBox(0.01, 1e-8))
    assert fill(ZcdpFilter(1.0, 1e-6, slack=5.5e-8), box) == 5


def test_the_budget_of_rho_is_the_largest_that_converts_to_the_promise() -> None:
    budget = ZcdpFilter(1.0, 1e-6, slack=2e-7)
    left = 1e-6 - 2e-7
    assert zcdp_epsilon(budget.rho, left * (1 - 1e-12)) <= 1.0 + 1e-12
    assert zcdp_epsilon(budget.rho * (1 + 1e-9), left) > 1.0
    budget.admit(use(Gaussian(20.0), count=3))
    assert budget.spent == pytest.approx(3 / 800)


@pytest.mark.parametrize("slack", [1e-6, 1e-5, -1.0])
def test_the_share_must_leave_something(slack: float) -> None:
    with pytest.raises(InputError, match="slack is"):
        ZcdpFilter(1.0, 1e-6, slack=slack)


def test_the_budget_cannot_be_raised_later() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    with pytest.raises(AttributeError):
        budget.rho = 100.0  # type: ignore[misc]
