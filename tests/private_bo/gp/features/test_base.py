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
    assert observed_error(features, additive, domain) <= features.uniform_error < 1e-3


def test_unsound_features_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="product on the line"):
        QuadratureFeatures(Matern(1.0, 1.5), BALL, 4)
    with pytest.raises(InputError, match="20000"):
        QuadratureFeatures(SE, Ball(1.0, 6), 10)
    with pytest.raises(InputError, match="fewer features"):
        EigenFeatures(SE, BALL, 5000)
    with pytest.raises(InputError, match="dimension 3"):
        QuadratureFeatures(SE, BALL, 4)(np.zeros((1, 3)))
    with pytest.raises(InputError, match="must be 1"):
        AdditiveFeatures(QuadratureFeatures(SE, BALL, 4), 3)
