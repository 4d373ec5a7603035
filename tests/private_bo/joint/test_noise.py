"""The paper's lemmas on noise."""

from __future__ import annotations

import math

import numpy as np

from private_bo.joint.noise import lemma_3_shift, noise_norm


def test_shift_bounds_hold_for_the_noise() -> None:
    rng, m = np.random.default_rng(0), 20
    norms = []
    for _ in range(200):
        V = rng.normal(size=(m, m))
        norms.append(np.linalg.norm((V + V.T) / math.sqrt(2), 2))
    bound = noise_norm(1.0, steps=1024, size=m, confidence=0.1)
    assert max(norms) < bound < lemma_3_shift(1.0, steps=1, size=m, confidence=0.1 / 1024)
