"""Eigenfeatures against the kernels that they approximate."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import UnsupportedError
from private_bo.gp import (
    Ball,
    Box,
    EigenFeatures,
    FeatureMap,
    Kernel,
    Matern,
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
