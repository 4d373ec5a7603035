"""Discretisation, transforms, mixtures and rounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.accounting.amplification.directed import (
    AddedPair,
    DirectedPair,
    PlainPair,
    RemovedPair,
)
from dpaudit.accounting.pld.accountant import PLDAccountant, compose_terms
from dpaudit.accounting.pld.cumulants import Term
from dpaudit.accounting.pld.discretise import discretise, drift
from dpaudit.accounting.pld.engine import compose_on, plan_grid
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.accounting.pld.mixture import MixtureGaussianPair
from dpaudit.accounting.pld.spectrum import Composer, Tilt, tilt_transform
from dpaudit.errors import InputError
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)
from dpaudit.plan import AddRemove, Invocation, PoissonSampling, PrivacyUnit, TrustModel

PAIRS: list[DirectedPair] = [
    PlainPair(GaussianPair(0.8)),
    PlainPair(LaplacePair(Fraction(1, 3))),
    PlainPair(approximate_pair(0.7, 1e-3)),
    PlainPair(DiscreteLaplace(3.0).pair(2)),
    PlainPair(DiscreteGaussian(2.0).pair(1)),
    RemovedPair(GaussianPair(1.0), 0.05),
    AddedPair(GaussianPair(1.0), 0.05),
    RemovedPair(approximate_pair(0.7, 1e-3), 0.2),
    MixtureGaussianPair((0.0, 1.0, 3.0), (0.7, 0.2, 0.1), 2.0),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("spacing", [0.003, 0.07])
def test_the_grid_dominates_and_connects_the_dots(pair: DirectedPair, spacing: float) -> None:
    loss = discretise(pair, spacing, 1e-12)
    points = loss.points(spacing)
    assert loss.masses.min() >= 0
    assert loss.masses.sum() + loss.infinite == pytest.approx(1, abs=1e-10)
    epsilons = np.linspace(-1, 1.5, 101)
    weights = np.maximum(-np.expm1(np.minimum(epsilons[:, None] - points, 0)), 0)
    curve = weights @ loss.masses + loss.infinite
    exact = pair.delta(epsilons)
    assert (curve >= exact - 1e-13).all()
    on_grid = spacing * np.arange(-5, 6)
    weights = np.maximum(-np.expm1(np.minimum(on_grid[:, None] - points, 0)), 0)
    np.testing.assert_allclose(
        weights @ loss.masses + loss.infinite, pair.delta(on_grid), atol=1e-9
    )


@pytest.mark.parametrize("spacing", [1e-6, 0.005, 0.02, 1.0, 30.0])
def test_drift_is_the_largest_mean_step(spacing: float) -> None:
    inside = np.linspace(0, spacing, 100_001)
    steps = spacing * np.expm1(-inside) / np.expm1(-spacing) - inside
    assert steps.max() <= drift(spacing) <= steps.max() * 1.03 + 1e-15


@pytest.mark.parametrize("theta", [0.0, 3.0])
@pytest.mark.parametrize("count", [1, 2, 7, 5000])
def test_transforms_compose_within_their_error(theta: float, count: int) -> None:
    spacing, size = 0.05, 4096
    loss = discretise(PlainPair(LaplacePair(Fraction(1, 2**4))), spacing / 40, 1e-12)
    spectrum = tilt_transform(loss, spacing / 40, Tilt(theta, 1.0, 1.0), size)
    composer = Composer(size)
    composer.multiply(spectrum, count)
    law = composer.law(-size // 2)
    # Direct powers of the folded law by repeated squaring with exact circular convolution.
    base = np.zeros(size)
    for k, weight in enumerate(spectrum.weights):
        base[(spectrum.offset - spectrum.centre + k) % size] += weight
    direct = np.zeros(size)
    direct[0] = 1.0
    remaining = count
    while remaining:
        if remaining & 1:
            direct = np.maximum(np.fft.irfft(np.fft.rfft(direct) * np.fft.rfft(base), size), 0)
        base = np.maximum(np.fft.irfft(np.fft.rfft(base) ** 2, size), 0)
        remaining >>= 1
    np.testing.assert_allclose(np.roll(direct, size // 2), law.masses, atol=1e-9)
    assert law.masses.sum() == pytest.approx(1, abs=1e-9)
    assert 0 < law.error <= law.total_error < 1e-6


@pytest.mark.parametrize(
    "terms",
    [
        [Term(PAIRS[0], 30)],
        [Term(PAIRS[1], 200), Term(PAIRS[5], 40)],
        [Term(PAIRS[6], 1000)],
        [Term(PAIRS[8], 50), Term(PAIRS[3], 3)],
    ],
)
def test_a_finer_grid_never_contradicts_a_coarser_one(terms: list[Term]) -> None:
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

    terms = [Term(pair, 2000)]
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


# -- mixtures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("add", [False, True])
def test_a_mixture_of_two_is_the_sampled_gaussian(add: bool) -> None:
    rate, sigma = 0.1, 1.5
    mixture = MixtureGaussianPair((0.0, 1.0), (1 - rate, rate), sigma, add)
    base = GaussianPair(1 / sigma)
    sampled = AddedPair(base, rate) if add else RemovedPair(base, rate)
    losses = np.concatenate([np.linspace(-0.3, 3, 50), [-math.inf, math.inf]])
    for name in ("above", "below"):
        np.testing.assert_allclose(
            getattr(mixture, name)(losses), getattr(sampled, name)(losses), rtol=1e-8, atol=1e-14
        )
    assert mixture.max_loss == pytest.approx(sampled.max_loss)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("values", "shares"),
    [((0.5, 2.0), (0.4, 0.6)), ((0.0, 1.0, 3.0), (0.5, 0.3, 0.2)), ((1.5,), (1.0,))],
)
def test_mixtures_match_quadrature(
    values: tuple[float, ...], shares: tuple[float, ...], add: bool
) -> None:
    pair = MixtureGaussianPair(values, shares, 1.2, add)
    x = np.linspace(-15, 20, 400_001)
    mixed = sum(share * norm.pdf(x, c, 1.2) for c, share in zip(values, shares, strict=True))
    plain = norm.pdf(x, 0, 1.2)
    p, q = (plain, mixed) if add else (mixed, plain)
    for epsilon in (-0.6, -0.1, 0.0, 0.4, 2.0):
        exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)
        assert float(pair.delta(epsilon)) == pytest.approx(exact, abs=1e-7)


def test_mixtures_of_nothing_cost_nothing() -> None:
    pair = MixtureGaussianPair((0.0,), (1.0,), 1.0)
    assert pair.max_loss == 0
    assert float(pair.delta(0.0)) == 0
    tiny = MixtureGaussianPair((0.0, 1e-300), (0.5, 0.5), 1.0)
    assert float(tiny.delta(0.1)) == 0


def test_mixtures_compose_like_sampled_gaussians() -> None:
    pairs = [MixtureGaussianPair((0.0, 1.0), (0.95, 0.05), 1.0, add) for add in (False, True)]
    mixed = compose_terms([Term(pairs[0], 100)], [Term(pairs[1], 100)]).epsilon(1e-5)
    sampled = PLDAccountant().compose([_rounds(0.05, 100)]).epsilon(1e-5)
    assert mixed.upper == pytest.approx(sampled.upper, rel=1e-3)
    assert mixed.lower == pytest.approx(sampled.lower, rel=2e-3)


@pytest.mark.parametrize(
    ("values", "shares"),
    [((), ()), ((1.0,), (0.5, 0.5)), ((1.0, 2.0), (0.5, 0.4)), ((-1.0,), (1.0,))],
)
def test_bad_mixtures_are_refused(values: tuple[float, ...], shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        MixtureGaussianPair(values, shares, 1.0)


# -- rounds -------------------------------------------------------------------------------------


def _rounds(rate: float, count: int = 1, sigma: float = 1.0) -> Invocation:
    return Invocation(
        Gaussian(sigma),
        1.0,
        PrivacyUnit("row"),
        AddRemove(),
        TrustModel.CENTRAL,
        count=count,
        sampling=PoissonSampling(rate),
    )


def test_rounds_agree_with_their_compositions() -> None:
    schedule = list(IncrementalPLD([_rounds(0.02)], horizon=120, delta=1e-5))
    assert len(schedule) == 120
    uppers = [one.upper for one in schedule]
    assert all(later > sooner * (1 - 1e-9) for sooner, later in itertools.pairwise(uppers))
    for count in (1, 2, 11, 60, 120):
        whole = PLDAccountant().compose([_rounds(0.02, count)]).epsilon(1e-5)
        one = schedule[count - 1]
        assert max(one.lower or 0, whole.lower or 0) <= min(one.upper, whole.upper)
        assert one.upper == pytest.approx(whole.upper, rel=2e-3)


def test_rounds_end_at_the_horizon() -> None:
    rounds = IncrementalPLD([_rounds(0.5)], horizon=1, delta=1e-3)
    rounds.advance()
    with pytest.raises(InputError, match="horizon"):
        rounds.advance()
    with pytest.raises(InputError, match="delta"):
        IncrementalPLD([_rounds(0.5)], horizon=1, delta=0.0)


def test_rounds_without_hope() -> None:
    rounds = IncrementalPLD([_rounds(0.5, sigma=1e-20)], horizon=2, delta=1e-5)
    assert rounds.advance().upper == math.inf
