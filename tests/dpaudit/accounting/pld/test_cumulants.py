"""Cumulants, which choose grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import repeated
from accounting_truths import ends
from accounting_truths import pld_epsilon as epsilon
from scipy.stats import norm

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.accounting.pld.cumulants import Cumulants
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import Gaussian, GaussianPair


def test_many_distinct_mechanisms_are_sampled_for_the_grid_alone() -> None:
    """More than the cumulants look at; the interval stays as narrow as for a few."""
    rng = np.random.default_rng(0)
    sigmas, rates = rng.uniform(1, 3, 160), rng.uniform(0.005, 0.02, 160)
    pairs = zip(sigmas.tolist(), rates.tolist(), strict=True)
    lower, upper = ends(epsilon(*(repeated(Gaussian(s), 4, rate=r) for s, r in pairs)))
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
