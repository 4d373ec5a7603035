"""The parameters of the theorems."""

from __future__ import annotations

import math

import pytest
from scripted import (
    ACCURACY,
    LAMBDA,
    constants,
)

from private_bo.local.schedules import (
    MedianOfMeans,
)


def test_moma_with_a_lower_moment() -> None:
    """γ = (9 m c')^{1/(1+α)} n^{(1-α)/(2(1+α))}, with c' = c^{(1+α)/2} the bound of E|η|^{1+α}."""
    alpha, c, m, n = 0.5, 3.0, 7, 11
    schedule = MedianOfMeans(constants(100, B=2.0, c=c, moment=alpha))
    gamma = (9 * m * c ** ((1 + alpha) / 2)) ** (1 / (1 + alpha))
    gamma *= n ** ((1 - alpha) / (2 * (1 + alpha)))
    expected = 2.0 * (1 + 1 / math.sqrt(1 - ACCURACY)) + 3 * gamma / math.sqrt(LAMBDA)
    assert schedule.width(n, m) == pytest.approx(expected, rel=1e-12)
