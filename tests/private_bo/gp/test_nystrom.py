"""Nyström features: exact with a full dictionary, and drawn by the law of the text."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm

from dpaudit.base.errors import InputError
from private_bo.gp import (
    FiniteDomain,
    FinitePosterior,
    Kernel,
    Matern,
    NystromEmbedder,
    NystromPosterior,
    SquaredExponential,
    oversampling,
    variance_ratio,
)

LINE = FiniteDomain.grid(60)


def plays(rng: np.random.Generator, total: int = 300) -> np.ndarray:
    return np.bincount(rng.integers(60, size=total) // 2, minlength=60)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(0.2, 2.5), Matern(0.1, 0.5)])
@pytest.mark.parametrize("noise", [1.0, 0.05])
def test_a_sure_dictionary_gives_the_exact_posterior(kernel: Kernel, noise: float) -> None:
    rng = np.random.default_rng(1)
    counts = plays(rng)
    exact = FinitePosterior.of(LINE, kernel, noise)
    targets = np.zeros(60)
    for point in np.repeat(np.arange(60), counts):
        y = float(rng.normal())
        targets[point] += y
        exact.update(point, y)
    embedder = NystromEmbedder(LINE, kernel)
    embedding = embedder.sample(counts, np.ones(60), math.inf, rng)
    approximate = NystromPosterior.fit(embedding, counts, noise)
    assert np.array_equal(embedding.dictionary, np.flatnonzero(counts))
    assert approximate.variance == pytest.approx(exact.variance, abs=1e-8)
    # The pseudo-inverse drops eigenvalues below 1e-12, so the mean may lose their root, 1e-6.
    whitened_mean = approximate.whitened.T @ (approximate.whitened @ targets)
    assert whitened_mean == pytest.approx(exact.mean, abs=1e-5)


def test_symmetric_features_are_those_of_the_text() -> None:
    kernel, dictionary = Matern(0.2, 0.5), np.array([3, 20, 41])
    matrix = LINE.kernel_matrix(kernel)
    root = np.real(sqrtm(matrix[np.ix_(dictionary, dictionary)]))
    expected = matrix[:, dictionary] @ np.linalg.pinv(root).T
    features = NystromEmbedder(LINE, kernel).embed(dictionary).features
    assert features == pytest.approx(expected, abs=1e-12)


def test_repetitions_in_a_dictionary_add_nothing() -> None:
    embedder = NystromEmbedder(LINE, SquaredExponential(0.2))
    once = embedder.embed(np.array([4, 9]))
    assert embedder.embed(np.array([9, 4, 9])) is once
    assert embedder.embed(np.array([4])) is not once


def test_inclusion_follows_independent_tries() -> None:
    """Frequency of every point in 20 000 draws against 1 - (1 - p)^c.

    Hoeffding: each of the 60 frequencies is off by more than 0.0235 with probability below
    2 exp(-2 · 20000 · 0.0235²) < 6e-10, so the false alarm rate is below 4e-8.
    """
    rng = np.random.default_rng(17)
    counts = np.arange(60) % 7
    variance = np.linspace(0.0, 1.2, 60)
    embedder = NystromEmbedder(LINE, Matern(0.2, 0.5))
    seen = np.zeros(60)
    from private_bo.gp.posteriors import _drawn

    played = np.flatnonzero(counts)
    for _ in range(20_000):
        seen[played] += _drawn(counts[played], variance[played], 0.3, rng)
    expected = 1.0 - (1.0 - np.minimum(0.3 * variance, 1.0)) ** counts
    assert np.abs(seen / 20_000 - expected).max() < 0.0235
    sample = embedder.sample(counts, variance, 0.3, rng).dictionary
    assert set(sample) <= set(played)


def test_an_empty_dictionary_leaves_the_prior() -> None:
    rng = np.random.default_rng(0)
    embedder = NystromEmbedder(LINE, Matern(0.2, 2.5))
    embedding = embedder.sample(np.zeros(60, dtype=np.intp), np.ones(60), math.inf, rng)
    posterior = NystromPosterior.fit(embedding, np.zeros(60, dtype=np.intp), 1.0)
    assert embedding.features.shape == (60, 0)
    assert posterior.whitened.shape == (0, 60)
    assert np.array_equal(posterior.variance, np.ones(60))


@pytest.mark.parametrize("seed", range(5))
def test_an_accurate_dictionary_keeps_variances_within_its_ratio(seed: int) -> None:
    """Lemma 9: σ²/ρ <= σ̃² <= ρ σ², here at the text's own q (failure probability 1e-6)."""
    rng = np.random.default_rng(seed)
    counts = plays(rng, 3000)
    kernel = Matern(0.2, 2.5)
    exact = FinitePosterior.of(LINE, kernel, 1.0)
    for point in np.repeat(np.arange(60), counts):
        exact.update(point, 0.0)
    q = oversampling(accuracy=0.9, horizon=1, confidence=1e-6)
    embedding = NystromEmbedder(LINE, kernel).sample(counts, exact.variance, q, rng)
    assert embedding.dimension <= np.count_nonzero(counts)
    ratio = NystromPosterior.fit(embedding, counts, 1.0).variance / exact.variance
    assert ratio.min() >= 1.0 / variance_ratio(0.9)
    assert ratio.max() <= variance_ratio(0.9)


def test_rows_of_the_whitened_features_are_at_most_of_unit_norm() -> None:
    rng = np.random.default_rng(4)
    counts = plays(rng)
    embedding = NystromEmbedder(LINE, Matern(0.2, 2.5)).sample(counts, np.ones(60), math.inf, rng)
    posterior = NystromPosterior.fit(embedding, counts, 0.5)
    assert ((posterior.whitened**2) @ counts).max() <= 1.0


def test_oversampling_of_the_text() -> None:
    assert variance_ratio(0.1) == pytest.approx(11 / 9)
    expected = 6 * (11 / 9) * math.log(4 * 1000 / 0.1) / 0.01
    assert oversampling(0.1, 1000, 0.1) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    "build",
    [
        lambda embedder, rng: embedder.sample(np.zeros(59, dtype=int), np.ones(60), 1.0, rng),
        lambda embedder, rng: embedder.sample(np.zeros(60, dtype=int), np.ones(60), 0.0, rng),
        lambda embedder, rng: embedder.sample(np.zeros(60, dtype=int), np.ones(60), math.nan, rng),
        lambda embedder, rng: NystromPosterior.fit(embedder.embed(np.array([1])), np.ones(60), 0),
        lambda embedder, rng: oversampling(1.0, 10, 0.1),
        lambda embedder, rng: oversampling(0.5, 0, 0.1),
        lambda embedder, rng: oversampling(0.5, 10, 0.0),
    ],
)
def test_bad_input_is_refused(build: object) -> None:
    with pytest.raises(InputError):
        build(NystromEmbedder(LINE, Matern(0.2, 2.5)), np.random.default_rng(0))
