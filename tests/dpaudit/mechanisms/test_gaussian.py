"""Gaussian noise, on numbers and on integers."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.ledger.samplers.exact import normal_scale
from dpaudit.mechanisms import DiscreteGaussian, Gaussian, Laplace


class TestGaussian(MechanismConformance):
    mechanism = Gaussian(sigma=1.6)
    bad_parameters = ({"sigma": 0}, {"sigma": math.inf}, {"sigma": None}, {"clip_norm": -1})
    unlike = Laplace(scale=1.6)

    def mean(self):
        return 0.0

    def variance(self):
        return 1.6**2

    def exact_delta(self, epsilon):
        step = 1e-4
        y = np.arange(-16, 17, step)
        log_p, log_q = (-(((y - x) / 1.6) ** 2) / 2 for x in (1, 0))
        return grid_delta(log_p, log_q, epsilon, step / (1.6 * math.sqrt(2 * math.pi)))


class TestGaussianVector(TestGaussian):
    """Isotropic noise: only the L2 distance counts."""

    value = (0.0, 0.0, 0.0)
    neighbour = (0.6, 0.0, 0.8)


@settings(max_examples=40, derandomize=True)
@given(epsilon=st.floats(0, 20), log_delta=st.floats(-14, -0.1), sensitivity=st.floats(0.01, 100))
def test_calibration_meets_the_wish_and_is_tight(epsilon, log_delta, sensitivity):
    delta = 10**log_delta
    mechanism = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert float(mechanism.pair(sensitivity).delta(epsilon)) <= delta
    less = Gaussian(mechanism.sigma * (1 - 1e-9))
    assert float(less.pair(sensitivity).delta(epsilon)) > delta * (1 - 1e-12)


def test_calibration_reproduces_the_printed_sigma():
    sigma = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1).sigma
    assert sigma == pytest.approx(3.7306, abs=5e-5)


def test_clip_norm_scales_down_and_only_down():
    mechanism = Gaussian(sigma=1.0, clip_norm=2.0)
    rng = np.random.default_rng
    np.testing.assert_allclose(
        mechanism.release([30.0, 40.0], rng(1)), mechanism.release([1.2, 1.6], rng(1))
    )
    assert mechanism.implied_sensitivity(2.0) == 4
    with pytest.raises(InputError, match="delta"):
        Gaussian.calibrated(epsilon=1, delta=0, sensitivity=1)


@pytest.mark.parametrize("entries", [1, 16])
def test_a_grid_costs_at_most_what_is_declared(entries):
    """On a coarse grid, where the masses of the discrete law can still be added up."""
    mechanism, step = Gaussian(2.0), 2.0**-9
    scale = normal_scale(mechanism, 1.0, entries, step)
    shift = math.floor(1.0 / step + math.sqrt(entries))
    assert shift / scale <= 1.0 / mechanism.sigma
    epsilons = np.linspace(0, 3, 60)
    spent = DiscreteGaussian(scale).pair(shift).delta(epsilons)
    assert (spent <= mechanism.pair(1.0).delta(epsilons) * (1 + 1e-9)).all()


def test_a_grid_is_refused_beyond_its_proof():
    source = PlainSource(np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=r"sensitivity is 20 times sigma; .* 2\^-16 to 10"):
        Gaussian(1.0).require_exact(20.0, source)
    Gaussian(1.0).require_exact(0.0, source)
    with pytest.raises(UnsupportedError, match="20000 entries; exact normal noise takes at most"):
        Gaussian(1.0).release_exactly(np.zeros(20_000), 1.0, 1, source)


def test_a_subclass_with_noise_of_its_own_does_not_inherit_the_exact_sampler():
    class Halved(Gaussian):
        kind = ""

        def noise(self, shape, rng):
            return rng.normal(scale=self.sigma / 2, size=shape)

    assert not Halved.has_exact_sampler()
    with pytest.raises(UnsupportedError, match="has no exact sampler"):
        Halved(1.0).release_exactly(0.0, 1.0, 1, PlainSource(np.random.default_rng(0)))


class TestDiscreteGaussian(MechanismConformance):
    mechanism = DiscreteGaussian(sigma=1.9)
    sensitivity = 1
    bad_parameters = ({"sigma": 0}, {"sigma": 1e10})
    bad_values = (math.nan, 0.25, "a", None, [1, 2])
    unlike = DiscreteGaussian(sigma=2.9)

    def mean(self):
        return 0.0

    def variance(self):
        k = np.arange(-80, 81)
        mass = np.exp(-((k / 1.9) ** 2) / 2)
        return float((k * k * mass).sum() / mass.sum())

    def exact_delta(self, epsilon):
        k = np.arange(-100, 102)
        return grid_delta(
            self.mechanism.log_density(k, 1), self.mechanism.log_density(k, 0), epsilon
        )

    def test_vectors_are_refused_because_the_pair_covers_one_integer(self):
        with pytest.raises(UnsupportedError, match="one number at a time"):
            self.mechanism.release([1, 2], np.random.default_rng(0))

    @pytest.mark.parametrize("sigma", [0.3, 0.99, 1.0, 7.5])
    def test_mass_sums_to_one(self, sigma):
        k = np.arange(-400, 401)
        mass = np.exp(DiscreteGaussian(sigma).log_density(k, 0))
        assert mass.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("shift", [1, 9, 36, 41])
@pytest.mark.parametrize("share", [0.3, 0.9, 1.0, 1.3])
def test_long_shifts_leave_out_no_mass(shift, share):
    """δ by 60-digit sums: a shift of tens of σ has losses far beyond those within either law."""
    epsilon = share * (shift**2 / 2 + 4 * shift)
    with mpmath.workdps(60):
        mass = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / 2) for k in range(-130, 131)}
        total, factor = mpmath.fsum(mass.values()), mpmath.exp(epsilon)
        exact = mpmath.fsum(
            max(mass[k - shift] - factor * mass[k], 0) for k in range(-60, shift + 60)
        )
    found = float(DiscreteGaussian(1.0).pair(shift).delta(epsilon))
    assert found == pytest.approx(float(exact / total), rel=1e-9, abs=2e-300)


def test_shifts_beyond_all_tails_are_refused():
    with pytest.raises(UnsupportedError, match="it must be at most 41"):
        DiscreteGaussian(1.0).pair(42)
