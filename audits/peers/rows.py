"""Rows of the comparison that are not in the catalogue, with the score that a user would write.

Values that seldom leave, a computation that no search guesses, long vectors, few answers: what an
auditor without a score finds hard. Each score is what a person who knows the mistake writes in five
lines.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from audits.catalogue.entry import APPROXIMATE, DELTA, PURE, SIGMA, Entry, Floats, true_epsilon
from audits.catalogue.published import hashed as bits
from dpaudit import DiscreteGaussian
from dpaudit.auditing.distinguishing.scores import FixedScore, LinearScore
from dpaudit.mechanisms import GaussianPair

RECORD, OTHER = 63.4142, 62.4142
"""The record that neighbours differ in."""


def seldom(rate: float, decimals: int, record: Any, size: int, rng: np.random.Generator) -> Floats:
    """A noisy sum, and beside it public noise, or once in so many outputs the record."""
    raw, noise = round(record, decimals), np.round(rng.normal(size=size), decimals)
    shown = np.where(rng.random(size) < rate, raw, noise)
    return np.stack([record + rng.laplace(size=size), shown], axis=1)


def _shows(decimals: int, outputs: Floats) -> Floats:
    found: Floats = (outputs[:, 1] == round(RECORD, decimals)).astype(float)
    return found


BUCKETS = 8


def _buckets(word: int, seeds: Floats) -> Floats:
    """A hash of words under published seeds."""
    mixed = (seeds.astype(np.uint64) * np.uint64(2 * word + 1)) ^ (seeds.astype(np.uint64) >> 13)
    mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return (mixed % np.uint64(BUCKETS)).astype(float)


def hashed(word: Any, size: int, rng: np.random.Generator) -> Floats:
    """Local hashing with a seed of 32 bits, and the p of ε = 2."""
    seeds = rng.integers(2**32, size=size).astype(float)
    true, keeps = _buckets(word, seeds), math.exp(2) / (math.exp(2) + BUCKETS - 1)
    other = (true + rng.integers(1, BUCKETS, size=size)) % BUCKETS
    return np.stack([seeds, np.where(rng.random(size) < keeps, true, other)], axis=1)


def _supports(outputs: Floats) -> Floats:
    seeds, told = outputs.T
    return (_buckets(3, seeds) == told).astype(float) - (_buckets(8, seeds) == told)


WRONG_SIGMA = math.sqrt(SIGMA)
"""Of a sampler that is given σ where it wants the variance."""


def discrete(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Noise of whole numbers, of too small a variance."""
    return np.asarray(DiscreteGaussian(WRONG_SIGMA).release_many(value, size, rng), dtype=float)


def flipped(utilities: Any, size: int, rng: np.random.Generator) -> Floats:
    """Permute-and-flip by exp(ε u), for utilities that move both ways by 1."""
    best = np.asarray(utilities, dtype=float)
    # It is the noisy maximum with exponential noise (Ding et al. 2021).
    return (best + rng.exponential(size=(size, best.size))).argmax(axis=1).astype(float)


def _first(outputs: Floats) -> Floats:
    return (outputs == 0).astype(float)


ANSWERS = 20
"""Beside the first one. The ratio of its chances, integrated, is e^1.99993."""
LENGTH, STEP = 1_000, 0.3


def long_vector(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """A vector of which all entries move, with the noise of one."""
    noise: Floats = rng.normal(scale=SIGMA, size=(size, LENGTH))
    return value * STEP + noise


def _rare(name: str, rate: float, decimals: int) -> Entry:
    score = FixedScore(partial(_shows, decimals), "shows the record")
    release = partial(seldom, rate, decimals)
    return Entry(name, False, PURE, RECORD, OTHER, math.inf, 10_000, release, None, score)


ENTRIES = (
    _rare("a raw record in 1 of 2000 outputs", 1 / 2000, 4),
    _rare("a raw record in 1 of 50 outputs", 1 / 50, 4),
    _rare("a rounded record in 1 of 250 outputs", 1 / 250, 1),
    Entry("local hashing, p of ε = 2", False, PURE, 3, 8, 2.0, 10_000, hashed, None,
          FixedScore(_supports, "support of either word")),
    Entry("discrete Gaussian, σ for σ²", False, APPROXIMATE, 0, 1,
          true_epsilon(DiscreteGaussian(WRONG_SIGMA).pair(1.0), DELTA), 10_000, discrete),
    Entry("permute-and-flip, exp(ε u), utilities move both ways", False, PURE,
          (1.0, *[0.0] * ANSWERS), (0.0, *[1.0] * ANSWERS), 1.99993, 10_000, flipped, None,
          FixedScore(_first, "first answer")),
    Entry("Gaussian, 1000 entries with the noise of one", False, APPROXIMATE, 1.0, 0.0,
          true_epsilon(GaussianPair(STEP * math.sqrt(LENGTH) / SIGMA), DELTA), 10_000,
          long_vector, None, LinearScore((1.0,) * LENGTH)),
    Entry("RAPPOR, four bits with ε each", False, PURE, [0, 1], [2, 3], 4.0, 10_000, bits(1.0),
          None, LinearScore((1.0, 1.0, -1.0, -1.0, *[0.0] * 4))),
)  # fmt: skip
