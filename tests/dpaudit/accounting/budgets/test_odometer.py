from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from accounting_builders import plan, use

from dpaudit.accounting import (
    Odometer,
    compose,
)
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, Laplace


def test_the_odometer_is_above_the_fixed_composition_and_not_far() -> None:
    odometer = Odometer(1e-6)
    step = use(Gaussian(10.0))
    last = 0.0
    for done in range(1, 101):
        spent = odometer.record(step).epsilon
        whole = plan(replace(step, count=done, total=None))
        fixed = compose(whole, "gaussian").epsilon(1e-6).upper
        assert max(last, fixed) <= spent
        last = spent
    assert last <= 1.6 * fixed


def test_the_odometer_holds_at_all_times_at_once() -> None:
    # The loss of Gaussian steps is a random walk; it may pass the odometer with probability δ.
    delta, sigma, steps, runs = 0.05, 2.0, 200, 20_000
    odometer = Odometer(delta)
    bounds = np.array([odometer.record(use(Gaussian(sigma))).epsilon for _ in range(steps)])
    rng = np.random.default_rng(7)
    increments = rng.normal(1 / (2 * sigma**2), 1 / sigma, size=(runs, steps))
    passed = (np.cumsum(increments, axis=1) > bounds).any(axis=1).sum()
    # P[Binomial(20 000, 0.05) > 1150] < 1e-6.
    assert passed <= 1150


def test_the_odometer_is_capped_by_the_pure_sum_and_starts_at_zero() -> None:
    odometer = Odometer(1e-6)
    assert odometer.spent.epsilon == 0
    assert odometer.record(use(Laplace(8.0))).epsilon == 0.125
    assert math.isfinite(odometer.record(use(Gaussian(8.0))).epsilon)


def test_noise_too_small_is_spent_at_once_and_shown_as_infinite() -> None:
    odometer = Odometer(1e-6)
    assert odometer.record(use(Gaussian(1e-200))).epsilon == math.inf


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_a_delta_between_the_ends_is_needed(delta: float) -> None:
    with pytest.raises(InputError, match="delta is"):
        Odometer(delta)
