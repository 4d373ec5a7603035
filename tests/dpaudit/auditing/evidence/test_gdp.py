"""The curve of Gaussian differential privacy against mpmath and its own inverse."""

from __future__ import annotations

import math

import mpmath
import pytest

from dpaudit.auditing.evidence.gdp import gdp_delta, gdp_epsilon
from dpaudit.errors import InputError


def test_gaussian_delta_matches_mpmath():
    mpmath.mp.dps = 40
    for epsilon, mu in ((0.0, 0.3), (1.0, 1 / 3.7306), (4.0, 1.0), (30.0, 5.0)):
        a = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        b = mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        expected = float(a - mpmath.e**epsilon * b)
        assert gdp_delta(epsilon, mu) == pytest.approx(expected, rel=1e-8)


def test_calibrated_sigma_gives_epsilon_one():
    assert gdp_epsilon(1 / 3.7306, 1e-5) == pytest.approx(1.0, abs=1e-4)
    assert gdp_epsilon(2 / 3.7306, 1e-5) == pytest.approx(2.155, abs=1e-3)
    assert gdp_epsilon(1.0, 0.0) == math.inf
    assert gdp_epsilon(0.0, 0.0) == 0.0


@pytest.mark.parametrize("mu", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_epsilon_inverts_delta(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    assert gdp_delta(epsilon, mu) <= delta
    assert epsilon == 0 or gdp_delta(epsilon * (1 - 1e-6), mu) > delta


def test_bad_input_is_named():
    with pytest.raises(InputError, match="mu is -1"):
        gdp_delta(1.0, -1)
    with pytest.raises(InputError, match="delta is 1"):
        gdp_epsilon(1.0, 1)
