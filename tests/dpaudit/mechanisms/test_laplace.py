import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace


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
    scale = mechanism.grid_scale(sensitivity, entries, step)
    if entries == 1:
        shift = math.floor(sensitivity / step + 1)
        epsilons = np.linspace(-1, 4, 500)
        spent = DiscreteLaplace(scale).pair(shift).delta(epsilons)
        assert (spent <= mechanism.pair(sensitivity).delta(epsilons) + 1e-15).all()
    assert (sensitivity / step + entries) / scale <= sensitivity / mechanism.scale


def test_a_scale_that_no_float_holds_is_one_sentence():
    with pytest.raises(InputError, match="epsilon is 1e-300; no float is so large a scale"):
        Laplace.calibrated(epsilon=1e-300, sensitivity=1e300)
