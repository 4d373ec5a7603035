"""How a modeller reads released rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from private_bo.gp import SquaredExponential
from private_bo.outsourced import InputModel, Release
from private_bo.outsourced.modeller import DebiasedSquaredExponential, PosteriorInputs

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-10.0, 10.0, size=(60, 2))


def gram_of(inputs, length):
    scaled, share = inputs.scaled(length), inputs.share(length)
    gram = share * inputs.kernel(length)(scaled, scaled)
    np.fill_diagonal(gram, 1.0)
    return gram


def test_expected_kernel_against_quadrature():
    release = Release(POINTS, noise_variance=2.0)
    inputs = PosteriorInputs.given(release)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    length = 3.0
    expected = 1.0
    for j in range(2):  # coordinates are independent
        prior = POINTS[:, j].var() - 2.0
        mean = (POINTS[:, j] - POINTS[:, j].mean()) * prior / (prior + 2.0)
        spread = math.sqrt(prior * 2.0 / (prior + 2.0))
        x = mean[4] + spread * nodes[:, None]
        y = mean[9] + spread * nodes[None, :]
        factor = np.exp(-((x - y) ** 2) / (2 * length**2))
        expected *= float(weights @ factor @ weights) / weights.sum() ** 2
    assert gram_of(inputs, length)[4, 9] == pytest.approx(expected, rel=1e-10)


def test_expected_kernel_is_a_covariance():
    gram = gram_of(PosteriorInputs.given(Release(POINTS, 9.0)), 3.0)
    assert np.linalg.eigvalsh(gram)[0] > 0


def test_without_noise_all_models_are_the_plain_one():
    for model in InputModel:
        inputs = model.read(Release(POINTS))
        expected = SquaredExponential(4.0)(POINTS, POINTS)
        np.testing.assert_allclose(gram_of(inputs, 4.0), expected, atol=1e-12)


def test_debiased_distances():
    kernel = DebiasedSquaredExponential(2.0, excess=4.0)
    here, there = np.zeros((1, 1)), np.array([[1.0], [3.0]])
    expected = [1.0, math.exp(-(9.0 - 4.0) / 8.0)]
    np.testing.assert_allclose(kernel(here, there).ravel(), expected)
