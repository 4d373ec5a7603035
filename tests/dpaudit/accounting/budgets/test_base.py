from __future__ import annotations

import math
from dataclasses import replace

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
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Gaussian, Laplace
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
