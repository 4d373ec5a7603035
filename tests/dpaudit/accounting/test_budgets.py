from __future__ import annotations

import math
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import (
    AdaptiveFilter,
    Filter,
    Odometer,
    RenyiFilter,
    ZcdpFilter,
    filter_for,
    guarantee,
)
from dpaudit.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian, Laplace
from dpaudit.plan import Invocation, ReplaceOne


def fill(budget: Filter, invocation: Invocation, most: int = 10_000) -> int:
    for done in range(most):
        try:
            budget.admit(invocation)
        except BudgetExceededError:
            return done
    return most


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
    spent = guarantee(
        plan(replace(invocation, count=admitted, total=None)), budget.delta, accountant
    )
    assert share * budget.epsilon <= spent.epsilon <= budget.epsilon


def test_a_refusal_names_the_invocation_and_charges_nothing() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    budget.admit(use(Gaussian(20.0)))
    before = budget.spent
    with pytest.raises(BudgetExceededError, match="gaussian at 'big' would exceed"):
        budget.admit(use(Gaussian(0.1), at="big"))
    assert budget.spent == before
    assert budget.admitted == 1
    budget.admit(use(Gaussian(20.0)))


@pytest.mark.parametrize("budget", [ZcdpFilter(1.0, 1e-6), RenyiFilter(1.0, 1e-6), Odometer(1e-6)])
def test_a_release_cannot_be_undone(budget: Filter | Odometer) -> None:
    with pytest.raises(UnsupportedError, match="cannot be undone"):
        budget.undo(use(Gaussian(1.0)))


@pytest.mark.parametrize("accountant", ["pld", "moments", "gaussian"])
def test_fixed_composition_is_refused_with_the_reason(accountant: str) -> None:
    with pytest.raises(UnsupportedError, match="fixed in advance"):
        filter_for(accountant, 1.0, 1e-6)


def test_each_other_accountant_has_its_filter() -> None:
    assert isinstance(filter_for("pure", 1.0, 0.0), AdaptiveFilter)
    assert isinstance(filter_for("zcdp", 1.0, 1e-6), ZcdpFilter)
    assert isinstance(filter_for("best", 1.0, 1e-6), RenyiFilter)


def test_another_relation_is_refused() -> None:
    budget = ZcdpFilter(1.0, 1e-6)
    budget.admit(use(Gaussian(20.0)))
    with pytest.raises(InputError, match="under replace-one; this budget is for row under add"):
        budget.admit(use(Gaussian(20.0), relation=ReplaceOne()))


def test_black_boxes_pay_from_their_own_share_of_delta() -> None:
    box = use(ApproximateBlackBox(0.01, 1e-8))
    budget = ZcdpFilter(1.0, 1e-6, slack=5.5e-8)
    assert fill(budget, box) == 5
    assert fill(AdaptiveFilter(1.0, 1e-6, slack=5.5e-8), box) == 5
    with pytest.raises(UnsupportedError, match="has a δ of its own"):
        RenyiFilter(1.0, 1e-6).admit(box)


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


def test_the_odometer_is_above_the_fixed_composition_and_not_far() -> None:
    odometer = Odometer(1e-6)
    step = use(Gaussian(10.0))
    last = 0.0
    for done in range(1, 101):
        spent = odometer.record(step).epsilon
        fixed = guarantee(plan(replace(step, count=done, total=None)), 1e-6, "gaussian").epsilon
        assert max(last, fixed) <= spent
        last = spent
    assert last <= 1.6 * fixed


def test_the_odometer_holds_at_all_times_at_once() -> None:
    # The loss of Gaussian steps is a random walk; it may pass the odometer with probability δ.
    delta, sigma, steps, runs = 0.05, 2.0, 200, 20_000
    odometer = Odometer(delta)
    bounds = np.array([odometer.record(use(Gaussian(sigma))).epsilon for _ in range(steps)])
    rng = np.random.default_rng(7)
    increments = rng.normal(1 / (2 * sigma**2), 1 / sigma, size=(runs, steps))
    passed = (np.cumsum(increments, axis=1) > bounds).any(axis=1).sum()
    # P[Binomial(20 000, 0.05) > 1150] < 1e-6.
    assert passed <= 1150


def test_the_odometer_is_capped_by_the_pure_sum_and_starts_at_zero() -> None:
    odometer = Odometer(1e-6)
    assert odometer.spent.epsilon == 0
    assert odometer.record(use(Laplace(8.0))).epsilon == 0.125
    assert math.isfinite(odometer.record(use(Gaussian(8.0))).epsilon)
