"""Features of landmarks against their kernel, and beliefs against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.errors import UnsupportedError
from private_bo.gp import ARD, Matern, SquaredExponential
from private_bo.own import BoxSpace, LandmarkFeatures, PointSpace
from private_bo.own.server import Belief

BOX = BoxSpace((0.0, 10.0), (1.0, 30.0))
RNG = np.random.default_rng(0)
X = np.array(BOX.lower) + RNG.random((60, 2)) * [1.0, 20.0]


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(0.3),
        ARD(SquaredExponential(1.0), (0.3, 0.9)),
        ARD(Matern(1.0, 2.5), (2, 3)),
    ],
)
def test_products_are_the_kernel_in_units_of_the_box(kernel):
    features = LandmarkFeatures(BOX, kernel, features=120, constant=0.25)
    exact = 0.25 + 0.75 * kernel(BOX.unit(X), BOX.unit(X))
    assert features(X) @ features(X).T == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("space", [BOX, PointSpace(X), PointSpace(X[:1])])
def test_norms_are_at_most_one_whatever_the_features(space):
    for count in (1, 2, 40):
        features = LandmarkFeatures(space, SquaredExponential(0.1), features=count)
        assert features.size <= count
        assert features(X).shape == (60, features.size)
        assert np.linalg.norm(features(X), axis=1).max() <= 1 + 1e-12


def test_the_features_know_no_error_and_say_so():
    with pytest.raises(UnsupportedError, match="no proven error"):
        _ = LandmarkFeatures(BOX).uniform_error


def test_a_belief_is_the_dense_posterior_in_any_order():
    phi, values = RNG.normal(size=(9, 4)), RNG.normal(size=9)
    noise, prior = RNG.uniform(0.1, 2.0, 9), RNG.normal(size=4)
    covariance = 0.7**2 * phi @ phi.T + np.diag(noise)
    mean = prior + 0.7**2 * phi.T @ np.linalg.solve(covariance, values - phi @ prior)
    evidence = multivariate_normal(phi @ prior, covariance).logpdf(values)
    spread = 0.7**2 * np.eye(4) - 0.7**4 * phi.T @ np.linalg.solve(covariance, phi)
    for order in (range(9), reversed(range(9))):
        belief = Belief(4, 0.7, prior)
        for i in order:
            belief.observe(phi[i], values[i], noise[i])
        assert belief.mean == pytest.approx(mean, abs=1e-10)
        assert belief.evidence == pytest.approx(evidence, abs=1e-9)
    assert belief.draw(RNG, 0.0) == pytest.approx(mean)
    drawn = np.array([belief.draw(RNG, 2.0) for _ in range(4000)])
    # A fourth moment of 3: entries of the sample covariance are off by 0.1 in 1e-9 of the cases.
    assert np.cov(drawn.T) / 4 == pytest.approx(spread, abs=0.1)
