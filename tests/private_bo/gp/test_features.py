"""What all feature maps have in common, and additive ones."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError, UnsupportedError
from private_bo.gp import (
    AdditiveFeatures,
    Ball,
    Box,
    EigenFeatures,
    FeatureMap,
    Kernel,
    Matern,
    QuadratureFeatures,
    RandomFourierFeatures,
    SquaredExponential,
)

SE = SquaredExponential(1.0)
BALL = Ball(2.0, 2)


def observed_error(features: FeatureMap, kernel: Kernel, domain: Ball | Box) -> float:
    """Largest error over pairs of random points, half of them on the rim of a ball."""
    X = domain.sample(500, np.random.default_rng(3))
    if isinstance(domain, Ball):
        X[:250] *= domain.radius / np.linalg.norm(X[:250], axis=1, keepdims=True)
    Phi = features(X)
    assert np.linalg.norm(Phi, axis=1).max() <= 1 + 1e-12
    return float(np.abs(Phi @ Phi.T - kernel(X, X)).max())


def additive(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The mean over the coordinates of a kernel on the line."""
    return np.mean(
        [SquaredExponential(0.5)(x[:, None], y[:, None]) for x, y in zip(X.T, Y.T, strict=True)], 0
    )


def test_additive_features_are_those_of_the_additive_kernel() -> None:
    part = QuadratureFeatures(SquaredExponential(0.5), Box((-0.5, 0.5), 1), 8)
    features, domain = AdditiveFeatures(part, 20), Box((-0.5, 0.5), 20)
    assert features.size == 160
    assert observed_error(features, additive, domain) <= features.uniform_error < 2e-3


def test_unsound_features_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="a domain of dimension 1, and this one has 2"):
        QuadratureFeatures(Matern(1.0, 1.5), BALL, 4)
    with pytest.raises(InputError, match="20000"):
        QuadratureFeatures(SE, Ball(1.0, 6), 10)
    with pytest.raises(InputError, match="fewer features"):
        EigenFeatures(SE, BALL, 5000)
    with pytest.raises(InputError, match="dimension 3"):
        QuadratureFeatures(SE, BALL, 4)(np.zeros((1, 3)))
    with pytest.raises(InputError, match="must be 1"):
        AdditiveFeatures(QuadratureFeatures(SE, BALL, 4), 3)


@pytest.mark.parametrize(("size", "most"), [(28, 3e-3), (78, 1e-6)])
def test_eigenfeatures_reach_the_printed_errors(size: int, most: float) -> None:
    features = EigenFeatures(SE, BALL, size)
    observed = observed_error(features, SE, BALL)
    assert 0.2 * features.uniform_error < observed <= features.uniform_error <= most


def test_eigenfeatures_of_a_matern_kernel() -> None:
    kernel = Matern(1.0, 2.5)
    features = EigenFeatures(kernel, Box((0.0, 1.0), 2), 40)
    assert observed_error(features, kernel, Box((0.0, 1.0), 2)) <= features.uniform_error < 0.05
    with pytest.raises(UnsupportedError, match="nu above 2"):
        _ = EigenFeatures(Matern(1.0, 1.5), Box((0.0, 1.0), 1), 5).uniform_error


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("nodes", [10, 11, 16])
def test_quadrature_is_right_in_every_dimension(dimension: int, nodes: int) -> None:
    domain = Ball(1.5, dimension)
    features = QuadratureFeatures(SE, domain, nodes)
    assert features.size == nodes**dimension
    observed = observed_error(features, SE, domain)
    assert 0.001 * features.uniform_error < observed <= features.uniform_error < 2e-3


def test_norms_of_quadrature_features_are_one() -> None:
    X = BALL.sample(50, np.random.default_rng(0))
    norms = np.linalg.norm(QuadratureFeatures(SE, BALL, 9)(X), axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.0, 1.5, 2.5])
def test_matern_quadrature_on_the_line(nu: float) -> None:
    kernel, line = Matern(0.5, nu), Box((0.0, 1.0), 1)
    coarse, fine = (QuadratureFeatures(kernel, line, nodes) for nodes in (20, 80))
    assert observed_error(fine, kernel, line) <= fine.uniform_error < coarse.uniform_error


@pytest.mark.parametrize("kernel", [SE, Matern(1.0, 1.5)])
def test_random_features_are_near_the_kernel(kernel: Kernel) -> None:
    """Hoeffding at each of 500² pairs: off by more than 0.165 with probability below 1e-6."""
    features = RandomFourierFeatures(kernel, BALL, pairs=2000, seed=1)
    assert features.size == 4000
    assert observed_error(features, kernel, BALL) < 0.165
