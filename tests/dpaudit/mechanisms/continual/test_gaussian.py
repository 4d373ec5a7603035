"""Gaussian node noise: declared cost against its own density."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.mechanisms import (
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    HonakerTree,
    SquareRootToeplitz,
)

SQUARE = (
    BinaryTree(8),
    BinaryTree(6),
    SquareRootToeplitz(7),
    BufferedToeplitz(7, (0.1, 1), (0.3,)),
)


ALL = (*SQUARE, HonakerTree(8), HonakerTree(8, release_root=True), HonakerTree(1))


each = pytest.mark.parametrize("factorization", ALL, ids=lambda f: f"{f.kind}-{f.steps}")


square = pytest.mark.parametrize("factorization", SQUARE, ids=lambda f: f"{f.kind}-{f.steps}")


def gaussian(factorization, **fields):
    return ContinualGaussian(
        **{"sigma": 1.7, "factorization": factorization, "participations": 1} | fields
    )


def loss_at_the_mean(mechanism, value, neighbour):
    """ln of the density ratio at the noiseless release: μ²/2 for Gaussian noise."""
    outputs = np.cumsum(value, axis=0)[None]
    there, here = (mechanism.log_density(outputs, v)[0] for v in (value, neighbour))
    return there - here


@square
@pytest.mark.parametrize(("count", "gap"), [(1, 1), (2, 3), (3, 2)])
def test_declared_cost_is_that_of_the_worst_neighbour(factorization, count, gap):
    mechanism = gaussian(factorization, participations=count, min_separation=gap)
    rng = np.random.default_rng(2)
    value, direction = rng.normal(size=(factorization.steps, 4)), rng.normal(size=4)
    neighbour = value.copy()
    neighbour[: count * gap : gap] += 0.6 * direction / np.linalg.norm(direction)
    exact = math.sqrt(2 * loss_at_the_mean(mechanism, value, neighbour))
    declared = mechanism.pair(0.6).gaussian_mu
    assert exact <= declared * (1 + 1e-9)
    if count == 1 or not isinstance(factorization, BinaryTree):
        assert declared == pytest.approx(exact, rel=1e-9)


@each
@pytest.mark.parametrize("moved", ["diagonal", "off the diagonal", "both"])
def test_symmetric_noise_costs_half_the_squared_frobenius_distance(factorization, moved):
    mechanism = gaussian(factorization, symmetric=True)
    rng = np.random.default_rng(3)
    value, change = (
        m + np.swapaxes(m, -1, -2) for m in rng.normal(size=(2, factorization.steps, 4, 4))
    )
    change = change[0]
    if moved == "diagonal":
        change = np.diag(np.diag(change))
    elif moved == "off the diagonal":
        change = change - np.diag(np.diag(change))
    neighbour = value.copy()
    neighbour[0] += change
    distance = float(np.linalg.norm(change))
    exact = 2 * loss_at_the_mean(mechanism, value, neighbour)
    declared = mechanism.pair(distance).gaussian_mu
    if factorization.is_square:
        assert declared**2 == pytest.approx(exact, rel=1e-9)
        nodes = factorization.sensitivity() ** 2
        assert declared**2 == pytest.approx(nodes * distance**2 / (2 * 1.7**2), rel=1e-9)
    else:
        assert exact <= declared**2


@each
def test_density_is_the_joint_normal_one(factorization):
    mechanism = gaussian(factorization)
    decoder = factorization.decoder()
    covariance = 1.7**2 * decoder @ decoder.T
    value = np.random.default_rng(0).normal(size=(factorization.steps, 2))
    outputs = mechanism.release_many(value, 5, np.random.default_rng(1))
    expected = sum(
        stats.multivariate_normal(np.cumsum(value[:, c]), covariance).logpdf(outputs[:, :, c])
        for c in range(2)
    )
    np.testing.assert_allclose(mechanism.log_density(outputs, value), expected, rtol=1e-9)


def test_symmetric_density_is_normal_on_the_upper_triangle():
    tree = BinaryTree(3)
    mechanism = gaussian(tree, symmetric=True)
    value = np.zeros((3, 2, 2))
    outputs = mechanism.release_many(value, 4, np.random.default_rng(1))
    covariance = 1.7**2 * tree.decoder() @ tree.decoder().T
    expected = sum(
        stats.multivariate_normal(np.zeros(3), scale * covariance).logpdf(outputs[:, :, i, j])
        for i, j, scale in ((0, 0, 2), (0, 1, 1), (1, 1, 2))
    )
    np.testing.assert_allclose(mechanism.log_density(outputs, value), expected, rtol=1e-9)
    outputs[0, 1, 0, 1] += 1e-9
    assert mechanism.log_density(outputs, value)[0] == -math.inf


@each
@pytest.mark.parametrize("symmetric", [False, True])
def test_released_noise_has_the_declared_spread(factorization, symmetric):
    """Whitened energy is chi-squared; false alarm 1e-6 a case."""
    mechanism = gaussian(factorization, symmetric=symmetric)
    value = np.ones((factorization.steps, 2, 2))
    outputs = mechanism.release_many(value, 2000, np.random.default_rng(7))
    mode = mechanism.log_density(np.cumsum(value, axis=0)[None], value)
    energy = 2 * (mode - mechanism.log_density(outputs, value)).sum()
    freedom = 2000 * factorization.steps * (3 if symmetric else 4)
    assert stats.chi2(freedom).ppf(5e-7) < energy < stats.chi2(freedom).isf(5e-7)
