"""The posterior with clipped eigenvalues."""

from __future__ import annotations

import numpy as np

from private_bo.gp import FiniteDomain, FinitePosterior, SquaredExponential
from private_bo.outsourced.modeller import ClippedPosterior

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-10.0, 10.0, size=(60, 2))
F = np.sin(POINTS[:, 0] / 3) + np.cos(POINTS[:, 1] / 4)


def test_clipped_posterior_is_the_exact_one_for_a_covariance():
    domain, kernel = FiniteDomain(POINTS), SquaredExponential(3.0)
    exact, clipped = FinitePosterior.of(domain, kernel, 0.1), ClippedPosterior(domain, kernel, 0.1)
    for row in (3, 50, 17, 20):
        exact.update(row, F[row])
        clipped.update(row, F[row])
    np.testing.assert_allclose(clipped.mean, exact.mean, atol=1e-10)
    np.testing.assert_allclose(clipped.variance, exact.variance, atol=1e-10)
