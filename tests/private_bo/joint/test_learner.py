"""From noisy sums to a mean and a width."""

from __future__ import annotations

import numpy as np
import pytest

from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import Estimate, JointGPUCB
from private_bo.joint.statistics import Sums

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    phi = rng.normal(size=size)
    return phi / np.linalg.norm(phi)


def test_without_noise_the_shrunk_estimate_is_the_posterior() -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate="shrunk").learner()
    Phi = np.array([unit(rng, 6) for _ in range(50)])
    v = rng.uniform(-0.5, 0.5, size=50)
    belief = learner.belief(Sums(50, Phi.T @ v, Phi.T @ Phi, 0.0, 0.0))
    V = Phi.T @ Phi + learner.reward_variance / learner.prior_variance * np.eye(6)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(V, Phi.T @ v), rtol=1e-6)
    width = belief.root @ belief.root.T / learner.width_multiplier**2
    np.testing.assert_allclose(width, learner.reward_variance * np.linalg.inv(V), rtol=1e-6)


def test_a_drowned_matrix_counts_for_nothing() -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate="shrunk").learner()
    noise = rng.normal(size=(6, 6))
    vector = rng.normal(size=6)
    belief = learner.belief(Sums(50, vector, noise + noise.T, 1.0, 100.0))
    assert abs(belief.theta @ vector) == pytest.approx(
        np.linalg.norm(belief.theta) * np.linalg.norm(vector)
    )


@pytest.mark.parametrize("estimate", [Estimate.PROJECTED, Estimate.SHIFTED])
def test_ridge_estimates_are_algorithm_1_without_noise(estimate: Estimate) -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate=estimate, width="theorem").learner()
    Phi = np.array([unit(rng, 6) for _ in range(50)])
    belief = learner.belief(Sums(50, Phi.T @ np.ones(50), Phi.T @ Phi, 0.0, 0.0))
    V = Phi.T @ Phi + np.eye(6)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(V, Phi.T @ np.ones(50)), rtol=1e-9)
