from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting import compose, guarantee
from dpaudit.accounting.closed_forms import BoundedRangeAccountant
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import ExponentialMechanism, Laplace, NoisyMax

choices = st.builds(
    lambda e, n: use(ExponentialMechanism(e), count=n), st.floats(0.05, 1.0), st.integers(1, 6)
)


class TestBoundedRange(AccountantLaws):
    accountant = BoundedRangeAccountant()
    ledgers = st.lists(choices, min_size=1, max_size=3)
    big = use(ExponentialMechanism(0.5), count=40)


def composed(epsilon: float, count: int):
    return BoundedRangeAccountant().compose([use(ExponentialMechanism(epsilon), count=count)])


@pytest.mark.parametrize("epsilon", [1e-200, 1e-3, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_one_use_is_within_a_hundredth_of_its_exact_curve(epsilon, delta):
    exact = epsilon + 2 * math.log1p(-math.sqrt(min(-delta * math.expm1(-epsilon), 1)))
    found = composed(epsilon, 1).epsilon(delta)
    assert found.lower <= max(exact, 0.0) <= found.upper * (1 + 1e-15)
    assert found.upper <= max(exact, 0.0) + 0.01 * epsilon
    asked = 0.6 * epsilon
    truth = math.expm1((asked - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
    inside = composed(epsilon, 1).delta(asked)
    assert inside.lower <= truth <= inside.upper * (1 + 1e-15)
    assert inside.upper <= truth * 1.05 or epsilon == 1e-200  # where no δ is of interest


@pytest.mark.parametrize(("epsilon", "count"), [(0.7, 2), (1.3, 3)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8])
def test_the_interval_holds_the_best_adversary_found_by_search(epsilon, count, share):
    """Each choice has its own t, which may follow from the losses before."""
    x, grid = share * epsilon * count, np.linspace(0.0, epsilon, 61)

    @cache
    def value(left: int, at: float) -> float:
        if left == 0:
            return max(-math.expm1(at), 0.0)
        if left == 1:  # in closed form
            if abs(at) >= epsilon:
                return max(-math.expm1(at), 0.0)
            return math.expm1((at - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return max(
            p * value(left - 1, at - t) + (1 - p) * value(left - 1, at - t + epsilon)
            for t, p in zip(grid, np.expm1(grid - epsilon) / math.expm1(-epsilon), strict=True)
        )

    found, truth = composed(epsilon, count).delta(x), value(count, x)
    assert found.lower <= truth * (1 + 1e-3)
    assert truth <= found.upper
    assert found.upper <= truth * (1 + 0.02) + 1e-9


def test_two_fixed_choices_by_enumeration_cost_no_more():
    epsilon, asked = 0.9, 0.8
    worst = 0.0
    for first, second in itertools.product(np.linspace(0.01, 0.89, 45), repeat=2):
        p, q = (
            np.array([np.expm1(t - epsilon) / np.expm1(-epsilon), 0.0]) for t in (first, second)
        )
        p[1], q[1] = 1 - p[0], 1 - q[0]
        losses = np.add.outer([first, first - epsilon], [second, second - epsilon])
        worst = max(worst, (np.outer(p, q) * np.maximum(-np.expm1(asked - losses), 0)).sum())
    interval = composed(epsilon, 2).delta(asked)
    assert worst <= interval.upper
    assert interval.lower > 0.98 * worst


def test_a_thousand_choices_cost_less_than_their_concentration():
    """Dong, Durfee and Rogers: neither randomised response (17.8) nor zCDP (8.08)."""
    found = guarantee(plan(use(ExponentialMechanism(0.1), count=1000)), 1e-5)
    assert found.accountant == "bounded-range"
    assert 7.45 < found.epsilon - found.error_bound < found.epsilon < 7.6
    assert found.compared["zcdp"] == pytest.approx(8.078, abs=1e-3)


def test_what_has_bounded_range_is_counted_together():
    both = [
        use(ExponentialMechanism(0.3, 2.0), count=3),
        use(NoisyMax(0.3, noise="gumbel", monotonic=True), count=2),
    ]
    once = BoundedRangeAccountant().compose(both)
    assert once.native == {"range": 0.3, "uses": 5, "cells": 64}
    assert once.epsilon(1e-4) == composed(0.3, 5).epsilon(1e-4)
    mixed = BoundedRangeAccountant().compose([*both, use(ExponentialMechanism(0.2))])
    assert mixed.epsilon(1e-4).lower is None
    assert composed(0.3, 5).epsilon(1e-4).upper < mixed.epsilon(1e-4).upper
    assert mixed.epsilon(0.0).upper == pytest.approx(1.7)


@pytest.mark.parametrize(
    "refused",
    [
        use(Laplace(1.0)),
        use(NoisyMax(1.0)),
        use(ExponentialMechanism(1.0), sampling=poisson(0.1)),
        use(ExponentialMechanism(0.1), count=10**15),
        use(ExponentialMechanism(1e300)),
        use(ExponentialMechanism(5e-324)),
    ],
)
def test_all_else_is_left_to_others(refused):
    with pytest.raises(UnsupportedError, match="bounded-range accountant"):
        BoundedRangeAccountant().compose([refused])
    assert compose(plan(refused)).epsilon(0.0).upper > 0
