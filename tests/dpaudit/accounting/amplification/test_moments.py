"""Logarithms of moments, where floats are scarce."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.accounting.amplification.moments import log_moment, log_ratio


@settings(max_examples=100, derandomize=True)
@given(loss=st.floats(-800, 800), rate=st.floats(1e-9, 0.999999))
@example(loss=0.0, rate=0.5)
@example(loss=30.0, rate=1e-9)
@example(loss=30.0000001, rate=1e-9)
def test_the_ratio_is_that_of_the_mixture(loss: float, rate: float) -> None:
    with mp.workdps(60):
        exact = float(mp.log1p(mp.mpf(rate) * mp.expm1(loss)))
    assert float(log_ratio(np.array(loss), rate)) == pytest.approx(exact, rel=1e-12, abs=1e-300)


@settings(max_examples=60, derandomize=True)
@given(
    order=st.floats(1.00001, 60),
    tilt=st.floats(1e-9, 40),
    share=st.floats(1e-6, 0.5),
)
@example(order=1.00001, tilt=1e-9, share=0.5)
@example(order=16.0, tilt=40.0, share=1e-6)
def test_moments_of_two_values_are_exact_and_rounded_up(
    order: float, tilt: float, share: float
) -> None:
    """r is e^t with probability s, and less than 1 otherwise, so that its mean is 1."""
    with mp.workdps(60):
        s, high = mp.mpf(share) * mp.exp(-tilt), mp.exp(mp.mpf(tilt))
        low = (1 - s * high) / (1 - s)
        exact = mp.log(s * high**order + (1 - s) * low**order)
        logs = np.array([tilt, float(mp.log(low))])
        masses = np.array([float(mp.log(s)), float(mp.log1p(-s))])
    (found,) = log_moment(np.array([order]), logs, masses)
    assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-18)


def test_tiny_moments_keep_their_relative_accuracy() -> None:
    """r = 1 ± x with equal chances: ln(1 + α(α − 1)x²/2 + …)."""
    for x in (1e-4, 1e-7, 1e-12):
        logs, masses = np.log1p([x, -x]), np.full(2, math.log(0.5))
        (found,) = log_moment(np.array([2.5]), logs, masses)
        assert found == pytest.approx(2.5 * 1.5 / 2 * x * x, rel=1e-6)
