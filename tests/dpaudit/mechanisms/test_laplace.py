import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.errors import InputError
from dpaudit.mechanisms import DiscreteLaplace, Laplace


class TestLaplace(MechanismConformance):
    mechanism = Laplace(scale=1.25)
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


class TestDiscreteLaplace(MechanismConformance):
    mechanism = DiscreteLaplace(scale=1.7)
    sensitivity = 2
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
    assert Laplace(scale=1.0).implied_sensitivity(2.0) is None


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
