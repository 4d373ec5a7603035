"""Costs and limits beside the filters of accounting, and beside exact sums; windows of time."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import pytest
from booking import ABOUT, gaussian, laplace
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import Gaussian, Invocation, Laplace, Plan, PoissonSampling
from dpaudit.accounting import AdaptiveFilter, Filter, RenyiFilter, ZcdpFilter, compose
from dpaudit.base.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.base.numbers import most, stated
from dpaudit.book import Limit, limit_of
from dpaudit.book.limits import (
    ENDLESS,
    UNIT,
    charged_buckets,
    checked_window,
    joint_buckets,
    span_of,
)
from dpaudit.mechanisms import ApproximateBlackBox

SAMPLED = Plan.of(Invocation(Gaussian(1.0), 1.0, *ABOUT, sampling=PoissonSampling(0.01), at="s"))
BOX = Plan.of(Invocation(ApproximateBlackBox(0.01, 1e-8), 1.0, *ABOUT, at="b"))


def admitted(limit: Limit, plan: Plan) -> int:
    """How often, one after the other."""
    total, times = (0,) * len(limit.bounds), 0
    cost = limit.cost(plan)
    while limit.admits(total := tuple(a + b for a, b in zip(total, cost, strict=True))):
        times += 1
    return times


def passed(budget: Filter, plan: Plan) -> int:
    try:
        while True:
            for invocation in plan.invocations:
                budget.admit(invocation)
    except BudgetExceededError:
        return budget.admitted // len(plan.invocations)


@pytest.mark.parametrize(
    ("limit", "budget", "plan"),
    [
        ({"epsilon": 1.0}, AdaptiveFilter(1.0, 0.0), laplace(8.0)),
        ({"epsilon": 1.0}, AdaptiveFilter(1.0, 0.0), laplace(10.0)),
        ({"kind": "zcdp", "epsilon": 1.0, "delta": 1e-6}, ZcdpFilter(1.0, 1e-6), gaussian(20.0)),
        ({"epsilon": 1.0, "delta": 1e-6}, RenyiFilter(1.0, 1e-6), gaussian(20.0)),
        ({"epsilon": 3.0, "delta": 1e-6}, RenyiFilter(3.0, 1e-6), SAMPLED),
        (
            {"kind": "zcdp", "epsilon": 1.0, "delta": 1e-6, "slack": 5.5e-8},
            ZcdpFilter(1.0, 1e-6, slack=5.5e-8),
            BOX,
        ),
    ],
)
def test_a_limit_admits_what_its_filter_admits(limit, budget, plan):
    found = limit_of(limit)
    times = admitted(found, plan)
    assert times == passed(budget, plan) > 0
    assert times == found.times(found.cost(plan), (0,) * len(found.bounds))


@settings(max_examples=examples(30, 1000))
@given(st.floats(0.5, 1e4), st.integers(1, 10**6), st.integers(1, 1000))
def test_costs_are_rounded_up_and_add_exactly(scale, count, uses):
    limit = limit_of({"epsilon": 1e5})
    cost, _ = limit.cost(laplace(scale, count))
    exact = Fraction(Laplace(scale).pair(1.0).pure_epsilon) * count
    assert 0 <= Fraction(cost, UNIT) - exact < Fraction(1, UNIT)
    assert limit.reached((uses * cost, 0))["epsilon"] >= uses * exact


@settings(max_examples=examples(30, 1000))
@given(st.floats(1e-9, 1e5))
def test_limits_are_rounded_down(rho):
    limit = limit_of({"rho": rho})
    assert 0 <= stated(rho) - Fraction(limit.bounds[0], UNIT) < Fraction(1, UNIT)
    assert 0 <= most(rho) - Fraction(limit.admitted[0], UNIT) < Fraction(1, UNIT)


def test_what_is_reached_is_not_below_what_the_accountants_prove():
    for written in ({"epsilon": 3.0, "delta": 1e-6}, {"kind": "zcdp", "epsilon": 3, "delta": 1e-6}):
        limit = limit_of(written)
        plan = gaussian(5.0, count=7)
        proved = compose(plan).epsilon(1e-6).upper
        assert proved <= limit.reached(limit.cost(plan))["epsilon"] <= limit.epsilon
        full = tuple(map(max, limit.bounds, (0,) * len(limit.bounds)))
        assert limit.reached(full)["epsilon"] == pytest.approx(limit.epsilon, rel=1e-9)


def test_what_is_told_names_every_number_that_may_refuse():
    delta = 1e-7
    box = Plan.of(Invocation(ApproximateBlackBox(0.1, delta), 1.0, *ABOUT))
    told = limit_of({"kind": "zcdp", "epsilon": 2, "delta": 1e-6}).described
    cost = limit_of({"kind": "zcdp", "epsilon": 2, "delta": 1e-6}).cost(box)
    assert re.fullmatch(r"epsilon = 0\.\d+, slack = 1e-07", told(cost))
    assert told((0, 0)) == "epsilon = 0"
    curve = limit_of({"curve": [[2, 0.01]]})
    share = float(curve.described(curve.cost(gaussian(5.0))).removeprefix("share = "))
    assert 4 <= share < 4.1  # α/2σ² = 0.04 at the next order above 2, over 0.01


def test_a_curve_is_kept_at_every_order():
    limit = limit_of({"curve": [[2, 1.0], [32, 10.0]]})
    (two, many) = limit.cost(gaussian(2.0, count=4))
    assert two / UNIT == pytest.approx(2 * 4 / 8, rel=0.05)  # at the next order of the grid
    assert many / UNIT == pytest.approx(32 * 4 / 8, rel=1e-9)
    assert two / UNIT >= 1.0
    assert not limit.admits((two, many))
    assert limit_of({"curve": [[2, 1.2], [32, 20.0]]}).admits((two, many))
    assert limit.point[0] == pytest.approx(10 + math.log(1e6) / 31)


def test_disjoint_groups_cost_as_much_as_the_dearest():
    plan = Plan.of(
        *(Invocation(Laplace(s), 1.0, *ABOUT, group=f"{s}", at=f"{s}") for s in (2.0, 8.0)),
        Invocation(Laplace(4.0), 1.0, *ABOUT, at="all"),
    )
    assert limit_of({"epsilon": 9.0}).cost(plan) == (UNIT * 3 // 4, 0)


def test_what_cannot_be_counted_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="'g' has no pure ε; give the data set a budget"):
        limit_of({"epsilon": 1.0}).cost(gaussian())
    with pytest.raises(UnsupportedError, match="'b' has a δ of its own"):
        limit_of({"epsilon": 1.0, "delta": 1e-6}).cost(BOX)
    tiny = Plan.of(replace(gaussian().invocations[0], mechanism=Gaussian(1e-300)))
    assert limit_of({"rho": 1.0}).cost(tiny)[0] == ENDLESS


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0; it must be a finite number above 0"),
        ({"epsilon": 1e9}, "limit is above 1000000"),
        ({"rho": 1.0, "delta": 1e-6}, "unknown key 'delta'"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta is 1.0"),
        ({"curve": [[1, 2]]}, "curve is"),
        ({"curve": 3}, "curve is"),
        ({"delta": 1e-6}, "limit is missing"),
        ({"epsilom": 1.0}, "unknown key 'epsilom'; did you mean 'epsilon'?"),
        ({"kind": "none", "rho": 1}, "limit is 'none'"),
    ],
)
def test_limits_that_are_none(stated, said):
    with pytest.raises(InputError, match=said):
        limit_of(stated)


def test_free_plans_and_full_budgets():
    limit = limit_of({"rho": 1.0})
    assert limit.times((0, 0), (0, 0)) is None
    assert limit.times((UNIT, 0), (UNIT // 10**11, 0)) == 0
    assert limit.times((1, 1), (0, 0)) == 0  # there is no slack
    assert limit.share((UNIT // 2, 0)) == pytest.approx(0.5)
    assert limit.share((0, 1)) == math.inf
    assert limit_of(limit.to_dict()) == limit


def test_a_cost_may_be_all_of_a_limit():
    """ρ = Δ²/2σ² (Bun and Steinke 2016, Proposition 1.6), where it is a number of the units."""
    for sigma, count, rho in ((2.0, 1, 0.125), (0.5, 1, 2.0), (4.0, 3, 0.09375), (1.0, 5, 2.5)):
        plan, limit = gaussian(sigma, count=count), limit_of({"rho": rho})
        assert limit.cost(plan) == (Fraction(rho) * UNIT, 0)
        assert admitted(limit, plan) == 1
        assert not limit_of({"rho": rho * (1 - 1e-11)}).admits(limit.cost(plan))
    for sigma in (3.0, 0.3, 7.7, 1e-5):  # whose quotient is rounded
        exact = Fraction(1) / Fraction(sigma) ** 2 / 2
        assert limit_of({"rho": 1.0}).cost(gaussian(sigma))[0] > exact * UNIT


DAY = date(2026, 11, 23)  # a Monday


@pytest.mark.parametrize(
    ("window", "buckets"),
    [
        ("ever", ("ever",)),
        ("day", ("2026-12-31", "2027-01-01")),
        ("week", ("2026-W53",)),
        ("month", ("2026-12", "2027-01")),
        ("year", ("2026", "2027")),
        ("30 days", ("2026-11-23",)),
    ],
)
def test_a_release_charges_every_period_whose_data_it_reads(window, buckets):
    new_year = (date(2026, 12, 31), date(2027, 1, 1))
    assert charged_buckets(window, new_year, DAY) == buckets
    assert checked_window(window=window) == window


def test_days_in_a_row_roll():
    assert joint_buckets("3 days", "2026-03-01") == ("2026-03-01", "2026-02-28", "2026-02-27")
    assert joint_buckets("week", "2026-W48") == ("2026-W48",)
    every = {charged_buckets("7 days", (DAY, DAY), DAY - timedelta(n))[0] for n in range(7)}
    assert every == set(joint_buckets("7 days", DAY.isoformat()))


@pytest.mark.parametrize("window", ["", "weeks", "0 days", "99999 days", "-1 days", "٣ days", 7])
def test_windows_that_are_none(window):
    with pytest.raises(InputError, match=r"window is .*; it must be ever, day, week, month, year"):
        checked_window(window=window)


def test_spans():
    assert span_of(None, DAY) == (DAY, DAY)
    assert span_of("2026-11-16..2026-11-22", DAY) == (date(2026, 11, 16), date(2026, 11, 22))
    assert span_of("2026-W47", DAY) == (date(2026, 11, 16), date(2026, 11, 22))
    assert span_of("2026-W53..2027-W01", DAY) == (date(2026, 12, 28), date(2027, 1, 10))
    assert span_of("2024-02", DAY) == (date(2024, 2, 1), date(2024, 2, 29))
    assert span_of("2025..2026-03", DAY) == (date(2025, 1, 1), date(2026, 3, 31))
    wrongs = ("2026-11-22..2026-11-16", "1990-01-01..2026-01-01", "monday", "2026-13-01", "2026-13")
    for wrong in (
        *wrongs,
        "2026-W47-3",
        "20261116",
        "2026-W54",
        "2026..",
        "0000",
        "٢٠٢٦",
        "9999-W52",
    ):
        with pytest.raises(InputError, match="period is"):
            span_of(wrong, DAY)


def test_a_week_that_is_named_charges_all_its_days():
    week = span_of("2026-W47", DAY)
    assert charged_buckets("week", week, DAY) == ("2026-W47",)
    assert charged_buckets("day", week, DAY) == tuple(f"2026-11-{day}" for day in range(16, 23))
