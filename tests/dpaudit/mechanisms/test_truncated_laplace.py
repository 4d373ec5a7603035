import math

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from mechanism_conformance import MechanismConformance
from scipy import stats
from truncated_quadrature import exact_delta

from dpaudit import ReplaceOne
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Laplace, LaplacePair, TruncatedLaplace


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
