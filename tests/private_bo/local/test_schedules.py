"""The parameters of the theorems."""

from __future__ import annotations

import math

import pytest
from scripted import ACCURACY, LAMBDA, constants

from private_bo.local.policies import FeatureTruncation, MedianOfMeans, RewardTruncation


def test_moma_with_a_lower_moment() -> None:
    """γ = (9 m c')^{1/(1+α)} n^{(1-α)/(2(1+α))}, with c' = c^{(1+α)/2} the bound of E|η|^{1+α}."""
    alpha, c, m, n = 0.5, 3.0, 7, 11
    schedule = MedianOfMeans(constants(100, B=2.0, c=c, moment=alpha))
    gamma = (9 * m * c ** ((1 + alpha) / 2)) ** (1 / (1 + alpha))
    gamma *= n ** ((1 - alpha) / (2 * (1 + alpha)))
    expected = 2.0 * (1 + 1 / math.sqrt(1 - ACCURACY)) + 3 * gamma / math.sqrt(LAMBDA)
    assert schedule.width(n, m) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_published_heavy_tail_settings(alpha: float) -> None:
    steps, v, m, t = 1000, 4.0, 12, 57
    public = constants(steps, v=v, moment=alpha)
    features, rewards = FeatureTruncation(public), RewardTruncation(public)
    v_alpha = v ** ((1 + alpha) / 2)
    log = math.log((m + 1) * steps)
    growth = t ** ((1 - alpha) / (2 * (1 + alpha)))
    assert features.oversampling == pytest.approx(math.log(steps) / 0.01)
    assert features.threshold(t, m) == pytest.approx(growth * (v_alpha / log) ** (1 / (1 + alpha)))
    tail = math.sqrt(m) * v_alpha ** (1 / (1 + alpha)) * log ** (alpha / (1 + alpha)) * growth
    assert features.width(t, m) == pytest.approx(math.sqrt(LAMBDA) + tail)
    b = t ** (1 / (2 * (1 + alpha))) * v_alpha ** (1 / (1 + alpha))
    assert rewards.threshold(t) == pytest.approx(b)
    assert rewards.width(t, 1.0) == pytest.approx(math.sqrt(LAMBDA) + b * math.sqrt(math.log(t)))
