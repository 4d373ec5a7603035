import math

import mpmath
import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import DiscreteGaussian


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
