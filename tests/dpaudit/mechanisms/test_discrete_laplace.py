import math

import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta
from scipy import stats

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import DiscreteGaussian, DiscreteLaplace


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
