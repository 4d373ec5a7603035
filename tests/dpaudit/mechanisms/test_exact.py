from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.errors import InputError
from dpaudit.mechanisms.exact import on_grid, widened

STEP = 2.0**-40


@given(
    value=st.floats(-1e18, 1e18),
    noise=st.integers(-(2**62), 2**62),
)
@example(value=0.5 * STEP, noise=0)
@example(value=2.0**23, noise=1)
@example(value=-1e290, noise=3)
@settings(max_examples=200, derandomize=True)
def test_releases_are_the_nearest_grid_point_moved_by_whole_steps(value, noise):
    (found,) = on_grid(np.array([value]), STEP, np.array([noise]))
    place = round(Fraction(value) / Fraction(STEP))  # ties to even, as rint
    exact = (place + noise) * Fraction(STEP)
    assert float(found) == float(exact)


def test_a_value_beyond_the_grid_is_refused():
    with pytest.raises(InputError, match="too large for a grid of step"):
        on_grid(np.array([1e300]), 2.0**-60, np.zeros(1, dtype=np.int64))


@given(
    scale=st.floats(1e-3, 1e6),
    sensitivity=st.floats(1e-6, 1e6),
    steps=st.integers(0, 10**6),
)
@settings(max_examples=100, derandomize=True)
def test_wider_noise_pays_for_the_steps_exactly(scale, sensitivity, steps):
    found = Fraction(widened(scale, STEP, sensitivity, steps))
    needed = Fraction(scale) * (Fraction(sensitivity) / Fraction(STEP) + steps)
    assert found * Fraction(sensitivity) >= needed
    assert found * Fraction(sensitivity) <= needed * (1 + Fraction(1, 2**51))
    assert widened(scale, STEP, 0.0, steps) == scale / STEP
