"""Hyperparameters by maximum likelihood."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from private_bo.outsourced import Hyperparameters, InputModel, Release
from private_bo.outsourced.modeller import most_likely

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-10.0, 10.0, size=(60, 2))


def gram_of(inputs, length):
    scaled, share = inputs.scaled(length), inputs.share(length)
    gram = share * inputs.kernel(length)(scaled, scaled)
    np.fill_diagonal(gram, 1.0)
    return gram


def test_hyperparameters_maximise_the_likelihood():
    inputs = InputModel.ORDINARY.read(Release(POINTS))
    truth = Hyperparameters(4.0, mean=5.0, signal_variance=2.0, noise_variance=0.02)
    gram = 2.0 * gram_of(inputs, 4.0) + 0.02 * np.eye(60)
    y = 5.0 + np.linalg.cholesky(gram) @ np.random.default_rng(2).standard_normal(60)

    def log_likelihood(p):
        covariance = p.signal_variance * gram_of(inputs, p.length_scale)
        covariance += p.noise_variance * np.eye(60)
        return multivariate_normal(np.full(60, p.mean), covariance).logpdf(y)

    found = most_likely(inputs, range(60), y.tolist())
    assert log_likelihood(found) > log_likelihood(truth) - 2  # both are searched on a grid
    for factor in (0.9, 1.1):  # mean and signal are stationary at fixed length and noise ratio
        other = Hyperparameters(
            found.length_scale,
            found.mean,
            factor * found.signal_variance,
            factor * found.noise_variance,
        )
        assert log_likelihood(other) < log_likelihood(found)
        moved = Hyperparameters(
            found.length_scale, factor * found.mean, found.signal_variance, found.noise_variance
        )
        assert log_likelihood(moved) < log_likelihood(found)
