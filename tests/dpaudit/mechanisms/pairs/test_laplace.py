import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mechanism_conformance import grid_delta

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Laplace, LaplacePair


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
