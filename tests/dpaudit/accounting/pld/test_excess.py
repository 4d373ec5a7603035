"""The bound on what rounding gains at the kink, against the coupling that attains it nearly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpaudit.accounting.pld.excess import NEAR, layers


def test_most_rounding_is_near():
    assert pytest.approx(1 - 2 * np.exp(-(2.5**2) / 2), rel=1e-15) == NEAR
    assert norm.cdf(2.5) - norm.cdf(-2.5) >= NEAR


@pytest.mark.parametrize("s", [0.01, 0.3, 2.0])
def test_layers_fall_from_the_kink_outward(s):
    reach, falls, rest = layers(s, s * s / 2, -20.0)
    assert (np.diff(reach) > 0).all()
    assert (falls >= 0).all()
    assert 0 <= rest < 1e-16
    assert falls.sum() + rest <= 1.0


@pytest.mark.parametrize("s", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("distance", [0.0, 0.5, 1.5, 3.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_layers_bound_the_gain_of_normal_rounding(s, distance, side):
    """D = N(s²/2, s²) has E[e^−D] = 1: its gain at u = ± distance s is at most Σ falls beyond."""
    m = s * s / 2
    reach, falls, rest = layers(s, m, -20.0)
    u = side * distance * s

    def kink(x):
        return max(-np.expm1(-x), 0.0)

    gained = quad(lambda d: kink(u + d) * norm.pdf(d, m, s), -u, 12 * s + abs(u), limit=200)[0]
    # Reaches are widened by 2.5 s + m, for probabilities on the grid instead of those of S.
    inside = reach - 2.5 * s - m >= abs(u)
    assert gained - kink(u) <= falls[inside].sum() + rest + 1e-12
