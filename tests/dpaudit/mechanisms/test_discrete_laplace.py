import math

import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.errors import InputError
from dpaudit.mechanisms import DiscreteLaplace


class TestDiscreteLaplace(MechanismConformance):
    mechanism = DiscreteLaplace(scale=1.7)
    sensitivity = 2
    unlike = DiscreteLaplace(scale=1.1)
    neighbour = 2
    bad_parameters = ({"scale": 0}, {"scale": math.nan})
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
