from __future__ import annotations

import math
from time import process_time

import pytest
from accounting_builders import poisson, use

from dpaudit.accounting import (
    RenyiFilter,
)
from dpaudit.accounting.orders import ORDERS
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian


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
