"""Losses on a grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.discretise import discretise, drift
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)

PAIRS: list[DirectedPair] = [
    PlainPair(GaussianPair(0.8)),
    PlainPair(LaplacePair(Fraction(1, 3))),
    PlainPair(approximate_pair(0.7, 1e-3)),
    PlainPair(DiscreteLaplace(3.0).pair(2)),
    PlainPair(DiscreteGaussian(2.0).pair(1)),
    RemovedPair(GaussianPair(1.0), 0.05),
    AddedPair(GaussianPair(1.0), 0.05),
    RemovedPair(approximate_pair(0.7, 1e-3), 0.2),
    RemovedPair(LaplacePair(Fraction(1, 2)), 0.3),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("spacing", [0.003, 0.07])
def test_the_grid_dominates_and_connects_the_dots(pair: DirectedPair, spacing: float) -> None:
    loss = discretise(pair, spacing, 1e-12)
    points = loss.points(spacing)
    assert loss.masses.min() >= 0
    assert loss.masses.sum() + loss.infinite == pytest.approx(1, abs=1e-10)
    epsilons = np.linspace(-1, 1.5, 101)
    weights = np.maximum(-np.expm1(np.minimum(epsilons[:, None] - points, 0)), 0)
    curve = weights @ loss.masses + loss.infinite
    exact = pair.delta(epsilons)
    assert (curve >= exact - 1e-13).all()
    on_grid = spacing * np.arange(-5, 6)
    weights = np.maximum(-np.expm1(np.minimum(on_grid[:, None] - points, 0)), 0)
    np.testing.assert_allclose(
        weights @ loss.masses + loss.infinite, pair.delta(on_grid), atol=1e-9
    )


@pytest.mark.parametrize("spacing", [1e-6, 0.005, 0.02, 1.0, 30.0])
def test_drift_is_the_largest_mean_step(spacing: float) -> None:
    inside = np.linspace(0, spacing, 100_001)
    steps = spacing * np.expm1(-inside) / np.expm1(-spacing) - inside
    assert steps.max() <= drift(spacing) <= steps.max() * 1.03 + 1e-15
