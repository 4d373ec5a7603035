from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpaudit.mechanisms.pairs import BoundedRangePair


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
def test_the_curve_is_the_worst_of_all_mechanisms_with_two_losses_so_far_apart(epsilon):
    shifts = np.linspace(1e-9, 1 - 1e-9, 100_001) * epsilon
    share = np.expm1(epsilon - shifts) / math.expm1(epsilon)  # Q-mass of the loss t
    for at in np.linspace(0.0, 0.95, 6) * epsilon:
        worst = (share * np.maximum(np.expm1(shifts - at) * math.exp(at), 0.0)).max()
        assert float(BoundedRangePair(epsilon).delta(at)) == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 900.0])
def test_tails_curve_and_divergences_are_those_of_one_law(epsilon):
    pair = BoundedRangePair(epsilon)
    for at in np.array([-0.9, -0.2, 0.0, 0.4, 0.99]) * epsilon:
        p, q = map(float, pair.above(at))
        low_p, low_q = map(float, pair.below(at))
        assert p + low_p == pytest.approx(1.0)
        assert q + low_q == pytest.approx(1.0)
        if at <= 700:
            assert float(pair.delta(at)) == pytest.approx(p - math.exp(at) * q, rel=1e-9, abs=1e-14)
    width = -2 * math.expm1(-epsilon)
    for order in (1.5, 3.0, 40.0):
        if order * epsilon > 300:
            continue
        moment = quad(
            lambda x, a=order: math.exp((a - 1) * x + (x - epsilon) / 2) / width, -epsilon, epsilon
        )
        assert float(pair.renyi(order)) == pytest.approx(math.log(moment[0]) / (order - 1))
    assert float(pair.below(pair.lower_quantile(1e-4))[0]) == pytest.approx(1e-4, abs=1e-12)


def test_its_ends():
    pair = BoundedRangePair(2.0)
    assert pair.pure_epsilon == 2
    assert pair.zcdp_rho == pytest.approx(0.5)
    assert pair.upper_quantile(1e-9) == 2.0
    assert [float(tail) for tail in pair.above(math.inf)] == [0.0, 0.0]
    assert [float(tail) for tail in pair.below(-math.inf)] == [0.0, 0.0]
    assert float(pair.delta(-3.0)) == pytest.approx(-math.expm1(-3.0))
