import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import DiscreteGaussian, Gaussian, GaussianPair


class TestGaussian(MechanismConformance):
    mechanism = Gaussian(sigma=1.6)
    bad_parameters = ({"sigma": 0}, {"sigma": math.inf}, {"sigma": None}, {"clip_norm": -1})

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


class TestDiscreteGaussian(MechanismConformance):
    mechanism = DiscreteGaussian(sigma=1.9)
    sensitivity = 1
    bad_parameters = ({"sigma": 0}, {"sigma": 1e9})
    bad_values = (math.nan, 0.25, "a", None, [1, 2])

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
        with pytest.raises(UnsupportedError, match="one integer"):
            self.mechanism.release([1, 2], np.random.default_rng(0))

    @pytest.mark.parametrize("sigma", [0.3, 0.99, 1.0, 7.5])
    def test_mass_sums_to_one(self, sigma):
        k = np.arange(-400, 401)
        mass = np.exp(DiscreteGaussian(sigma).log_density(k, 0))
        assert mass.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.268, 1.0), (1.0, 0.0), (1.0, 6.1), (0.01, 0.2), (8.0, 3.0), (5.0, 80.0)]
)
def test_delta_equals_high_precision(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert float(GaussianPair(mu).delta(epsilon)) == pytest.approx(float(exact), rel=1e-10)


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
