from __future__ import annotations

import numpy as np
import pytest

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.amplification.fixed_size import FixedSizeAmplification
from dpaudit.accounting.amplification.revealed import (
    RevealedAmplification,
    RevealedPair,
    TimesPair,
)
from dpaudit.mechanisms import GaussianPair, Laplace

ONE, TWO = GaussianPair(0.5), GaussianPair(2.0)
LOSSES = np.linspace(-4, 6, 41)


def test_tails_and_curves_are_averages() -> None:
    for mixed in (
        RevealedPair(((0.9, PlainPair(ONE)), (0.1, PlainPair(TWO)))),
        TimesPair(((0.9, ONE), (0.1, TWO))),
    ):
        expected = 0.9 * ONE.delta(LOSSES) + 0.1 * TWO.delta(LOSSES)
        np.testing.assert_allclose(mixed.delta(LOSSES), expected, atol=1e-14)
        for above, below in zip(mixed.above(LOSSES), mixed.below(LOSSES), strict=True):
            np.testing.assert_allclose(above + below, 1, atol=1e-14)


def test_moments_are_averages() -> None:
    orders = np.array([1.5, 2.0, 9.0])
    mixed = TimesPair(((0.9, ONE), (0.1, TWO)))
    each = [np.exp((orders - 1) * pair.renyi(orders)) for pair in (ONE, TWO)]
    expected = np.log(0.9 * each[0] + 0.1 * each[1]) / (orders - 1)
    np.testing.assert_allclose(mixed.renyi(orders), expected, rtol=1e-9)


def test_the_dearest_kind_decides_the_pure_loss() -> None:
    one, two = Laplace(1.0).pair(1.0), Laplace(1.0).pair(2.0)
    assert TimesPair(((0.9, one), (0.1, two))).pure_epsilon == 2
    kinds = tuple((0.5, FixedSizeAmplification(rate), two) for rate in (0.1, 0.4))
    drawn = RevealedAmplification(0.4, kinds)
    assert drawn.epsilon(2.0) == pytest.approx(np.log1p(0.4 * np.expm1(2)))
    assert drawn.directed(two)[0].max_loss == pytest.approx(np.log1p(0.4 * np.expm1(2)))
