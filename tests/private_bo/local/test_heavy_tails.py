"""The published settings of the non-private algorithms."""

from __future__ import annotations

import math

import pytest
from scripted import (
    LAMBDA,
    constants,
)

from private_bo.local.schedules import FeatureTruncation, RewardTruncation


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
