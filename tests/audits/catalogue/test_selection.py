"""Losses of selection mechanisms by numerical integration."""

import numpy as np
import pytest


def test_noisy_max_by_numerical_integration():
    """The densities of the maximum of 10 queries at 0 or 1 with Lap(2) reach a ratio of e^5."""
    grid = np.linspace(-60, 60, 40_001)
    law = np.where(grid < 0, np.exp(grid / 2) / 2, 1 - np.exp(-grid / 2) / 2)
    shifted = np.where(grid < 1, np.exp((grid - 1) / 2) / 2, 1 - np.exp(-(grid - 1) / 2) / 2)
    at_0, at_1 = (np.diff(cumulative**10) for cumulative in (law, shifted))
    inside = (at_0 > 1e-280) & (at_1 > 1e-280)
    assert np.abs(np.log(at_0[inside] / at_1[inside])).max() == pytest.approx(5.0, abs=1e-3)
