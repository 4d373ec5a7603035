"""The paper's lemmas on noise."""

from __future__ import annotations

import math

import numpy as np

from private_bo.joint.statistics import lemma_2_sigma, lemma_3_shift, lemma_6_shift, noise_norm


def test_shift_bounds_hold_for_the_noise() -> None:
    rng, m = np.random.default_rng(0), 20
    norms = []
    for _ in range(200):
        V = rng.normal(size=(m, m))
        norms.append(np.linalg.norm((V + V.T) / math.sqrt(2), 2))
    bound = noise_norm(1.0, steps=1024, size=m, confidence=0.1)
    assert max(norms) < bound < lemma_3_shift(1.0, steps=1, size=m, confidence=0.1 / 1024)


def test_both_readings_of_lemma_2() -> None:
    n, beta, alpha = 11, 0.1, 10.0
    printed = 16 * n * 2 * math.log(10 / beta) ** 2 / alpha**2
    facts = {"steps": 1024, "bound": 1.0}
    assert math.isclose(lemma_2_sigma(alpha, beta, **facts, printed=True), printed)
    assert math.isclose(lemma_2_sigma(alpha, beta, **facts), math.sqrt(printed))
    logarithm = lemma_2_sigma(alpha, beta, **facts, variance=0.25)
    assert round(logarithm, 1) == 16.9


def test_the_shift_of_lemma_6_bounds_the_sum_of_all_clients_noise() -> None:
    rng, m, steps = np.random.default_rng(0), 20, 64
    norms = []
    for _ in range(50):
        lower = np.tril(rng.normal(size=(steps, m, m)).sum(axis=0))
        norms.append(np.linalg.norm(lower + np.tril(lower, -1).T, 2))
    assert max(norms) < lemma_6_shift(1.0, steps=steps, size=m, confidence=0.1)
