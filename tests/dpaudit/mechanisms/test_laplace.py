"""Laplace noise, on numbers and on integers, and cut off."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, grid_delta
from scipy import stats
from truncated_quadrature import exact_delta

from dpaudit import ReplaceOne
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.ledger.samplers.exact import laplace_scale
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    LaplacePair,
    TruncatedLaplace,
)


class TestLaplace(MechanismConformance):
    mechanism = Laplace(scale=1.25)
    unlike = Gaussian(sigma=1.25)
    bad_parameters = (
        {"scale": 0},
        {"scale": -1},
        {"scale": math.nan},
        {"scale": math.inf},
        {"scale": "1"},
        {"scale": True},
        {"clip": (1.0, 1.0)},
        {"clip": (2.0, 1.0)},
        {"clip": (0.0, math.inf)},
        {"clip": 3},
    )

    def mean(self):
        return 0.0

    def variance(self):
        return 2 * 1.25**2

    def exact_delta(self, epsilon):
        step = 1e-4
        y = np.arange(-40, 40, step)
        scale = self.mechanism.scale
        log_p, log_q = (-np.abs(y - x) / scale - math.log(2 * scale) for x in (1, 0))
        return grid_delta(log_p, log_q, epsilon, step)


class TestLaplaceVector(TestLaplace):
    """A vector is dominated by one coordinate with the whole L1 distance."""

    value = (0.0, 0.0)
    neighbour = (1.0, 0.0)


@settings(max_examples=60, derandomize=True)
@given(
    epsilon=st.floats(1e-3, 50, allow_nan=False),
    sensitivity=st.floats(1e-3, 1e6, allow_nan=False),
)
def test_calibration_never_exceeds_the_wish_and_wastes_one_float_at_most(epsilon, sensitivity):
    mechanism = Laplace.calibrated(epsilon=epsilon, sensitivity=sensitivity)
    assert mechanism.pair(sensitivity).pure_epsilon <= Fraction(epsilon)
    less = Laplace(math.nextafter(math.nextafter(mechanism.scale, 0), 0))
    assert less.pair(sensitivity).pure_epsilon > Fraction(epsilon)


def test_clip_is_part_of_the_mechanism():
    mechanism = Laplace(scale=1.0, clip=(-2, 2))
    rng = np.random.default_rng
    assert mechanism.release(1e9, rng(1)) == mechanism.release(2.0, rng(1))
    assert mechanism.implied_sensitivity(2.0) == 4
    assert mechanism.implied_sensitivity(1.0) == 2
    above = Laplace(scale=1.0, clip=(1, 4))  # where 0 becomes 1
    assert (above.implied_sensitivity(1.0), above.implied_sensitivity(2.0, 5)) == (3, 15)
    tenths = Laplace(scale=1.0, clip=(-0.1, 0.7)).implied_sensitivity(2.0)
    assert Fraction(0.7) - Fraction(-0.1) <= Fraction(tenths) <= Fraction(0.8) + Fraction(1, 2**52)
    assert Laplace(scale=1.0).implied_sensitivity(2.0) is None


@pytest.mark.parametrize("entries", [1, 3, 1000])
@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, 7.0])
def test_a_grid_costs_at_most_what_is_declared(entries, sensitivity):
    """The worst shift on a coarse stand-in of the grid, with the law of discrete Laplace itself."""
    mechanism, step = Laplace(2.0), 2.0**-12 if entries == 1 else 2.0**-24
    scale = laplace_scale(mechanism, sensitivity, entries, step)
    if entries == 1:
        shift = math.floor(sensitivity / step + 1)
        epsilons = np.linspace(-1, 4, 500)
        spent = DiscreteLaplace(scale).pair(shift).delta(epsilons)
        assert (spent <= mechanism.pair(sensitivity).delta(epsilons) + 1e-15).all()
    assert (sensitivity / step + entries) / scale <= sensitivity / mechanism.scale


def test_a_scale_that_no_float_holds_is_one_sentence():
    with pytest.raises(InputError, match="epsilon is 1e-300; it must be larger"):
        Laplace.calibrated(epsilon=1e-300, sensitivity=1e300)


class TestDiscreteLaplace(MechanismConformance):
    mechanism = DiscreteLaplace(scale=1.7)
    sensitivity = 2
    unlike = DiscreteLaplace(scale=1.1)
    neighbour = 2
    bad_parameters = ({"scale": 0}, {"scale": math.nan}, {"scale": 1.1e15})
    bad_values = (math.nan, math.inf, 0.5, "a", None, 2.0**60)

    def mean(self):
        return 0.0

    def variance(self):
        ratio = math.exp(-1 / 1.7)
        return 2 * ratio / (1 - ratio) ** 2

    def exact_delta(self, epsilon):
        k = np.arange(-200, 203)[:, None]
        return grid_delta(
            self.mechanism.log_density(k, [2]), self.mechanism.log_density(k, [0]), epsilon
        )

    def test_fractional_sensitivity_is_refused(self):
        with pytest.raises(InputError, match="whole number"):
            self.mechanism.pair(0.5)

    def test_mass_sums_to_one(self):
        k = np.arange(-300, 301)[:, None]
        assert np.exp(self.mechanism.log_density(k, [0])).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [0.4, 1.7, 25.0])
def test_mean_size_is_that_of_its_masses(scale):
    k = np.arange(-2000, 2001)
    masses = np.exp(DiscreteLaplace(scale).log_mass(k))
    assert DiscreteLaplace(scale).mean_size() == pytest.approx((np.abs(k) * masses).sum())


def test_a_scale_that_integers_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"scale is 1e\+22; discrete-laplace takes at most 1e15"):
        DiscreteLaplace(1e22)


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 0.3, 40.0, 9999.0, 1e4, 1e9, 1e15])
def test_noise_of_any_width_has_its_tails(kind, scale):
    """Wide noise, and noise that is wrong by far, is not counted up to its size."""
    rng = np.random.default_rng(3)
    mechanism = kind(min(scale, 1e9 if kind is DiscreteGaussian else 1e15))
    noise = mechanism.noise((4000,), rng)
    tails = mechanism.tails(noise, np.zeros(4000), rng).tails
    assert stats.kstest(tails, "uniform").pvalue > 1e-6
    far = mechanism.tails(np.array([-(2.0**63)]), np.zeros(1), rng)
    assert 0 <= far.tails[0] <= 1e-9
    assert not math.isnan(far.sizes[0])


@pytest.mark.parametrize("n", [-3, 0, 1, 5, 400, 40_000, 500_000])
@pytest.mark.parametrize("scale", [0.3, 7.0, 3e3, 2e4])
def test_tails_are_sums_of_masses(n, scale):
    for mechanism in (DiscreteLaplace(scale), DiscreteGaussian(scale)):
        k = np.arange(n, 40 * math.ceil(scale) + abs(n), dtype=np.float64)
        found = mechanism.at_least(np.array([n, n], dtype=np.float64))
        assert found == pytest.approx(np.exp(mechanism.log_mass(k)).sum(), rel=1e-6, abs=1e-11)


class TestTruncatedLaplace(MechanismConformance):
    mechanism = TruncatedLaplace(1.25, 4.0)
    unlike = Laplace(1.25)
    bad_parameters = (
        {"scale": 0},
        {"scale": math.inf},
        {"bound": -1.0},
        {"bound": 1e-10},
        {"bound": math.nan},
    )
    bad_values = (math.nan, math.inf, -math.inf, "a", None, [1.0, math.nan])

    def mean(self):
        return 0.0

    def variance(self):
        x = np.linspace(0, 4, 400_001)[:-1] + 5e-6
        weights = np.exp(-x / 1.25)
        return float((x**2 * weights).sum() / weights.sum())

    def exact_delta(self, epsilon):
        return exact_delta(epsilon, 0.8, 3.2)


class TestShiftsBeyondTheBound(TestTruncatedLaplace):
    """Between the bound and twice the bound, where no atom is left."""

    mechanism = TruncatedLaplace(1.25, 4.0)
    sensitivity = neighbour = 5.5

    def exact_delta(self, epsilon):
        return exact_delta(epsilon, 4.4, 3.2)


@pytest.mark.parametrize("u", [0.5, 2.0, 15.0])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_laplace_noise_dominates_what_is_left_without_infinite_loss(u, share):
    mechanism, e = TruncatedLaplace(1.0, u), u * share
    pair, failure = mechanism.pair_and_failure(e)
    assert isinstance(pair, LaplacePair)
    assert failure == pytest.approx(exact_delta(2 * e, e, u), rel=1e-9)
    for x in np.linspace(-e, e, 21):
        left = (exact_delta(x, e, u) - failure) / (1 - failure)
        assert left <= float(pair.delta(x)) + 1e-12


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.2])
def test_calibration_is_that_of_the_paper(epsilon, delta):
    mechanism = TruncatedLaplace.calibrated(epsilon=epsilon, delta=delta, sensitivity=3.0)
    bound = 3.0 / epsilon * mpmath.log(1 + mpmath.expm1(epsilon) / (2 * mpmath.mpf(delta)))
    assert mechanism.bound == pytest.approx(float(bound), rel=1e-10)
    proved = guarantee(plan(use(mechanism, 3.0)), delta)
    assert proved.epsilon <= epsilon
    less = TruncatedLaplace(mechanism.scale, mechanism.bound * (1 - 1e-6))
    assert float(less.pair(3.0).delta(epsilon)) > delta


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0.0}, {"delta": 0.5}, {"delta": 0}, {"sensitivity": 0}]
)
def test_bad_wishes_are_refused(bad):
    wish = {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0} | bad
    with pytest.raises(InputError, match=next(iter(bad))):
        TruncatedLaplace.calibrated(**wish)


def test_draws_have_the_law_and_stay_within_the_bound():
    mechanism = TruncatedLaplace(2.0, 3.0)
    drawn = mechanism.release_many(0.0, 20_000, np.random.default_rng(3))
    assert np.abs(drawn).max() <= 3.0
    beyond = (np.exp(-np.abs(drawn) / 2) - math.exp(-1.5)) / (1 - math.exp(-1.5))
    assert stats.kstest(beyond, "uniform").pvalue > 1e-6
    assert mechanism.noise_tails(drawn, np.random.default_rng(0)).tails == pytest.approx(beyond)
    assert stats.binomtest(int((drawn > 0).sum()), 20_000).pvalue > 1e-6


def test_no_accountant_calls_it_pure_and_all_agree():
    mechanism = TruncatedLaplace(10.0, 150.0)
    infinite = float(mpmath.expm1(0.1) / (2 * mpmath.expm1(15)))
    once = plan(use(mechanism))
    assert compose(once, "pld").epsilon(0.0).lower == math.inf
    for name in ("pure", "rdp", "zcdp", "pld"):
        assert compose(once, name).epsilon(infinite * 0.99).upper == math.inf
        assert compose(once, name).epsilon(infinite * 1.01).upper <= 0.1 + 1e-9
    assert guarantee(once, infinite * (1 + 1e-12)).epsilon <= 0.1
    thrice = plan(use(mechanism, count=3))
    exact = compose(thrice, "pld")
    for delta in (1e-6, 1e-2):
        interval = exact.epsilon(delta)
        assert interval.upper - interval.lower < 1e-3
        for name in ("pure", "rdp", "zcdp"):
            assert compose(thrice, name).epsilon(delta).upper >= interval.lower


def test_samples_cost_what_their_densities_say():
    """Of the mixture against the law without the unit, and the other way, on a fine grid."""
    e, u, q, cells = 0.8, 3.2, 0.2, 800_000
    step = (e + 2 * u) / cells
    outputs = -u + step * (np.arange(cells) + 0.5)
    own, without = (
        np.where(np.abs(outputs - c) <= u, np.exp(-np.abs(outputs - c)), 0) for c in (e, 0.0)
    )
    own, without = own / (own.sum() * step), without / (without.sum() * step)
    mixture = q * own + (1 - q) * without
    composed = compose(plan(use(TruncatedLaplace(1.25, 4.0), sampling=poisson(q))), "pld")
    for x in (0.0, 0.05, 0.15, 0.25):
        both = ((mixture, without), (without, mixture))
        truth = max(float(np.maximum(p - math.exp(x) * q, 0).sum() * step) for p, q in both)
        found = composed.delta(x)
        assert found.lower - 1e-5 <= truth <= found.upper + 1e-5
        assert found.upper - found.lower < 1e-3
    sampled = plan(use(TruncatedLaplace(10.0, 150.0), sampling=poisson(q), count=20))
    exact = compose(sampled, "pld")
    for delta in (1e-6, 1e-2):
        for name in ("pure", "rdp"):
            assert compose(sampled, name).epsilon(delta).upper >= exact.epsilon(delta).lower


def test_longer_shifts_groups_and_several_numbers():
    mechanism = TruncatedLaplace(2.0, 5.0)
    assert mechanism.pair(10.0).delta(50.0) == 1
    assert mechanism.pair(9.999).delta(0.0) < 1
    two = guarantee(for_group(plan(use(mechanism)), 2), 0.1).epsilon
    assert two == pytest.approx(guarantee(plan(use(mechanism, 2.0)), 0.1).epsilon)
    replaced = plan(use(mechanism, relation=ReplaceOne()))
    assert guarantee(replaced, 0.1).epsilon == guarantee(plan(use(mechanism)), 0.1).epsilon
    with pytest.raises(UnsupportedError, match="one number at a time"):
        mechanism.release([1.0, 2.0], np.random.default_rng(0))


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("factor", [2.0**-30, 1.0, 700.0, 1e6])
def test_extremes_are_served(scale, factor):
    bound = scale * factor
    mechanism = TruncatedLaplace(scale, bound)
    for share in (1e-8, 0.5, 1.0, 1.5, 1.999999):
        pair, failure = mechanism.pair_and_failure(bound * share)
        curve = mechanism.pair(bound * share).delta(np.array([-800.0, -1.0, 0.0, 1.0, 800.0]))
        assert ((curve >= 0) & (curve <= 1)).all()
        assert failure > 0 or share > 1
        assert not np.isnan(pair.above([-1e308, -1.0, 0.0, 1.0, 1e308])).any()
    drawn = mechanism.release_many(0.0, 100, np.random.default_rng(1))
    assert (np.abs(drawn) <= bound).all()
    assert not np.isnan(mechanism.noise_tails(drawn, np.random.default_rng(0)).tails).any()
