"""Accountants in closed form, against their theorems and dp-accounting."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from accounting_builders import (
    any_invocations,
    gaussian_invocations,
    plan,
    poisson,
    pure_invocations,
    use,
)
from accounting_conformance import AccountantLaws
from accounting_truths import exact_gaussian_delta
from hypothesis import strategies as st

from dpaudit.accounting import compose, guarantee
from dpaudit.accounting.closed_forms import BoundedRangeAccountant
from dpaudit.accounting.closed_forms.additive import (
    GaussianAccountant,
    GaussianComposition,
    PureAccountant,
    ZcdpAccountant,
    rho_of,
    zcdp_delta,
    zcdp_epsilon,
)
from dpaudit.accounting.closed_forms.rdp import MomentsAccountant, RdpAccountant
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.terms import terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    DiscreteGaussian,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyMax,
    Norm,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.plan import FixedSizeSampling, PoissonSampling, ReplaceOne


class TestPure(AccountantLaws):
    accountant = PureAccountant()
    ledgers = st.lists(pure_invocations(), min_size=1, max_size=4)


def test_sums_are_exact_before_they_are_rounded() -> None:
    thirds = PureAccountant().compose([use(Laplace(3.0), count=3)])
    assert thirds.total == 3 * Fraction(1, 3)
    assert thirds.epsilon(0.5).upper == 1.0
    assert thirds.native == {"pure_epsilon": 1.0}
    assert not thirds.is_exact


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_one_use_has_its_own_curve(delta: float) -> None:
    """δ(ε') = 1 − exp((ε' − ε)/2) of one Laplace release."""
    alone = PureAccountant().compose([use(Laplace(1.0), 1.5)])
    assert alone.is_exact
    interval = alone.epsilon(delta)
    assert interval.lower is not None
    assert interval.lower <= 1.5 + 2 * math.log1p(-delta) <= interval.upper
    assert interval.upper - interval.lower < 1e-6
    ends = alone.delta(0.4)
    assert ends.lower is not None
    assert ends.lower <= -math.expm1((0.4 - 1.5) / 2) <= ends.upper


def test_several_uses_have_the_curve_of_all_that_are_so_private() -> None:
    """(e^E − e^ε)/(1 + e^E) for a sum E."""
    two = PureAccountant().compose([use(Laplace(1.0), count=2)])
    exact = (math.exp(2) - math.exp(0.5)) / (1 + math.exp(2))
    assert exact <= two.delta(0.5).upper <= exact * (1 + 1e-12)
    assert two.delta(2.0).upper == 0


def test_failures_come_on_top() -> None:
    box = PureAccountant().compose([use(ApproximateBlackBox(0.5, 1e-6), count=2)])
    assert box.epsilon(1e-6).upper == math.inf
    assert box.epsilon(2.1e-6).upper == 1.0
    assert box.native["delta"] == pytest.approx(2e-6)


def test_unbounded_losses_are_named() -> None:
    with pytest.raises(UnsupportedError, match="gaussian at 'g' has unbounded loss"):
        PureAccountant().compose([use(Laplace(1.0)), use(Gaussian(1.0), at="g")])


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 1.0, 7.0, 40.0, 1e4])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-5, 0.3])
def test_the_gaussian_interval_contains_the_truth(mu: float, delta: float) -> None:
    interval = GaussianComposition(mu).epsilon(delta)
    assert exact_gaussian_delta(mu, interval.upper) <= delta
    assert interval.lower is not None
    assert interval.lower == 0 or exact_gaussian_delta(mu, interval.lower) >= delta
    assert interval.upper - interval.lower <= 1e-7 * max(interval.upper, mu)
    ends = GaussianComposition(mu).delta(interval.upper)
    truth = exact_gaussian_delta(mu, interval.upper)
    assert ends.lower is not None
    assert ends.lower <= truth <= ends.upper


@pytest.mark.parametrize("delta", [3.98942280401432e-301, 3.9894e-301, 1e-301, 1e-310])
def test_a_root_below_the_normal_floats_has_an_interval(delta: float) -> None:
    interval = GaussianComposition(1e-300).epsilon(delta)
    assert interval.lower == 0.0  # μ may stand for less
    assert 0 < interval.upper < 1e-298


def test_mixed_gaussian_noise_adds_up_in_squares() -> None:
    ledger = [use(Gaussian(3.0), count=9), use(Gaussian(4.0), 2.0, count=4)]
    assert GaussianAccountant().compose(ledger).mu == pytest.approx(math.sqrt(2.0), rel=1e-12)


def test_the_gaussian_accountant_names_what_it_does_not_take() -> None:
    with pytest.raises(UnsupportedError, match="laplace at 'x' is not a Gaussian mechanism"):
        GaussianAccountant().compose([use(Laplace(1.0), at="x")])


class TestGaussian(AccountantLaws):
    accountant = GaussianAccountant()
    ledgers = st.lists(gaussian_invocations(), min_size=1, max_size=4)
    big = use(Gaussian(100.0), count=10**9)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 30.0, 1e5])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_zcdp_conversion_is_the_minimum_over_orders(rho: float, delta: float) -> None:
    x = np.geomspace(1e-5, 1e8, 200_001)
    orders = 1 + x
    curve = orders * rho + np.log(x / orders) - (math.log(delta) + np.log(orders)) / x
    found = zcdp_epsilon(rho, delta)
    assert found <= max(curve.min(), 0.0) * (1 + 1e-9) + 1e-12
    assert found >= max(curve.min(), 0.0) * (1 - 1e-6) - 1e-6
    assert zcdp_delta(rho, found) <= delta * (1 + 1e-6)
    assert zcdp_epsilon(rho, delta) >= GaussianComposition(math.sqrt(2 * rho)).epsilon(delta).upper


class TestZcdp(AccountantLaws):
    accountant = ZcdpAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)


def test_rho_adds_up_exactly_and_sampling_lowers_it_by_the_pure_epsilon() -> None:
    found = ZcdpAccountant().compose([use(Gaussian(2.0), count=3), use(ConcentratedBlackBox(0.25))])
    assert found.rho == pytest.approx(3 / 8 + 0.25, rel=1e-12)
    assert found.native == {"rho": found.rho}
    (sampled,) = terms([use(Laplace(1.0), sampling=poisson(0.1))])
    assert rho_of(sampled) == pytest.approx(math.log1p(0.1 * math.expm1(1)) ** 2 / 2, rel=1e-12)
    (normal,) = terms([use(Gaussian(2.0), sampling=poisson(0.1))])
    assert rho_of(normal) == pytest.approx(1 / 8, rel=1e-12)


def test_failures_come_on_top_and_pure_sums_cap() -> None:
    box = ZcdpAccountant().compose([use(ApproximateBlackBox(0.5, 1e-6), count=2)])
    assert box.epsilon(1.9e-6).upper == math.inf
    assert box.epsilon(2.1e-6).upper <= 1.0
    assert box.delta(1.0).upper == pytest.approx(2e-6)


def test_what_is_not_concentrated_is_named() -> None:
    far = use(Bare(), at="x")
    with pytest.raises(UnsupportedError, match="at 'x' is not zero-concentrated"):
        ZcdpAccountant().compose([far])
    assert ZcdpAccountant().compose([use(Gaussian(1e-200))]).epsilon(1e-3).upper == math.inf


@dataclass(frozen=True)
class Bare(Mechanism):
    """One that fails with probability 1/10, and says so in its pair alone."""

    kind: ClassVar[str] = "test-zcdp-bare"
    norm: ClassVar[Norm] = Norm.CHANGE

    def pair(self, sensitivity):
        return approximate_pair(0.5 * sensitivity, 0.1 * sensitivity)

    def sample(self, values, rng):
        return values


def test_rdp_is_capped_by_pure_epsilon() -> None:
    ledger = [use(Laplace(20.0), count=10)]
    assert RdpAccountant().compose(ledger).epsilon(1e-12).upper <= 0.5


def test_sampled_discrete_gaussian_costs_about_what_the_gaussian_costs() -> None:
    drawn = PoissonSampling(0.1)
    discrete = RdpAccountant().compose([use(DiscreteGaussian(4.0), sampling=drawn, count=50)])
    normal = RdpAccountant().compose([use(Gaussian(4.0), sampling=drawn, count=50)])
    ratio = discrete.epsilon(1e-6).upper / normal.epsilon(1e-6).upper
    assert 0.99 <= ratio <= 1.2


def test_rdp_of_randomised_response_is_its_own_divergence() -> None:
    one = RdpAccountant().compose([use(RandomizedResponse(0.5))])
    truth = np.log(
        0.75 ** ORDERS[60] * 0.25 ** (1 - ORDERS[60])
        + 0.25 ** ORDERS[60] * 0.75 ** (1 - ORDERS[60])
    ) / (ORDERS[60] - 1)
    assert one.divergences[60] == pytest.approx(truth, rel=1e-9)
    assert one.divergences[60] >= truth


class TestRdp(AccountantLaws):
    accountant = RdpAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)


class TestMoments(AccountantLaws):
    accountant = MomentsAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_gaussian_moments_are_converted_by_the_bound_of_markov(delta: float) -> None:
    """α(l) = l (l + 1) μ²/2, and the least of (α(l) + ln 1/δ)/l over 32 integers."""
    composed = MomentsAccountant().compose([use(Gaussian(4.0), count=8)])
    exact = min((l * (l + 1) * 8 / 32 - math.log(delta)) / l for l in range(1, 33))  # noqa: E741
    assert composed.epsilon(delta).upper == pytest.approx(exact, rel=1e-12)
    assert composed.delta(exact).upper == pytest.approx(delta, rel=1e-9)
    assert composed.native["log_moments"][0] == pytest.approx(8 / 16)


def test_sampling_without_a_formula_is_refused_by_name() -> None:
    drawn = FixedSizeSampling(1, 10)
    sampled = use(Gaussian(1.0), relation=ReplaceOne(), sampling=drawn, at="x")
    with pytest.raises(UnsupportedError, match="gaussian at 'x': the moments accountant has no f"):
        MomentsAccountant().compose([sampled])
    box = use(ConcentratedBlackBox(0.1), sampling=poisson(0.1), at="y")
    with pytest.raises(UnsupportedError, match="concentrated-black-box at 'y': sampling needs the"):
        MomentsAccountant().compose([box])


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


def test_approximate_zcdp_is_zcdp_beside_a_failure():
    """OpenDP's test of (ρ, δ) = (0.05, 1e-7): ε at 1e-6 is that of ρ at what is left of δ."""
    rho, failure, delta = 0.05, 1e-7, 1e-6
    parts = use(ConcentratedBlackBox(rho), at="x"), use(ApproximateBlackBox(0.0, failure), at="y")
    found = compose(plan(*parts)).epsilon(delta).upper
    alone = compose(plan(parts[0])).epsilon(delta - failure).upper
    assert alone * (1 - 1e-9) <= found <= alone * (1 + 1e-3)
    assert compose(plan(*parts)).epsilon(failure / 2).upper == math.inf
