"""Exact p-values under the declared law, small ones under any other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpaudit.auditing.noise.conformance import p_value, scale_p_value, scale_ratio, shape_p_value
from dpaudit.auditing.noise.tails import laplace_tails, normal_tails
from dpaudit.mechanisms import Tails

LAWS = {"laplace": laplace_tails, "normal": normal_tails}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("statistic", [scale_p_value, shape_p_value])
def test_p_values_are_uniform_under_the_declared_law(law, statistic):
    draw = getattr(np.random.default_rng(3), law)
    found = [statistic(LAWS[law](draw(size=12))) for _ in range(400)]
    assert stats.kstest(found, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("law", LAWS)
def test_the_smaller_of_both_is_doubled(law):
    draws = getattr(np.random.default_rng(5), law)(size=30)
    tails = LAWS[law](draws)
    smaller = min(scale_p_value(tails), shape_p_value(tails))
    assert p_value(tails) == min(1.0, 2 * smaller)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_scale_shows_in_the_scale_and_in_the_ratio(law, factor):
    draws = factor * getattr(np.random.default_rng(6), law)(size=2000)
    tails = LAWS[law](draws)
    assert scale_p_value(tails) < 1e-9
    assert scale_ratio(tails) == pytest.approx(factor, rel=0.15)


def test_a_wrong_shape_shows_although_the_scale_is_right():
    rng = np.random.default_rng(7)
    shifted = rng.laplace(size=4000)
    shifted[shifted < 0] /= 3
    shifted *= 1 / np.abs(shifted).mean()
    assert shape_p_value(laplace_tails(shifted)) < 1e-9
    assert scale_p_value(laplace_tails(shifted)) > 1e-6


def test_impossible_draws_refute_at_once():
    tails = Tails(np.zeros(3), np.array([True, False, True]), np.empty(0))
    assert scale_p_value(tails) == p_value(tails) == 0.0
    assert scale_ratio(tails) is None
