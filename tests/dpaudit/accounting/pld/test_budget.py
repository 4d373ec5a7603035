"""Error terms add up over uses, each as its definition says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.pld.budget import Tally
from dpaudit.accounting.pld.discretise import discretise, drift
from dpaudit.accounting.pld.spectrum import Tilt, tilt_transform
from dpaudit.mechanisms import GaussianPair, approximate_pair

SPACING, SIZE = 0.02, 2048
TILT = Tilt(1.5, 0.7, 0.9)
LOSS = discretise(PlainPair(GaussianPair(0.4)), SPACING, 1e-9)
FAILING = discretise(PlainPair(approximate_pair(0.5, 1e-3)), SPACING, 1e-9)


def tally(*parts):
    found = Tally()
    for loss, count in parts:
        found.add(loss, tilt_transform(loss, SPACING, TILT, SIZE), count)
    return found.budget(TILT, -10.0, 12.0)


def test_rounding_to_the_grid_spreads_like_a_random_walk():
    budget = tally((LOSS, 9))
    assert budget.spread == pytest.approx(3 * SPACING / 2)
    assert budget.drift == pytest.approx(9 * drift(SPACING))
    assert budget.lift == pytest.approx(9 * LOSS.lift)
    assert budget.displaced == pytest.approx(9 * LOSS.displaced)


def test_a_count_is_a_loop_and_order_does_not_matter():
    once = tally((LOSS, 5), (FAILING, 2))
    loop = tally((FAILING, 1), *[(LOSS, 1)] * 5, (FAILING, 1))
    for name, value in vars(once).items():
        assert getattr(loop, name) == pytest.approx(value, rel=1e-9), name


def test_probabilities_of_infinite_loss_are_those_of_any_of_them():
    budget = tally((FAILING, 40))
    exact = -math.expm1(40 * math.log1p(-1e-3))
    assert budget.truly_infinite <= exact <= budget.infinite
    assert budget.infinite - budget.truly_infinite < 1e-9


def test_what_the_window_leaves_out_is_a_chernoff_bound():
    budget = tally((LOSS, 4))
    points = LOSS.points(SPACING)

    def log_mgf(theta):
        return 4 * math.log(float(LOSS.masses @ np.exp(theta * points)))

    assert budget.log_mgf == pytest.approx(log_mgf(1.5), rel=1e-9)
    above = math.exp(log_mgf(2.4) - log_mgf(1.5) - 0.9 * 12.0)
    below = math.exp(log_mgf(0.8) - log_mgf(1.5) - 0.7 * 10.0)
    assert budget.above == pytest.approx(above, rel=1e-6)
    assert budget.below == pytest.approx(below, rel=1e-6)
