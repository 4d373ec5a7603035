"""What a client sends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import guarantee
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import LocalJointGPUCB
from private_bo.joint.local_joint import Lemma5Statistics

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def algorithm(**fields) -> LocalJointGPUCB:
    return LocalJointGPUCB(**({"steps": 4, "feature_map": SMALL} | fields))


@pytest.mark.parametrize("noise", ["tight", "paper"])
@pytest.mark.parametrize("matrix_weight", [0.0, 0.3])
def test_reports_are_read_back(noise: str, matrix_weight: float) -> None:
    statistics = algorithm(noise=noise, matrix_weight=matrix_weight).statistics
    phi = np.full(6, 6**-0.5)
    value = statistics.encode(phi, 1.0)
    assert value.shape == statistics.shape
    sums = statistics.decode(value, 1, 1.0)
    np.testing.assert_allclose(sums.vector, phi * (1.0 if noise == "paper" else 0.5))
    if sums.matrix is not None:
        np.testing.assert_allclose(sums.matrix, np.outer(phi, phi))


@pytest.mark.parametrize("noise", ["tight", "paper"])
def test_no_replacement_moves_a_report_farther_and_one_as_far(noise: str) -> None:
    statistics = algorithm(noise=noise, epsilon=10.0).statistics
    rng = np.random.default_rng(0)
    widest = 0.0
    bound = 1.0 if noise == "tight" else statistics.reward_bound
    low = 0.0 if noise == "tight" else -bound
    for angle in np.linspace(0, math.pi, 721):
        # Mirrored about the diagonal of the first two features.
        half = angle / 2
        x, y = np.zeros(6), np.zeros(6)
        x[:2] = math.cos(math.pi / 4 - half), math.sin(math.pi / 4 - half)
        y[:2] = x[1], x[0]
        for reward in (low, bound):
            moved = statistics.encode(x, bound) - statistics.encode(y, reward)
            widest = max(widest, float(np.linalg.norm(moved)))
    for _ in range(300):
        x, y = rng.normal(size=(2, 6))
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        moved = statistics.encode(x, bound) - statistics.encode(y, low)
        widest = max(widest, float(np.linalg.norm(moved)))
    assert widest <= statistics.sensitivity * (1 + 1e-12)
    assert widest == pytest.approx(statistics.sensitivity, rel=1e-4)


def test_lemma_5_has_the_papers_deviations() -> None:
    statistics = Lemma5Statistics.of_lemma(28, 1.0, 1e-5, 1.0)
    sigma_x, sigma_u, bound = statistics.sigma_x, statistics.sigma_u, statistics.reward_bound
    assert sigma_x**2 == pytest.approx(8 * math.log(2.5e5))
    assert bound**2 == pytest.approx(1 + 2 * math.log(8 * 28 / 1e-5))
    assert sigma_u**2 == pytest.approx(8 * bound**2 * math.log(5e5))
    # The orthogonal pair moves yφ by √2 L; the worst one does more.
    assert statistics.orthogonal_sensitivity < statistics.sensitivity
    proved = guarantee(LocalJointGPUCB(delta=1e-5, noise="paper").plan(), 1e-5).epsilon
    assert proved < 1.0
