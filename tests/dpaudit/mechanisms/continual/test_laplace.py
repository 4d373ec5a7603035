"""Laplace node noise: pure differential privacy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    BinaryTree,
    ContinualLaplace,
    HonakerTree,
)


def loss_at_the_mean(mechanism, value, neighbour):
    """ln of the density ratio at the noiseless release: μ²/2 for Gaussian noise."""
    outputs = np.cumsum(value, axis=0)[None]
    there, here = (mechanism.log_density(outputs, v)[0] for v in (value, neighbour))
    return there - here


@pytest.mark.parametrize("count", [1, 2, 3])
def test_laplace_tree_is_pure_and_its_bound_is_reached(count):
    tree = BinaryTree(8)
    mechanism = ContinualLaplace(
        scale=2.5, factorization=tree, participations=count, min_separation=2
    )
    pattern, nodes = {1: ([0], 3), 2: ([0, 4], 6), 3: ([0, 2, 4], 8)}[count]
    assert mechanism.pair(0.5).pure_epsilon == Fraction(nodes, 5)
    value = np.zeros((8, 2))
    neighbour = value.copy()
    neighbour[pattern] = [0.3, -0.2]
    loss = loss_at_the_mean(mechanism, value, neighbour)
    assert loss == pytest.approx(nodes / 5, rel=1e-12)


def test_laplace_release_and_density():
    mechanism = ContinualLaplace(scale=2.0, factorization=BinaryTree(1024), participations=1)
    assert mechanism.pair(1.0).pure_epsilon == 5
    assert mechanism.error().max() == pytest.approx(math.sqrt(2) * 2.0 * math.sqrt(10))
    single = ContinualLaplace(scale=2.0, factorization=BinaryTree(1), participations=1)
    value, outputs = np.array([0.3]), np.array([[1.0], [-4.0]])
    expected = stats.laplace(0.3, 2.0).logpdf(outputs[:, 0])
    np.testing.assert_allclose(single.log_density(outputs, value), expected)
    sample = single.release_many(value, 20_000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(sample, stats.laplace(0.3, 2.0).cdf).pvalue > 1e-6
    with pytest.raises(UnsupportedError, match="no closed density"):
        ContinualLaplace(scale=1.0, factorization=HonakerTree(4), participations=1).log_density(
            np.zeros((1, 4)), np.zeros(4)
        )
