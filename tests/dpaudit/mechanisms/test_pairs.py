"""Dominating pairs: laws of loss, moments and curves, against closed forms and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mechanism_conformance import BarePair, grid_delta
from scipy.integrate import quad
from truncated_quadrature import exact_delta

from dpaudit import AddRemove, DiscreteGaussian, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    DiscreteLaplace,
    FinitePair,
    GaussianPair,
    Laplace,
    LaplacePair,
    approximate_pair,
)
from dpaudit.mechanisms.pairs import (
    BoundedRangePair,
    ConcentratedPair,
    TruncatedLaplacePair,
    costless_pair,
    finite,
    vast_pair,
)
from dpaudit.mechanisms.pairs.gaussian import WideDiscreteNormalPair, normal_curve

# What a pair of two tails inherits, against the closed forms of one that has its own


@pytest.mark.parametrize("mu", [0.01, 1.0, 9.0])
def test_the_curve_follows_from_the_tails(mu):
    known = GaussianPair(mu)
    epsilons = np.linspace(-2, mu * mu / 2 + 3 * mu, 50)
    np.testing.assert_allclose(BarePair(known).delta(epsilons), known.delta(epsilons), atol=1e-13)


def test_no_epsilon_overflows_the_curve():
    pair = BarePair(GaussianPair(60.0))
    for epsilon in (650.0, 699.0, 701.0, 1800.0, 1e6):
        exact = float(GaussianPair(60.0).delta(epsilon))
        assert exact * (1 - 1e-9) - 1e-15 <= float(pair.delta(epsilon)) <= 1
    assert float(pair.delta(1e6)) == 0


@pytest.mark.parametrize("mu", [0.01, 1.0, 9.0])
@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-12])
def test_quantiles_are_found_from_outside(mu, tail):
    known, pair = GaussianPair(mu), BarePair(GaussianPair(mu))
    for found, exact, sign in (
        (pair.upper_quantile(tail), known.upper_quantile(tail), 1),
        (pair.lower_quantile(tail), known.lower_quantile(tail), -1),
    ):
        beyond = sign * (found - exact)
        assert -1e-12 <= beyond <= 1e-3 * (abs(exact) + abs(found)) + 1e-6


def test_what_follows_from_nothing_is_unknown():
    pair = BarePair(GaussianPair(1.0))
    assert pair.gaussian_mu is pair.span is None
    assert pair.zcdp_rho == math.inf
    assert pair.has_law


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.268, 1.0), (1.0, 0.0), (1.0, 6.1), (0.01, 0.2), (8.0, 3.0), (5.0, 80.0)]
)
def test_delta_equals_high_precision(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert float(GaussianPair(mu).delta(epsilon)) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 12.0])
@pytest.mark.parametrize("place", [-6.0, -1.0, 0.0, 2.5, 30.0])
def test_tails_keep_their_relative_accuracy(mu, place):
    loss = mu * mu / 2 + place * mu  # `place` deviations from the mean of the loss
    pair = GaussianPair(mu)
    with mpmath.workdps(50):
        z = mpmath.mpf(loss) / mu
        p, q = mpmath.ncdf(mpmath.mpf(mu) / 2 - z), mpmath.ncdf(-mpmath.mpf(mu) / 2 - z)
        assert [float(t) for t in pair.above(loss)] == pytest.approx(
            [float(p), float(q)], rel=1e-10, abs=1e-300
        )
        assert [float(t) for t in pair.below(loss)] == pytest.approx(
            [float(1 - p), float(1 - q)], rel=1e-10
        )


def test_divergences_and_concentration_are_the_closed_forms():
    pair = GaussianPair(0.6)
    assert pair.renyi([1.5, 4.0]) == pytest.approx([0.27, 0.72])
    assert pair.zcdp_rho == pytest.approx(0.18)
    assert pair.zcdp_rho >= 0.18
    assert pair.gaussian_mu == 0.6
    assert pair.pure_epsilon == math.inf
    assert pair.upper_quantile(1e-5) == pytest.approx(0.18 + 0.6 * 4.264891)
    assert pair.lower_quantile(1e-5) == pytest.approx(0.18 - 0.6 * 4.264891)


def test_ends_of_the_family():
    nothing, everything = GaussianPair(0.0), GaussianPair(math.inf)
    losses = np.array([-1.0, 0.0, 1.0])
    assert nothing.above(losses)[0].tolist() == [1.0, 0.0, 0.0]
    assert nothing.below(losses)[1].tolist() == [0.0, 1.0, 1.0]
    assert nothing.pure_epsilon == nothing.zcdp_rho == 0
    assert [tail.tolist() for tail in everything.above(losses)] == [[1.0] * 3, [0.0] * 3]
    assert [tail.tolist() for tail in everything.below(losses)] == [[0.0] * 3, [1.0] * 3]
    for wrong in (-1.0, math.nan, "1"):
        with pytest.raises(InputError, match="mu is"):
            GaussianPair(wrong)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    log_mu=st.floats(-290, 12),
    place=st.one_of(st.floats(-12, 39.5), st.floats(-1.5, 1.5)),
)
@example(log_mu=-6.0, place=3.4)
@example(log_mu=-280.0, place=0.0)
def test_both_ends_hold_the_truth_wherever_floats_reach(log_mu, place):
    mu = 10.0**log_mu
    epsilon = max(mu * (mu / 2 + place), 0.0)
    lower, upper = GaussianPair(mu).delta_ends(epsilon)
    digits = 60 + int(abs(log_mu)) * 3
    with mpmath.workdps(digits):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert lower <= exact <= upper
        if 1e-290 < exact < 0.5:
            assert upper - lower <= 3e-12 * exact


@pytest.mark.parametrize(("mu", "epsilon"), [(2.0**500, 2.0**999), (1e150, 5e299), (1e-5, 1e308)])
def test_arguments_that_cancel_or_overflow_leave_a_probability(mu, epsilon):
    value, error = normal_curve(mu, epsilon)
    assert 0 <= value <= 1
    assert error < 1e-12
    if mu == 2.0**500:  # a = 0, and b beyond all tails
        assert abs(value - 0.5) <= error


def test_two_coordinates_cost_no_more_than_one_with_the_whole_shift():
    """Brute force of the vector case on a grid: the claim of LaplacePair."""
    step = 0.02
    y = np.arange(-14, 15, step)

    def log_density(shift):
        return -np.abs(y - shift) - math.log(2)

    for first in (0.2, 0.5):
        log_p = log_density(first)[:, None] + log_density(1 - first)[None, :]
        log_q = log_density(0)[:, None] + log_density(0)[None, :]
        for epsilon in (0.0, 0.4, 0.8):
            vector = grid_delta(log_p, log_q, epsilon, step * step)
            assert vector <= float(Laplace(1.0).pair(1.0).delta(epsilon)) + 1e-3


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("order", [1.001, 2.0, 17.5])
def test_divergences_equal_the_integral(epsilon, order):
    """∫ p^α q^(1−α) over the three pieces of the line."""
    with mpmath.workdps(40):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        between = mpmath.exp(-a * e) * mpmath.expm1((2 * a - 1) * e) / (2 * a - 1)
        moment = (mpmath.exp((a - 1) * e) + mpmath.exp(-a * e) + between) / 2
        exact = mpmath.log(moment) / (a - 1)
    found = float(LaplacePair(Fraction(epsilon)).renyi(order))
    assert found == pytest.approx(float(exact), rel=1e-7)


def test_the_curve_is_that_of_the_tails_on_either_side():
    pair = LaplacePair(Fraction(3, 2))
    epsilons = np.linspace(-3, 3, 61)
    p, q = pair.above(epsilons)
    np.testing.assert_allclose(pair.delta(epsilons), p - np.exp(epsilons) * q, atol=1e-15)
    below = pair.below(epsilons)
    np.testing.assert_allclose(p + below[0], 1, atol=1e-15)
    np.testing.assert_allclose(q + below[1], 1, atol=1e-15)
    assert pair.span == pair.upper_quantile(1e-9) == 1.5
    assert pair.lower_quantile(0.4) == pytest.approx(1.5 + 2 * math.log(0.8))
    assert pair.lower_quantile(1e-9) == -1.5


def test_the_ratio_is_exact_and_may_exceed_all_floats():
    assert LaplacePair(0.1).pure_epsilon == Fraction(0.1)
    vast = LaplacePair(Fraction(10) ** 400)
    assert vast.epsilon == math.inf
    assert vast.pure_epsilon == Fraction(10) ** 400
    assert LaplacePair(Fraction(0)).span is None
    for wrong in (Fraction(-1, 2), -1.0, math.inf, "1"):
        with pytest.raises(InputError, match="ratio is"):
            LaplacePair(wrong)


@pytest.mark.parametrize("u", [0.03, 0.7, 3.0, 12.0])
@pytest.mark.parametrize("share", [1e-3, 0.4, 1.0, 1.3, 1.99])
def test_every_shift_has_its_exact_curve_and_tails(u, share):
    e, top = u * share, min(u * share, u * (2 - share))
    pair, longer = (TruncatedLaplacePair(Fraction(s), Fraction(u)) for s in (e, e * 1.004))
    for x in (-1.5 * e, -0.99 * top, 0.0, 0.3 * top, 0.99 * top, top, 2 * e):
        truth = exact_delta(x, e, u)
        assert float(pair.delta(x)) == pytest.approx(truth, rel=1e-10, abs=1e-13)
        p, q = pair.above(x)
        assert float(p - math.exp(x) * q) == pytest.approx(truth, abs=1e-12)
        assert float(longer.delta(x)) >= truth - 1e-13


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 1e-3), (0.0, 0.1)])
def test_approximate_pair_meets_its_own_claim(epsilon, delta):
    pair = approximate_pair(epsilon, delta)
    assert float(pair.delta(epsilon)) == pytest.approx(delta, abs=1e-15)
    assert pair.p.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.q.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.pure_epsilon == (epsilon if delta == 0 else math.inf)


def test_tails_at_an_atom_are_strict_above():
    pair = approximate_pair(1.0)
    above, below = pair.above(1.0)[0], pair.below(1.0)[0]
    assert above == 0
    assert below == 1
    assert np.isinf(approximate_pair(1.0, 0.1).renyi(2.0))


def test_masses_below_the_floats_keep_their_logarithms():
    near, far = DiscreteLaplace(1.0).pair(20), DiscreteLaplace(1e-3).pair(10)
    log_p, log_q = near.log_masses()
    assert np.allclose(log_p - log_q, near.losses)
    assert np.allclose(far.renyi([1.001, 2.0, 1e6]), 1e4, rtol=1e-12)
    assert far.delta(9_999.0) == pytest.approx(-math.expm1(-1), rel=1e-11)


@pytest.mark.parametrize("bound", [None, Fraction(10) ** 400])
def test_laws_that_are_disjoint_have_all_mass_at_infinity(bound):
    pair = vast_pair(bound)
    assert pair.delta([0.0, 1e300]).tolist() == [1.0, 1.0]
    assert pair.above(5.0) == (1.0, 0.0)
    assert pair.below(5.0) == (0.0, 1.0)
    assert pair.pure_epsilon == (math.inf if bound is None else bound)
    assert pair.zcdp_rho == math.inf


def test_equal_laws_cost_nothing():
    pair = costless_pair()
    assert (pair.pure_epsilon, pair.zcdp_rho, float(pair.delta(0.0))) == (0, 0.0, 0.0)
    assert pair.renyi([1.5, 100.0]).tolist() == [0.0, 0.0]
    assert pair.span is None


@given(
    halves=st.lists(st.tuples(st.floats(0.01, 3), st.floats(0.05, 1)), min_size=1, max_size=6),
    middle=st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_curves_and_divergences_are_those_of_the_outputs(halves, middle):
    """Of the two distributions over outputs, output by output."""
    losses = np.cumsum([step for step, _ in halves])
    upper = np.array([weight for _, weight in halves])
    total = (upper * (1 + np.exp(-losses))).sum() + middle
    p = np.concatenate([(upper * np.exp(-losses))[::-1], [middle], upper]) / total
    q = p[::-1].copy()
    pair = FinitePair(np.concatenate([-losses[::-1], [0.0], losses]), p, q)
    for epsilon in (-1.0, 0.0, 0.3, 2.0):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert float(pair.delta(epsilon)) == pytest.approx(exact, abs=1e-12)
        above = pair.losses > epsilon
        assert [float(t) for t in pair.above(epsilon)] == pytest.approx(
            [p[above].sum(), q[above].sum()], abs=1e-12
        )
    held = p > 0
    for order in (1.1, 2.0, 9.0):
        exact = math.log((p[held] ** order * q[held] ** (1 - order)).sum()) / (order - 1)
        assert float(pair.renyi(order)) == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert pair.span == pytest.approx(losses[0])


def test_large_tables_are_made_in_parts(monkeypatch):
    pair, orders = DiscreteLaplace(30.0).pair(500), np.linspace(1.5, 40, 77).reshape(7, 11)
    whole = pair.renyi(orders)
    monkeypatch.setattr(finite, "_LARGEST_TABLE", 2000)
    np.testing.assert_allclose(pair.renyi(orders), whole, rtol=1e-14)


GOOD = {"losses": [-1.0, 1.0], "p": [0.26894142, 0.73105858], "q": [0.73105858, 0.26894142]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"losses": [1.0, -1.0]}, "losses do not increase"),
        ({"losses": [-1.0, -1.0]}, "losses do not increase"),
        ({"losses": [-math.inf, math.inf]}, "losses do not increase"),
        ({"losses": [[-1.0, 1.0]]}, "p and q must have the same"),
        ({"q": [1.0]}, "p and q must have the same"),
        ({"losses": [], "p": [], "q": []}, "p and q must have the same"),
        ({"p_infinite": 0.1}, "add up to 1"),
        ({"p": [-0.1, 1.1]}, "masses of at least 0"),
        ({"p_infinite": -0.1, "p": [0.3, 0.8], "q": [0.8, 0.3]}, "masses of at least 0"),
        ({"losses": [-1.0, 1.5]}, "mirror"),
        ({"q": [0.6, 0.4]}, "mirror image of p"),
        ({"losses": [-2.0, 2.0]}, r"losses are not ln p/q"),
    ],
)
def test_what_is_no_pair_is_refused(fields, message):
    arrays = {
        name: value if name == "p_infinite" else np.array(value)
        for name, value in (GOOD | fields).items()
    }
    with pytest.raises(InputError, match=message):
        FinitePair(**arrays)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
def test_the_curve_is_the_worst_of_all_mechanisms_with_two_losses_so_far_apart(epsilon):
    shifts = np.linspace(1e-9, 1 - 1e-9, 100_001) * epsilon
    share = np.expm1(epsilon - shifts) / math.expm1(epsilon)  # Q-mass of the loss t
    for at in np.linspace(0.0, 0.95, 6) * epsilon:
        worst = (share * np.maximum(np.expm1(shifts - at) * math.exp(at), 0.0)).max()
        assert float(BoundedRangePair(epsilon).delta(at)) == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 900.0])
def test_tails_curve_and_divergences_are_those_of_one_law(epsilon):
    pair = BoundedRangePair(epsilon)
    for at in np.array([-0.9, -0.2, 0.0, 0.4, 0.99]) * epsilon:
        p, q = map(float, pair.above(at))
        low_p, low_q = map(float, pair.below(at))
        assert p + low_p == pytest.approx(1.0)
        assert q + low_q == pytest.approx(1.0)
        if at <= 700:
            assert float(pair.delta(at)) == pytest.approx(p - math.exp(at) * q, rel=1e-9, abs=1e-14)
    width = -2 * math.expm1(-epsilon)
    for order in (1.5, 3.0, 40.0):
        if order * epsilon > 300:
            continue
        moment = quad(
            lambda x, a=order: math.exp((a - 1) * x + (x - epsilon) / 2) / width, -epsilon, epsilon
        )
        assert float(pair.renyi(order)) == pytest.approx(math.log(moment[0]) / (order - 1))
    assert float(pair.below(pair.lower_quantile(1e-4))[0]) == pytest.approx(1e-4, abs=1e-12)


def test_its_ends():
    pair = BoundedRangePair(2.0)
    assert pair.pure_epsilon == 2
    assert pair.zcdp_rho == pytest.approx(0.5)
    assert pair.upper_quantile(1e-9) == 2.0
    assert [float(tail) for tail in pair.above(math.inf)] == [0.0, 0.0]
    assert [float(tail) for tail in pair.below(-math.inf)] == [0.0, 0.0]
    assert float(pair.delta(-3.0)) == pytest.approx(-math.expm1(-3.0))


def test_only_its_divergences_are_known():
    pair = ConcentratedPair(0.25)
    assert pair.renyi(np.array([1.5, 8.0])).tolist() == [0.375, 2.0]
    assert pair.zcdp_rho == 0.25
    assert pair.pure_epsilon == math.inf
    assert not pair.has_law
    for unknown in (pair.above, pair.below, pair.delta, pair.upper_quantile):
        with pytest.raises(UnsupportedError, match="does not give the law"):
            unknown(0.5)


def test_no_concentration_is_no_cost():
    assert ConcentratedPair(0.0).pure_epsilon == 0
    with pytest.raises(InputError, match="rho is -1"):
        ConcentratedPair(-1.0)


# Closed forms of wide discrete normal tails, against the sums that they stand for


def summed(sigma, start):
    """Tail mass from a whole number on, in extended precision and from the small terms up."""
    k = np.arange(start, start + 12 * int(sigma) + 1, dtype=np.longdouble)
    mass = np.exp(-((k / np.longdouble(sigma)) ** 2) / 2)
    return float(mass[::-1].sum() / (np.longdouble(sigma) * np.sqrt(2 * np.longdouble(np.pi))))


@pytest.mark.parametrize("sigma", [1e4, 31_415.9])
@pytest.mark.parametrize("shift", [1, 7, 25_000])
@pytest.mark.parametrize("deviations", [0.0, 0.4, 3.0, 12.0, 36.0])
def test_tails_are_the_sums_of_all_masses(sigma, shift, deviations):
    pair = WideDiscreteNormalPair(sigma, shift)
    first = math.ceil(deviations * sigma)
    loss = (2 * first - 1 - shift) * shift / (2 * sigma**2)  # between two outputs
    p, q = pair.above(loss)
    assert float(q) == pytest.approx(summed(sigma, first), rel=1e-11, abs=1e-300)
    assert float(p) == pytest.approx(summed(sigma, first - shift), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("loss", [-2.0, -1e-9, 0.0, 3e-7, 0.01])
def test_lower_tails_complete_the_upper_ones_and_mirror_them(loss):
    pair = WideDiscreteNormalPair(2e4, 3)
    above, below = pair.above(loss), pair.below(loss)
    for over, under in zip(above, below, strict=True):
        assert float(over + under) == pytest.approx(1.0, abs=1e-15)
    mirrored = pair.below(-loss - 1e-14)  # Q[L > l] = P[L < −l]
    assert float(mirrored[0]) == pytest.approx(float(above[1]), rel=1e-9)


def test_extremes_of_losses_have_all_or_no_mass():
    pair = WideDiscreteNormalPair(1e9, 1)
    p, q = pair.above([-math.inf, -1e300, 1e300, math.inf])
    assert p.tolist() == q.tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(("shift", "count"), [(1, 10**7), (700, 50), (30_000, 1)])
def test_the_interval_meets_that_of_the_table_just_below(shift, count):
    """σ moves by a part in 10⁶, and ε by about as much."""

    def proved(sigma):
        unit, relation, trust = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
        use = Invocation(DiscreteGaussian(sigma), shift, unit, relation, trust, count=count)
        return guarantee(Plan.of(use), 1e-6)

    table, wide = proved(9999.99), proved(10_000.0)
    assert wide.error_bound is not None
    assert wide.epsilon - wide.error_bound <= table.epsilon * (1 + 1e-9)
    assert wide.epsilon >= (table.epsilon - (table.error_bound or 0.0)) * (1 - 1e-5)
    assert wide.epsilon == pytest.approx(table.epsilon, rel=2e-3)
