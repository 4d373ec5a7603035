"""Answers as levels: what is read of them, and which number of levels is best."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import InputError, RandomizedResponse
from private_bo.levels import Levels

COINS = (np.arange(4000) + 0.5) / 4000


def law_of(levels: Levels, scaled: float) -> tuple[np.ndarray, np.ndarray]:
    """The values that are read, and their probabilities, over all coins and lies."""
    lie, truth = levels.law.answer_probabilities
    sent = np.bincount([levels.number(scaled, c) for c in COINS], minlength=levels.law.k) / 4000
    values = np.array([levels.value(number) for number in range(levels.law.k)])
    return values, lie + sent * (truth - lie)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_an_answer_is_read_without_bias_and_with_the_stated_variance(k, silent):
    levels = Levels(RandomizedResponse.calibrated(epsilon=1.7, k=k + silent), silent)
    found = []
    for scaled in np.linspace(-0.5, 0.5, 41):
        values, masses = law_of(levels, scaled)
        assert masses.sum() == pytest.approx(1)
        assert values @ masses == pytest.approx(scaled, abs=1e-3)
        found.append(values**2 @ masses - scaled**2)
    assert max(found) <= levels.variance * 1.001
    assert max(found) >= levels.variance * 0.99


def test_no_answer_is_read_as_lies_around_the_middle():
    levels = Levels(RandomizedResponse.calibrated(epsilon=1.0, k=4), silent=True)
    lie, truth = levels.law.answer_probabilities
    values = np.array([levels.value(number) for number in range(4)])
    masses = np.array([truth, lie, lie, lie])
    assert values[0] == 0
    assert values @ masses == pytest.approx(0)
    assert values**2 @ masses == pytest.approx(levels.lie)


@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 2), (1.0, 2), (1.1, 3), (2.0, 3), (5.0, 7)])
def test_the_best_are_few_at_small_epsilon_and_never_worse_than_laplace(epsilon, count):
    best = Levels.best(epsilon)
    assert best.count == count
    assert float(best.law.pair(1.0).pure_epsilon) <= epsilon
    assert best.variance < 2 / epsilon**2


def test_two_levels_are_one_bit():
    levels = Levels.best(1.0)
    scale = (math.exp(1.0) + 1) / (math.exp(1.0) - 1)
    assert levels.variance == pytest.approx(scale**2 / 4)
    assert [levels.value(bit) for bit in (0, 1)] == pytest.approx([-scale / 2, scale / 2])
    assert [levels.number(0.1, coin) for coin in (0.59, 0.61)] == [1, 0]


def test_an_epsilon_of_coins_is_refused():
    with pytest.raises(InputError, match=r"^epsilon is 1e-17, so small"):
        Levels.best(1e-17)
