"""Laws on a grid: rounding, budgets of errors, tails and spectra."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting_builders import repeated, use
from accounting_truths import PAIRS
from scipy.integrate import quad
from scipy.stats import norm

from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.bounds import NEAR, Tally, layers
from dpaudit.accounting.pld.grid import Composer, Tilt, discretise, drift, tilt_transform
from dpaudit.accounting.pld.terms import DirectedTerm, directed_terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    Gaussian,
    GaussianPair,
    LaplacePair,
    Opaque,
    approximate_pair,
)

# Losses on a grid


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


# The bound on what rounding gains at the kink, against the coupling that attains it nearly


def test_most_rounding_is_near():
    assert pytest.approx(1 - 2 * np.exp(-(2.5**2) / 2), rel=1e-15) == NEAR
    assert norm.cdf(2.5) - norm.cdf(-2.5) >= NEAR


@pytest.mark.parametrize("s", [0.01, 0.3, 2.0])
def test_layers_fall_from_the_kink_outward(s):
    reach, falls, rest = layers(s, s * s / 2, -20.0)
    assert (np.diff(reach) > 0).all()
    assert (falls >= 0).all()
    assert 0 <= rest < 1e-16
    assert falls.sum() + rest <= 1.0


@pytest.mark.parametrize("s", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("distance", [0.0, 0.5, 1.5, 3.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_layers_bound_the_gain_of_normal_rounding(s, distance, side):
    """D = N(s²/2, s²) has E[e^−D] = 1: its gain at u = ± distance s is at most Σ falls beyond."""
    m = s * s / 2
    reach, falls, rest = layers(s, m, -20.0)
    u = side * distance * s

    def kink(x):
        return max(-np.expm1(-x), 0.0)

    gained = quad(lambda d: kink(u + d) * norm.pdf(d, m, s), -u, 12 * s + abs(u), limit=200)[0]
    # Reaches are widened by 2.5 s + m, for probabilities on the grid instead of those of S.
    inside = reach - 2.5 * s - m >= abs(u)
    assert gained - kink(u) <= falls[inside].sum() + rest + 1e-12


# Transforms and their rounding errors


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


def test_each_direction_has_its_pairs_with_their_counts() -> None:
    sampled, plain = repeated(Gaussian(2.0), 3, rate=0.1), repeated(Gaussian(2.0), 4)
    remove, add = directed_terms([sampled, plain, sampled])
    base = GaussianPair(0.5)
    assert set(remove) == {
        DirectedTerm(RemovedPair(base, 0.1), 6),
        DirectedTerm(PlainPair(base), 4),
    }
    assert set(add) == {DirectedTerm(AddedPair(base, 0.1), 6), DirectedTerm(PlainPair(base), 4)}
    assert directed_terms([plain, sampled, sampled]) == (remove, add)


def test_what_has_no_pair_is_named() -> None:
    with pytest.raises(UnsupportedError, match="opaque at 'x'"):
        directed_terms([use(Opaque("vendor", 1.0), at="x")])


# Error terms add up over uses, each as its definition says

SPACING, SIZE = 0.02, 2048
TILT = Tilt(1.5, 0.7, 0.9)
LOSS = discretise(PlainPair(GaussianPair(0.4)), SPACING, 1e-9)
FAILING = discretise(PlainPair(approximate_pair(0.5, 1e-3)), SPACING, 1e-9)


def tally(*parts):
    found = Tally()
    for loss, count in parts:
        found.add(loss, tilt_transform(loss, SPACING, TILT, SIZE), count)
    return found.budget(TILT, -10.0, 12.0)


def test_rounding_to_the_grid_spreads_like_a_random_walk():
    budget = tally((LOSS, 9))
    assert budget.spread == pytest.approx(3 * SPACING / 2)
    assert budget.drift == pytest.approx(9 * drift(SPACING))
    assert budget.lift == pytest.approx(9 * LOSS.lift)
    assert budget.displaced == pytest.approx(9 * LOSS.displaced)


def test_a_count_is_a_loop_and_order_does_not_matter():
    once = tally((LOSS, 5), (FAILING, 2))
    loop = tally((FAILING, 1), *[(LOSS, 1)] * 5, (FAILING, 1))
    for name, value in vars(once).items():
        assert getattr(loop, name) == pytest.approx(value, rel=1e-9), name


def test_probabilities_of_infinite_loss_are_those_of_any_of_them():
    budget = tally((FAILING, 40))
    exact = -math.expm1(40 * math.log1p(-1e-3))
    assert budget.truly_infinite <= exact <= budget.infinite
    assert budget.infinite - budget.truly_infinite < 1e-9


def test_what_the_window_leaves_out_is_a_chernoff_bound():
    budget = tally((LOSS, 4))
    points = LOSS.points(SPACING)

    def log_mgf(theta):
        return 4 * math.log(float(LOSS.masses @ np.exp(theta * points)))

    assert budget.log_mgf == pytest.approx(log_mgf(1.5), rel=1e-9)
    above = math.exp(log_mgf(2.4) - log_mgf(1.5) - 0.9 * 12.0)
    below = math.exp(log_mgf(0.8) - log_mgf(1.5) - 0.7 * 10.0)
    assert budget.above == pytest.approx(above, rel=1e-6)
    assert budget.below == pytest.approx(below, rel=1e-6)
