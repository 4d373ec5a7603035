"""Curves of one composition at any δ and ε, and their ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, poisson, repeated, use
from accounting_truths import ends, exact_gaussian_delta
from accounting_truths import pld_delta as delta
from accounting_truths import pld_epsilon as epsilon
from effort import examples, few
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.accounting import Interval, compose, guarantee, guarantees
from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.pld import direction
from dpaudit.accounting.pld.accountant import PLDAccountant, PLDComposition, compose_terms
from dpaudit.accounting.pld.bounds import ComposedLaw
from dpaudit.accounting.pld.engine import Grid, compose_on
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.plan import PoissonSampling


@pytest.mark.parametrize("wish", [1e-15, 1e-40, 1e-100])
def test_tiny_deltas_keep_their_relative_accuracy(wish: float) -> None:
    lower, upper = ends(epsilon(repeated(Gaussian(20.0), 500), delta=wish))
    mu = math.sqrt(500) / 20
    assert exact_gaussian_delta(mu, upper) <= wish <= exact_gaussian_delta(mu, lower)
    assert upper - lower < 2e-3 * upper


MIXED = (
    repeated(Gaussian(3.0), 5),
    repeated(Laplace(4.0), 7),
    repeated(Gaussian(1.2), 20, rate=0.05),
    repeated(RandomizedResponse(0.9, 4), 3),
    repeated(Laplace(1.0), 4, rate=0.1),
)


@given(
    wishes=st.lists(st.floats(-9, -1), min_size=2, max_size=4, unique=True),
    size=st.integers(1, len(MIXED)),
)
@few
def test_epsilon_falls_with_delta(wishes: Sequence[float], size: int) -> None:
    composition = PLDAccountant().compose(MIXED[:size])
    found = [ends(composition.epsilon(10**wish)) for wish in sorted(wishes)]
    for (lower, upper), (next_lower, next_upper) in itertools.pairwise(found):
        assert next_upper <= upper * (1 + 1e-3)
        assert next_lower <= upper
        assert lower <= upper
        assert next_lower <= next_upper


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.5])
def test_delta_and_epsilon_are_inverse(eps: float) -> None:
    composition = PLDAccountant().compose(MIXED)
    lower, upper = ends(composition.delta(eps))
    low_epsilon, _ = ends(composition.epsilon(upper))
    _, high_epsilon = ends(composition.epsilon(lower))
    assert low_epsilon <= eps <= high_epsilon
    assert high_epsilon - low_epsilon < 2e-2 * eps


def test_no_noise_to_account_for() -> None:
    assert epsilon(repeated(Gaussian(1.0), sensitivity=0.0)) == Interval(0.0, 0.0)
    assert epsilon(repeated(Gaussian(1e9)), delta=1e-5) == Interval(0.0, 0.0)


def test_pure_composition_at_delta_zero() -> None:
    lower, upper = ends(epsilon(repeated(Laplace(20.0), 10), delta=0.0))
    assert lower <= 0.5 <= upper
    assert upper - lower < 1e-12
    assert ends(epsilon(repeated(Gaussian(1.0)), delta=0.0)) == (math.inf, math.inf)
    assert ends(delta(repeated(Laplace(20.0), 10), epsilon=0.51)) == (0.0, 0.0)


def test_infinite_losses() -> None:
    term = DirectedTerm(PlainPair(approximate_pair(0.1, 1e-6)), 100)
    composition = compose_terms([term], [term])
    assert composition.epsilon(5e-5) == Interval(math.inf, math.inf)
    lower, upper = ends(composition.epsilon(2e-4))
    assert 0 < lower <= upper < 10
    # At the largest loss only infinite losses are left.
    lower, upper = ends(composition.delta(10.1))
    assert lower <= -math.expm1(100 * math.log1p(-1e-6)) <= upper


@pytest.mark.parametrize("mechanism", [Gaussian(1e5), Laplace(1e5), Gaussian(1.0)])
def test_a_billion_uses(mechanism: Mechanism) -> None:
    lower, upper = ends(epsilon(repeated(mechanism, 10**9)))
    # A Laplace release of small ε is nearly Gaussian with μ = ε.
    mu = math.sqrt(1e9) / (mechanism.scale if isinstance(mechanism, Laplace) else mechanism.sigma)
    loose = 1.01 if isinstance(mechanism, Laplace) else 1.0
    assert exact_gaussian_delta(mu, upper * loose) <= 1e-5
    assert exact_gaussian_delta(mu, lower / loose) >= 1e-5
    assert upper - lower < 0.03 * upper


@pytest.mark.parametrize("sigma", [1e-300, 1e-160, 1e-20, 1e-8])
def test_hopeless_noise_has_no_finite_guarantee(sigma: float) -> None:
    lower, upper = ends(epsilon(repeated(Gaussian(sigma)), repeated(Laplace(3.0))))
    assert upper == math.inf
    assert math.isfinite(lower)
    assert ends(delta(repeated(Gaussian(sigma)), epsilon=1.0))[1] == 1.0


def test_masses_are_finite_everywhere() -> None:
    composition = PLDAccountant().compose(MIXED)
    for wish in (1e-270, 1e-150, 1e-30, 0.3, 0.9):
        lower, upper = ends(composition.epsilon(wish))
        assert np.isfinite([lower, upper]).all()


DELTAS = np.geomspace(1e-12, 0.05, 9)


def _many(distinct: int):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(7)
    scales, rates = rng.uniform(1, 3, distinct), rng.uniform(0.005, 0.02, distinct)
    return plan(
        *(
            use(Gaussian(float(sigma)), sampling=poisson(float(rate)))
            for sigma, rate in zip(scales, rates, strict=True)
        )
    )


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_one_law_gives_a_whole_curve(delta: float) -> None:
    composed = compose(_many(5), "pld")
    assert isinstance(composed, PLDComposition)
    near = composed.epsilons_near(delta, np.append(DELTAS, delta))
    assert near[-1] == composed.epsilon(delta).upper
    own = [composed.epsilon(float(each)) for each in DELTAS]
    lowers = np.array([each.lower for each in own])
    assert (near[:-1] >= lowers).all()
    tight = delta * 1e-4 <= DELTAS
    uppers = np.array([each.upper for each in own])
    assert (near[:-1] <= uppers * 1.03 + 1e-3)[tight].all()
    assert composed.delta_near(delta, 0.5) >= (composed.delta(0.5).lower or 0.0)


def test_a_curve_of_many_mechanisms_takes_no_more_laws_than_its_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = []

    def counted(grid: Grid, terms: Sequence[DirectedTerm]) -> ComposedLaw:
        laws.append(grid)
        return compose_on(grid, terms)

    monkeypatch.setattr(direction, "compose_on", counted)
    monkeypatch.setattr(guarantees, "_MUCH", 1)
    steps = _many(8)
    point = compose(steps, "pld").epsilon(1e-5)
    needed = len(laws)
    found = guarantee(steps, 1e-5, "pld")
    # Whether joining costs less is known of the point without a law, and asked of one at the rest.
    assert len(laws) <= 2 * needed + 1
    assert found.epsilon == point.upper
    assert len(found.curve) > 25
    assert (found.epsilon, 1e-5) in [(each.epsilon, each.delta) for each in found.curve]
    deltas = [each.delta for each in found.curve]
    assert deltas == sorted(deltas, reverse=True)
    exact = compose(steps, "pld")
    for each in found.curve[1::6]:
        lower = exact.epsilon(each.delta).lower
        assert lower is not None
        assert lower <= each.epsilon <= lower * 1.03 + 1e-3


@pytest.mark.parametrize("target", [1e-9, 3e-9])
def test_one_use_of_rare_large_losses_costs_no_more_than_two(target: float) -> None:
    """Of σ = .207 and q = 2.7e-8 a loss of 18 has the mass 2e-13, and .00315 the mass 8.6e-6."""
    found = [
        compose(plan(repeated(DiscreteGaussian(0.207), count, rate=2.7e-8)), "pld").epsilon(target)
        for count in (1, 2)
    ]
    assert found[0].upper <= found[1].upper
    mass = 2 * math.exp(-0.5 / 0.207**2) / 2
    assert found[0].upper <= 1.001 * (
        math.log1p(2.7e-8 * math.expm1(0.5 / 0.207**2)) - target / mass
    )


RARE = {"sigma": 0.207, "rate": 2.7e-8}
"""Discrete Gaussian noise of which next to nothing is at two: a loss of 17.6 of mass 2.3e-13."""


def rare_epsilon(count: int, delta: float) -> float:
    """By the numbers of uses of each output, where the sample leaves; no other way costs more."""
    q = [math.exp(-0.5 * (k / RARE["sigma"]) ** 2) for k in range(-2, 4)]
    q = [each / math.fsum(q) for each in q]
    p = [(1 - RARE["rate"]) * here + RARE["rate"] * moved
         for here, moved in zip(q, [0.0, *q], strict=False)]  # fmt: skip
    ways = []
    for ones in range(min(count, 5) + 1):  # more are too rare, as are more than two twos
        for twos in range(min(count - ones, 2) + 1):
            many = math.comb(count, ones) * math.comb(count - ones, twos)
            rest = count - ones - twos
            each = [r[3] ** ones * r[4] ** twos * (1 - r[3] - r[4]) ** rest for r in (p, q)]
            ways.append([many * one for one in each])
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        found = math.fsum(max(a - math.exp(middle) * b, 0.0) for a, b in ways)
        low, high = (middle, high) if found > delta else (low, middle)
    return high


@pytest.mark.parametrize("count", [1, 2, 10, 20, 200, 300, 10_000])
def test_a_loss_that_is_rarer_than_delta_costs_nothing(count: int) -> None:
    one = repeated(DiscreteGaussian(RARE["sigma"]), count, rate=RARE["rate"])
    truth = rare_epsilon(count, 1e-9)
    lower, upper = ends(epsilon(one, delta=1e-9))
    assert lower <= truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) <= upper <= 1.05 * truth


def test_one_use_costs_no_more_than_another_beside_it() -> None:
    noise = DiscreteGaussian(RARE["sigma"])
    costs = [epsilon(repeated(noise, n, rate=RARE["rate"]), delta=1e-9) for n in range(1, 40)]
    for one, more in itertools.pairwise(costs):
        assert one.upper <= more.upper * (1 + 1e-9)


@given(scale=st.floats(0.01, 1e6), wish=st.floats(-300, -12))
@settings(few, max_examples=examples(20, 100))
def test_below_the_last_place_of_a_loss_one_use_is_bounded_too(scale: float, wish: float) -> None:
    """Of Laplace noise δ(ε) = 1 − e^((ε − 2/b)/2), whatever floats make of the difference."""
    for accountant in ("pld", "best"):
        upper = compose(plan(use(Laplace(scale), 2.0)), accountant).epsilon(10**wish).upper
        with mp.workdps(400):
            assert -mp.expm1((mp.mpf(upper) - 2 / mp.mpf(scale)) / 2) <= mp.mpf(10**wish)


def test_nothing_is_left_of_losses_that_are_rarer_than_delta() -> None:
    """Of forty rows at 1e-7, ten times, any is drawn with probability 4e-5, and δ is .5."""
    rows = PoissonSampling(1e-7, rows=40)
    for sigma in (0.02, 0.08546207198273355, 1.0):
        many = use(Gaussian(sigma), sampling=rows, count=10)
        assert epsilon(many, delta=0.5).upper == 0.0
        if sigma != 0.08546207198273355:  # whose curve at zero takes twenty seconds
            assert compose(plan(many), "pld").delta(0.0).upper <= 5e-5
