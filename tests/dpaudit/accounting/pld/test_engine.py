"""Composed laws: grids, cumulants, and histories that grow."""

from __future__ import annotations

import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, repeated, use
from accounting_truths import PAIRS, ends, exact_gaussian_delta, pld_epsilon
from scipy.stats import norm

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.closed_forms.additive import GaussianComposition
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.accounting.pld.bounds import ComposedLaw, Frame
from dpaudit.accounting.pld.cumulants import Cumulants
from dpaudit.accounting.pld.engine import compose_on, plan_grid
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianPair,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)

# The choice of grids, and composition in one stage or two


@pytest.mark.parametrize(
    "terms",
    [
        [DirectedTerm(PAIRS[0], 30)],
        [DirectedTerm(PAIRS[1], 200), DirectedTerm(PAIRS[5], 40)],
        [DirectedTerm(PAIRS[6], 1000)],
        [DirectedTerm(PAIRS[8], 50), DirectedTerm(PAIRS[3], 3)],
    ],
)
def test_a_finer_grid_never_contradicts_a_coarser_one(terms: list[DirectedTerm]) -> None:
    found = []
    for tolerance in (3e-2, 1e-3, 1e-4):
        grid = plan_grid(terms, 1e-6, tolerance)
        assert grid is not None
        law = compose_on(grid, terms)
        upper = law.epsilon_upper(1e-6)
        found.append((law.epsilon_lower(1e-6, upper), upper))
    assert max(lower for lower, _ in found) <= min(upper for _, upper in found)
    widths = [upper - lower for lower, upper in found]
    assert widths[2] < widths[1] < widths[0]


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[1], PAIRS[5], PAIRS[6]])
def test_two_stages_agree_with_one(pair: DirectedPair) -> None:
    from dataclasses import replace

    terms = [DirectedTerm(pair, 2000)]
    grid = plan_grid(terms, 1e-6, 1e-3)
    assert grid is not None
    assert grid.fine is not None
    spacing = grid.fine
    size = 2 ** math.ceil(math.log2(grid.size * grid.spacing / spacing))
    first = math.floor(grid.first * grid.spacing / spacing)
    single = replace(grid, fine=None, spacing=spacing, size=size, first=first)
    staged, plain = compose_on(grid, terms), compose_on(single, terms)
    # 44 × 45 + 20 uses: 44 of each bundle on the fine grid, 45 bundles and the rest on the coarse.
    variance = (45 + 20) * grid.spacing**2 / 4
    assert staged.budget.spread**2 >= variance + 44 * 45 * spacing**2 / 4 * 0.99 - 1e-18
    for epsilon in np.linspace(0.8, 1.2, 5) * grid.anchor:
        assert plain.delta_lower(epsilon) <= staged.delta_upper(epsilon)
        assert staged.delta_lower(epsilon) <= plain.delta_upper(epsilon)


HARD = [
    (Gaussian(0.03), 1e-3, 10**5),
    (Gaussian(0.02), 1e-5, 300),
    (Laplace(0.002), 1e-4, 1000),
    (Gaussian(0.1), 1e-5, 10**6),
    (DiscreteLaplace(0.02), 1e-5, 1000),
    (DiscreteLaplace(0.01), 1e-5, 1000),
]


