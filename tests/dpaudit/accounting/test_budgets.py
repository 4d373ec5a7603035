"""Filters of every kind: what they admit, what they refuse, and what they have spent."""

from __future__ import annotations

import math
from dataclasses import replace
from time import process_time

import pytest
from accounting_builders import plan, poisson, use
from accounting_truths import fill

from dpaudit.accounting import (
    AdaptiveFilter,
    Filter,
    RenyiFilter,
    ZcdpFilter,
    compose,
)
from dpaudit.accounting.closed_forms.additive import zcdp_epsilon
from dpaudit.accounting.orders import ORDERS
from dpaudit.base.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian, Laplace
from dpaudit.plan import Invocation, ReplaceOne

FILTERS = [
    (ZcdpFilter(1.0, 1e-6), use(Gaussian(20.0)), 0.75),
    (RenyiFilter(1.0, 1e-6), use(Gaussian(20.0)), 0.6),
    (RenyiFilter(3.0, 1e-6), use(Gaussian(1.0), sampling=poisson(0.01)), 0.7),
    (AdaptiveFilter(1.0, 1e-6), use(Laplace(100.0)), 0.7),
    (AdaptiveFilter(1.0, 0.0), use(Laplace(64.0)), 1.0),
]


@pytest.mark.parametrize(("budget", "invocation", "share"), FILTERS)
def test_a_full_filter_meets_its_promise_and_is_not_wasteful(
    budget: Filter, invocation: Invocation, share: float
) -> None:
    admitted = fill(budget, invocation)
    accountant = "rdp" if invocation.sampling else "best"
    whole = compose(plan(replace(invocation, count=admitted, total=None)), accountant)
    assert share * budget.epsilon <= whole.epsilon(budget.delta).upper <= budget.epsilon


def test_another_relation_is_refused() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    budget.admit(use(Gaussian(20.0)))
    with pytest.raises(InputError, match="under replace-one; this budget is for row under add"):
        budget.admit(use(Gaussian(20.0), relation=ReplaceOne()))
    with pytest.raises(InputError, match="it must be an Invocation"):
        budget.admit("gaussian")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [ZcdpFilter, RenyiFilter, AdaptiveFilter])
def test_a_promise_is_checked_and_shown(kind: type[Filter]) -> None:
    for epsilon, delta in ((-1.0, 1e-6), (math.inf, 1e-6), (1.0, 1.0), (1.0, -0.1)):
        with pytest.raises(InputError, match=r"(epsilon|delta) is"):
            kind(epsilon, delta)
    assert repr(kind(1, 1e-6)).startswith(f"{kind.__name__}(epsilon=1.0, delta=1e-06, admitted=0")


def test_two_budgets_are_two_even_if_they_look_alike() -> None:
    first, second = ZcdpFilter(1.0, 1e-6), ZcdpFilter(1.0, 1e-6)
    first.admit(use(Gaussian(20.0)))
    assert first != second
    assert second.admitted == second.spent == 0


def test_what_costs_nothing_is_admitted_for_nothing() -> None:
    budget = RenyiFilter(1.0, 1e-6)
    budget.admit(use(Gaussian(1.0), 0.0))
    assert budget.admitted == 1
    assert not budget.spent.any()


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


def test_cost_does_not_grow_with_the_history() -> None:
    budget = RenyiFilter(50.0, 1e-6)
    step = use(Gaussian(50.0), sampling=poisson(0.01))
    budget.admit(step)
    times = []
    for _ in range(3):
        start = process_time()
        for _ in range(300):
            budget.admit(step)
        times.append(process_time() - start)
    assert times[-1] < 5 * times[0] + 0.05


def test_orders_are_those_of_the_accounting_grid_and_have_budgets_of_their_own() -> None:
    budget = RenyiFilter(2.0, 1e-6, orders=(2.05, 16, 15.999))
    assert set(budget.orders) <= set(ORDERS)
    assert len(budget.orders) == 2
    for order, left in zip(budget.orders, budget.budgets, strict=True):
        # D + ln((α − 1)/α) − (ln δ/m + ln α)/(α − 1) = ε (Canonne et al. 2020, Proposition 12).
        tail = math.log(1e-6 / 2) + math.log(order)
        assert left == pytest.approx(2.0 - math.log1p(-1 / order) + tail / (order - 1))


@pytest.mark.parametrize("orders", [(), (1.0,), (0.5, 2.0), (1e9,), (math.nan,), 3])
def test_orders_out_of_range_are_refused(orders: object) -> None:
    with pytest.raises(InputError, match="orders is"):
        RenyiFilter(1.0, 1e-6, orders=orders)  # type: ignore[arg-type]


def test_failures_have_no_place() -> None:
    with pytest.raises(UnsupportedError, match="has a δ of its own"):
        RenyiFilter(1.0, 1e-6).admit(use(ApproximateBlackBox(0.01, 1e-8)))


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


def test_black_boxes_pay_from_their_own_share_of_delta_adaptive() -> None:
    box = use(ApproximateBlackBox(0.01, 1e-8))
    assert fill(AdaptiveFilter(1.0, 1e-6, slack=5.5e-8), box) == 5
    assert fill(AdaptiveFilter(1.0, 0.0), box) == 0


@pytest.mark.parametrize(("delta", "slack"), [(1e-6, 1e-6), (1e-6, -1.0), (0.0, 1e-9)])
def test_the_share_must_leave_something_adaptive(delta: float, slack: float) -> None:
    with pytest.raises(InputError, match="slack is"):
        AdaptiveFilter(1.0, delta, slack=slack)


def test_unbounded_losses_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="gaussian at 'g' has no pure ε"):
        AdaptiveFilter(1.0, 1e-6).admit(use(Gaussian(1.0), at="g"))


def test_the_budget_cannot_be_raised_later() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    with pytest.raises(AttributeError):
        budget.rho = 100.0  # type: ignore[misc]


def test_the_budgets_of_a_renyi_filter_stay_what_they_are():
    budget = RenyiFilter(1.0, 1e-6)
    before = budget.budgets.tolist()
    budget.budgets[:] = 100.0
    with pytest.raises(AttributeError):
        budget.budgets = before  # type: ignore[misc]
    assert budget.budgets.tolist() == before
    with pytest.raises(BudgetExceededError):
        budget.admit(use(Gaussian(0.5)))
