"""Curves between proved points, against the exact curves of two mechanisms."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from dpaudit.accounting import AccountantName, CurvePoint, Guarantee
from dpaudit.reporting.curves import (
    best_odds,
    densified,
    probability,
    proved_points,
    thinned,
    trade_off,
)


def gaussian_delta(epsilon, mu):
    """δ(ε) of N(μ, 1) against N(0, 1) (Balle and Wang 2018, Theorem 8)."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def gaussian_points(mu, number=40):
    return [CurvePoint(float(e), float(gaussian_delta(e, mu))) for e in np.linspace(0, 4, number)]


@pytest.mark.parametrize("number", [2, 5, 40])
def test_densified_is_never_below_the_truth(number):
    epsilon, delta = densified(gaussian_points(1.0, number))
    exact = gaussian_delta(epsilon, 1.0)
    assert (delta >= exact * (1 - 1e-12)).all()
    assert delta[0] == pytest.approx(exact[0])
    assert delta[-1] == pytest.approx(exact[-1])
    assert len(epsilon) == 1 + (number - 1) * 7


def test_densified_far_apart_does_not_overflow():
    epsilon, delta = densified([CurvePoint(0, 0.5), CurvePoint(5000, 0.0)])
    assert np.isfinite(epsilon).all()
    assert ((delta >= 0) & (delta <= 0.5)).all()


def test_trade_off_of_pure_privacy():
    """f(α) = max(1 − e^ε α, e^−ε (1 − α)) (Wasserman and Zhou 2010)."""
    rates = np.array([0, 0.1, 1 / (1 + math.e), 0.5, 1])
    found = trade_off([CurvePoint(1.0, 0.0)], rates)
    assert found == pytest.approx([1, 1 - 0.1 * math.e, 1 / (1 + math.e), 0.5 / math.e, 0])


def test_trade_off_of_the_gaussian_approaches_its_own_from_below():
    """G_μ(α) = Φ(Φ⁻¹(1 − α) − μ) (Dong, Roth and Su 2022, equation 6)."""
    rates = np.linspace(0.001, 0.999, 200)
    exact = ndtr(ndtri(1 - rates) - 1.0)
    found = trade_off(gaussian_points(1.0, 400), rates)
    assert (found <= exact + 1e-12).all()
    assert found == pytest.approx(exact, abs=2e-3)


def test_nothing_proved_bounds_nothing():
    assert (trade_off([], np.linspace(0, 1, 5)) == 0).all()
    assert best_odds([]) == 1


def test_best_odds_is_half_of_one_plus_the_total_variation():
    points = gaussian_points(1.0)
    assert best_odds(points) == pytest.approx((1 + 2 * ndtr(0.5) - 1) / 2)


def test_proved_points_leave_out_the_infinite_and_the_double():
    curve = (CurvePoint(0.5, 0.1), CurvePoint(1.0, 0.0))
    finite = Guarantee(1.0, 0.0, AccountantName.PURE, None, curve=curve)
    assert proved_points(finite) == curve
    assert proved_points(Guarantee(math.inf, 0.0, AccountantName.RDP, None, curve=curve)) == curve


@settings(derandomize=True, max_examples=100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinned_keeps_the_ends_and_the_extremes(values):
    rounds, kept = thinned(values, most=50)
    assert len(kept) <= max(50, min(len(values), 50))
    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert (kept.min(), kept.max()) == (min(values), max(values))
    assert (np.diff(rounds) > 0).all()
    assert [values[int(r) - 1] for r in rounds] == kept.tolist()


@settings(derandomize=True, max_examples=200)
@given(st.floats(0, 50), st.floats(0, 1, exclude_max=True))
def test_probability_is_the_vertex_of_the_error_region(epsilon, delta):
    """The least sum of error rates of the (ε, δ) region, at its vertex, by mpmath."""
    with mpmath.workdps(40):
        grown = mpmath.exp(epsilon)
        vertex = (1 - mpmath.mpf(delta)) / (1 + grown)
        assert probability(epsilon, delta) == pytest.approx(float(1 - vertex), rel=1e-14)


def test_probability_without_overflow():
    assert probability(1e6, 0.5) == 1