@pytest.mark.parametrize(("mechanism", "rate", "count"), HARD)
def test_rare_and_vast_losses_have_an_interval(
    mechanism: Mechanism, rate: float, count: int
) -> None:
    steps = repeated(mechanism, count, rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower, upper = ends(pld_epsilon(steps, delta=1e-6))
    assert lower <= upper <= lower * 1.03
    # Nobody who is never sampled loses anything, and whoever is may lose all.
    seen = -math.expm1(count * math.log1p(-rate))
    assert 0.98 * seen <= PLDAccountant().compose([steps]).delta(5.0).upper <= seen * (1 + 1e-9)


def two_losses(loss: float, rate: float, count: int, at: float) -> mpmath.mpf:
    """δ of sampled noise with losses ±ε alone: a binomial sum, the worse of both directions."""
    with mpmath.workdps(60):
        e, q = mpmath.mpf(loss), mpmath.mpf(rate)
        likely = 1 / (1 + mpmath.exp(-e))
        high, low = (mpmath.log(1 - q + q * mpmath.exp(base)) for base in (e, -e))
        mixed = q * likely + (1 - q) * (1 - likely)
        found = []
        for p, up, down in ((mixed, high, low), (1 - likely, -high, -low)):
            terms = (
                mpmath.binomial(count, k)
                * p**k
                * (1 - p) ** (count - k)
                * (1 - mpmath.exp(at - k * up - (count - k) * down))
                for k in range(count + 1)
                if k * up + (count - k) * down > at
            )
            found.append(mpmath.fsum(terms))
        return max(found)


@pytest.mark.parametrize(
    ("loss", "rate", "count", "at"),
    [
        (50.0, 1e-5, 300, 20.0),
        (100.0, 1e-5, 300, 100.0),
        (5.0, 2e-4, 300, 1.3),
        (1.0, 0.1, 40, 2.0),
    ],
)
def test_intervals_of_two_losses_hold_the_binomial_sum(
    loss: float, rate: float, count: int, at: float
) -> None:
    exact = two_losses(loss, rate, count, at)
    composed = PLDAccountant().compose([repeated(PureBlackBox(loss), count, rate=rate)])
    lower, upper = ends(composed.delta(at))
    assert lower <= exact <= upper
    least, most = ends(composed.epsilon(float(exact)))
    assert least * (1 - 1e-9) <= at <= most * (1 + 1e-9)


def test_on_the_edge_of_never_being_sampled_nothing_is_spent() -> None:
    once = PLDAccountant().compose([repeated(Gaussian(0.02), rate=0.1)])
    assert once.epsilon(0.1).upper == 0.0
    assert ends(once.delta(1.0)) == (pytest.approx(0.1), 0.1)


def test_a_loss_next_to_the_largest_has_an_interval() -> None:
    once = PLDAccountant().compose([use(ExponentialMechanism(1.0))])
    assert 1.0 <= once.epsilon(2.8843861849671376e-274).upper <= 1.0 + 1e-12


def test_masses_that_are_left_out_prove_no_infinite_loss() -> None:
    found = compose(plan(use(DiscreteGaussian(5.0)))).epsilon(1e-305)
    assert found.upper < 20
    assert found.lower is None or found.lower <= found.upper


def test_many_uses_of_a_law_without_a_loss_but_0_and_infinity() -> None:
    """Each tells everything with probability 1e-9 and nothing else; Gaussian noise is beside it."""
    told = repeated(ApproximateBlackBox(0.0, 1e-9), 1000)
    both = pld_epsilon(told, repeated(Gaussian(30.0), 1000), delta=1e-5)
    alone = pld_epsilon(repeated(Gaussian(30.0), 1000), delta=1e-5 - 1e-6)
    assert both.upper == pytest.approx(alone.upper, rel=2e-3)


# Both ends of a law against sums over the very masses that it was made of


def composed(pair, count: int, delta: float) -> ComposedLaw:
    terms = [DirectedTerm(PlainPair(pair), count)]
    grid = plan_grid(terms, delta, 1e-3)
    assert grid is not None
    return compose_on(grid, terms)


def exact_curve(pair, count: int, epsilons: np.ndarray) -> np.ndarray:
    """By convolution of the atoms on their lattice."""
    step = np.diff(pair.losses).min()
    places = np.rint((pair.losses - pair.losses[0]) / step).astype(int)
    single = np.zeros(places[-1] + 1)
    single[places] = pair.p
    masses = np.ones(1)
    for _ in range(count):
        masses = np.convolve(masses, single)
    losses = count * pair.losses[0] + step * np.arange(len(masses))
    gains = np.maximum(-np.expm1(epsilons[:, None] - losses), 0)
    return gains @ masses


@pytest.mark.parametrize(
    ("pair", "count"),
    [(RandomizedResponse(0.6).pair(1), 40), (DiscreteLaplace(3.0).pair(2), 40)],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_ends_enclose_the_convolution(pair, count: int, delta: float) -> None:
    law = composed(pair, count, delta)
    upper = law.epsilon_upper(delta)
    lower = law.epsilon_lower(delta, upper)
    exact = exact_curve(pair, count, np.array([lower, upper]))
    assert exact[0] >= delta >= exact[1] * (1 - 1e-9)
    assert upper - lower < 5e-3 * upper
    for epsilon in np.linspace(0.5, 1.5, 9) * upper:
        (truth,) = exact_curve(pair, count, np.array([epsilon]))
        assert law.delta_lower(epsilon) <= truth * (1 + 1e-9)
        assert truth <= law.delta_upper(epsilon) * (1 + 1e-9)


def test_beyond_what_a_law_shows_its_ends_are_trivial() -> None:
    law = composed(RandomizedResponse(0.6).pair(1), 10, 1e-6)
    assert law.epsilon_upper(0.0) == math.inf
    assert law.delta_upper(-1e9) == 1.0
    assert law.delta_lower(1e9) == 0.0


@pytest.mark.parametrize("theta", [0.0, 2.0])
def test_discounted_sums_are_those_of_their_definition(theta: float) -> None:
    frame = Frame(-40, 900, 0.7, theta, 100.0)
    masses = np.random.default_rng(0).random(len(frame.points))
    steps = np.arange(len(masses))
    direct = [
        (masses[k:] * np.exp(-0.7 * (steps[k:] - k))).sum() for k in range(0, len(masses), 37)
    ]
    np.testing.assert_allclose(frame.discounted_sums(masses)[::37], direct, rtol=1e-12)
    np.testing.assert_allclose(frame.weights, np.exp(-theta * (frame.points - 100.0)))


# Cumulants, which choose grids


def test_many_distinct_mechanisms_are_sampled_for_the_grid_alone() -> None:
    """More than the cumulants look at; the interval stays as narrow as for a few."""
    rng = np.random.default_rng(0)
    sigmas, rates = rng.uniform(1, 3, 160), rng.uniform(0.005, 0.02, 160)
    pairs = zip(sigmas.tolist(), rates.tolist(), strict=True)
    lower, upper = ends(pld_epsilon(*(repeated(Gaussian(s), 4, rate=r) for s, r in pairs)))
    # dp-accounting 0.6.0, PLDAccountant().compose(…, 4).get_epsilon(1e-5), the same draws, 136 s.
    theirs = 1.0810466187038912
    assert lower <= theirs
    assert upper <= theirs * 1.001
    assert upper - lower <= 2e-3 * upper


@pytest.mark.parametrize("pair", [GaussianPair(0.1), GaussianPair(0.6)])
def test_cumulants_of_normal_losses_are_quadratic(pair: GaussianPair) -> None:
    """K(θ) = n (θ + θ²) μ²/2, up to the coarse grid."""
    found = Cumulants.of([DirectedTerm(PlainPair(pair), 10)], 1e-12)
    for theta in (0.5, 1.0, 3.0):
        value, mean, variance = found.tilted(theta)
        scale = 10 * pair.mu**2
        assert value == pytest.approx(scale * (theta + theta**2) / 2, rel=1e-2)
        assert mean == pytest.approx(scale * (0.5 + theta), rel=1e-2)
        assert variance == pytest.approx(scale, rel=5e-2)
        assert found.value(theta) == value


def test_the_best_tilt_proves_what_a_chernoff_bound_does() -> None:
    found = Cumulants.of([DirectedTerm(PlainPair(GaussianPair(0.1)), 100)], 1e-12)
    theta, epsilon = found.tilt_for_delta(math.log(1e-6))
    exact = GaussianComposition(1.0).epsilon(1e-6).upper
    assert exact <= epsilon * (1 + 1e-3)
    assert epsilon <= exact * 1.12
    again, log_delta = found.tilt_for_epsilon(epsilon)
    assert log_delta == pytest.approx(math.log(1e-6), rel=1e-3)
    assert again == pytest.approx(theta, rel=0.1)


def test_a_window_holds_the_tilted_law() -> None:
    """Under the tilt θ the loss is N((1/2 + θ)μ², μ²), here with μ = 1."""
    found = Cumulants.of([DirectedTerm(PlainPair(GaussianPair(0.1)), 100)], 1e-12)
    window = found.window_at(3.0)
    assert norm(3.5, 1.0).sf(window.top) < 1e-8
    assert norm(3.5, 1.0).cdf(window.bottom) < 1e-8
    assert window.top - window.bottom < 16


# One round after the other


def test_rounds_agree_with_their_compositions() -> None:
    schedule = list(IncrementalPLD([repeated(Gaussian(1.0), rate=0.02)], horizon=120, delta=1e-5))
    assert len(schedule) == 120
    uppers = [one.upper for one in schedule]
    assert all(later > sooner * (1 - 1e-9) for sooner, later in itertools.pairwise(uppers))
    for count in (1, 2, 11, 60, 120):
        whole = PLDAccountant().compose([repeated(Gaussian(1.0), count, rate=0.02)]).epsilon(1e-5)
        one = schedule[count - 1]
        assert max(one.lower or 0, whole.lower or 0) <= min(one.upper, whole.upper)
        assert one.upper == pytest.approx(whole.upper, rel=2e-3)


def test_rounds_end_at_the_horizon() -> None:
    rounds = IncrementalPLD([repeated(Gaussian(1.0), rate=0.5)], horizon=1, delta=1e-3)
    rounds.advance()
    with pytest.raises(InputError, match="horizon"):
        rounds.advance()
    with pytest.raises(InputError, match="delta"):
        IncrementalPLD([repeated(Gaussian(1.0), rate=0.5)], horizon=1, delta=0.0)


def test_rounds_without_hope() -> None:
    rounds = IncrementalPLD([repeated(Gaussian(1e-20), rate=0.5)], horizon=2, delta=1e-5)
    assert rounds.advance().upper == math.inf


def test_rounds_that_share_an_end_are_bounded_by_it() -> None:
    """Of plain Gaussian noise, of which k rounds are one of √k/σ."""
    schedule = list(IncrementalPLD([repeated(Gaussian(60.0))], horizon=1600, delta=1e-5))
    for count in (511, 512, 513, 1024, 1025, 1026, 1500, 1537, 1538, 1600):
        one = schedule[count - 1]
        assert exact_gaussian_delta(math.sqrt(count) / 60, one.upper) <= 1e-5
        assert one.lower is not None
        assert exact_gaussian_delta(math.sqrt(count) / 60, one.lower) >= 1e-5
        assert one.upper - one.lower < 0.01 * one.upper
