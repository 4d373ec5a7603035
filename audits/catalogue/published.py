"""Mechanisms of the literature on testing privacy, right and wrong, with no score told.

Reports of RAPPOR and of optimised unary encoding, noisy max with its gap and with other noise, sums
of streams, histograms with thresholds: as in StatDP (Ding et al. 2018), CheckDP (Wang et al. 2020)
and DP-Sniper (Bichsel et al. 2021), or wrong as implementations of them have been.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from audits.catalogue.additive import CURVE
from audits.catalogue.entry import DELTA, PURE, Entry, Floats, family, gaussian_epsilon
from audits.catalogue.selection import noisy_max
from dpaudit import Claim
from dpaudit.auditing.distinguishing.scores import LinearScore
from dpaudit.mechanisms import (
    GaussianHistogram,
    StableHistogram,
    Staircase,
    TruncatedDiscreteGaussian,
    TruncatedLaplace,
)

E = math.e
ANSWERS = 10


@family
def unary(one: float, zero: float, answer: Any, size: int, rng: Generator) -> Floats:
    """One bit for each answer: 1 with probability ``one`` for the true answer, else ``zero``."""
    chances = np.where(np.arange(4) == answer, one, zero)
    return (rng.random((size, 4)) < chances).astype(float)


@family
def hashed(bit: float, value: Any, size: int, rng: Generator) -> Floats:
    """One-time RAPPOR: two of eight bits are set, each told by randomised response of this ε."""
    lie = 1 / (1 + math.exp(bit))
    truth = np.isin(np.arange(8), value)
    return (truth ^ (rng.random((size, 8)) < lie)).astype(float)


@family
def response(truth: float, answer: Any, size: int, rng: Generator) -> Floats:
    """One of ten answers: the true one with this probability, else another one."""
    other = (answer + rng.integers(1, ANSWERS, size=size)) % ANSWERS
    return np.where(rng.random(size) < truth, answer, other).astype(float)


def subsets(answer: Any, size: int, rng: Generator) -> Floats:
    """Subset selection (Ye & Barg 2018) of 2 of 6 answers: with the own one of odds e · 2 : 4."""
    others = rng.permuted(np.tile(np.delete(np.arange(6), answer), (size, 1)), axis=1)
    told = rng.random(size) < 2 * E / (2 * E + 4)
    chosen = np.where(told[:, None], np.c_[np.full(size, answer), others[:, 0]], others[:, :2])
    return (np.arange(6) == chosen[:, :, None]).any(axis=1).astype(float)


@family
def gap(scale: float, queries: Any, size: int, rng: Generator) -> Floats:
    """The index of the noisy maximum and how far it is above the next (Ding et al. 2019)."""
    noisy = np.asarray(queries) + rng.laplace(scale=scale, size=(size, len(queries)))
    ordered = np.sort(noisy, axis=1)
    return np.column_stack([noisy.argmax(axis=1), ordered[:, -1] - ordered[:, -2]])


@family
def running(scale: float, bits: Any, size: int, rng: Generator) -> Floats:
    """Prefix sums of noisy bits: noise is added to each bit once (partial sums)."""
    return np.cumsum(np.asarray(bits) + rng.laplace(scale=scale, size=(size, len(bits))), 1)


@family
def blocks(scale: float, bits: Any, size: int, rng: Generator) -> Floats:
    """Smart sum (Chan, Shi & Song 2011) in blocks of 2: noise on each block and on each bit."""
    pairs = np.asarray(bits, dtype=float).reshape(-1, 2)
    noisy = pairs.sum(axis=1) + rng.laplace(scale=scale, size=(size, len(pairs)))
    before = np.cumsum(noisy, axis=1) - noisy
    first = before + pairs[:, 0] + rng.laplace(scale=scale, size=(size, len(pairs)))
    return np.stack([first, before + noisy], axis=2).reshape(size, -1)


@family
def histogram(threshold: float | None, values: Any, size: int, rng: Generator) -> Floats:
    """Noisy counts of the values that occur, 0 for others; small ones are left out."""
    counts = np.bincount(values, minlength=4)
    noisy = counts + rng.laplace(scale=1.0, size=(size, 4))
    kept = counts > 0 if threshold is None else (counts > 0) & (noisy > threshold)
    return np.where(kept, noisy, 0.0)


def staircase(value: Any, size: int, rng: Generator) -> Floats:
    """Staircase noise (Geng & Viswanath 2014) at ε = 1, with steps broken at 1/(1 + √e)."""
    step = 1 / (1 + math.sqrt(E))
    level = rng.geometric(1 - 1 / E, size=size) - 1.0
    inner = rng.random(size) < step / (step + (1 - step) / E)
    within = np.where(inner, step * rng.random(size), step + (1 - step) * rng.random(size))
    return value + rng.choice([-1.0, 1.0], size=size) * (level + within)


@family
def truncated(bound: float, value: Any, size: int, rng: Generator) -> Floats:
    """Laplace noise of scale 1 within ±bound (Geng et al. 2020)."""
    tail = math.exp(-bound)
    size_of = -np.log(tail + (1 - tail) * rng.random(size))
    return value + rng.choice([-1.0, 1.0], size=size) * size_of


@family
def after(change: Callable[[Floats], Floats], value: Any, size: int, rng: Generator) -> Floats:
    """What is made of a Laplace release of scale 1 afterwards."""
    return change(value + rng.laplace(size=size))


def _median_odds(values: Any, weight: float) -> Floats:
    below = (np.asarray(values)[:, None] < np.arange(10)).sum(axis=0)
    above = (np.asarray(values)[:, None] > np.arange(10)).sum(axis=0)
    odds = np.exp(-weight * np.abs(below - above))
    return np.asarray(odds / odds.sum())


@family
def median(weight: float, values: Any, size: int, rng: Generator) -> Floats:
    """The exponential mechanism for a median in 0 to 9: exp(−weight · |below − above|)."""
    return rng.choice(10, size=size, p=_median_odds(values, weight)).astype(float)


def _rr(epsilon: float) -> float:
    return math.exp(epsilon) / (math.exp(epsilon) + ANSWERS - 1)


APART, TOGETHER = [0, 9], [9, 9]
STEEP_MEDIAN = float(np.abs(np.log(_median_odds(APART, 1.0) / _median_odds(TOGETHER, 1.0))).max())
TRUNCATION = math.log(1 + (E - 1) / (2 * DELTA))
"""Where Laplace noise may end for (1, δ): Geng et al. 2020, Theorem 1."""
FLAT, STEEP = [0.0] * 5, [1.0, -1.0, -1.0, -1.0, -1.0]
BITS, OTHERS = [0, 1, 0, 1], [1, 1, 0, 1]

MANY, MORE = [90] * 4, [91] * 4
ONE_KEY = GaussianHistogram.calibrated(epsilon=1.0, delta=DELTA)

WRONG = (
    Entry("unary encoding with p = 3/4 and q for p = 1/2", False, PURE, 0, 1, 1 + math.log(3),
          10_000, unary(0.75, 1 / (E + 1))),
    Entry("one-time RAPPOR, four bits with ε each", False, PURE, [0, 1], [2, 3], 4.0, 5_000,
          hashed(1.0)),
    Entry("ten answers told with the odds of two", False, PURE, 0, 1, 1 + math.log(9), 3_000,
          response(E / (E + 1))),
    Entry("noisy max with its gap, Lap(1/ε)", False, PURE, FLAT, STEEP, 2.0, 20_000, gap(1.0)),
    Entry("noisy max, Lap(1/(2ε))", False, PURE, FLAT, STEEP, 4.0, 10_000,
          noisy_max("laplace", 0.5), limit=True),
    Entry("partial sums, Lap(1/(2ε))", False, PURE, BITS, OTHERS, 2.0, 10_000, running(0.5)),
    Entry("smart sum, noise for one of its levels", False, PURE, BITS, OTHERS, 2.0, 20_000,
          blocks(1.0)),
    Entry("histogram of observed values, no threshold", False, Claim(1.0, DELTA), [0, 0, 1],
          [0, 0, 1, 2], math.inf, 2_000, histogram(None)),
    Entry("stable histogram, threshold 3", False, Claim(1.0, DELTA), [0, 0, 1], [0, 0, 1, 2],
          math.inf, 8_000, histogram(3.0)),
    Entry("Gaussian histogram, noise of one key for four", False, Claim(1.0, DELTA), MANY, MORE,
          gaussian_epsilon(2 / ONE_KEY.scale), 20_000, ONE_KEY.release_many,
          ONE_KEY.pair(1.0).delta, LinearScore((1.0,) * 4), limit=True),
    Entry("staircase, steps of half the sensitivity", False, PURE, 0.0, 1.0, 2.0, 10_000,
          Staircase(1.0, 0.5).release_many),
    Entry("truncated Laplace, bound 2", False, Claim(1.0, DELTA), 0.0, 1.0, math.inf, 5_000,
          truncated(2.0)),
    Entry("truncated discrete Gaussian, called pure", False, PURE, 0.0, 1.0, math.inf, 20_000,
          TruncatedDiscreteGaussian(5.0, 7).release_many),
    Entry("truncated Laplace, called pure", False, PURE, 0.0, 1.0, math.inf, 100_000,
          TruncatedLaplace.calibrated(epsilon=1.0, delta=1e-2, sensitivity=1.0).release_many),
    Entry("median by exp(ε u), u of sensitivity 2", False, PURE, APART, TOGETHER, STEEP_MEDIAN,
          20_000, median(1.0)),
)  # fmt: skip

RIGHT = (
    Entry("optimised unary encoding", True, PURE, 0, 1, 1.0, 10_000, unary(0.5, 1 / (E + 1))),
    Entry("one-time RAPPOR", True, PURE, [0, 1], [2, 3], 1.0, 10_000, hashed(0.25)),
    Entry("ten answers by randomised response", True, PURE, 0, 1, 1.0, 10_000, response(_rr(1.0))),
    Entry("subset selection", True, PURE, 0, 1, 1.0, 10_000, subsets),
    Entry("noisy max with its gap", True, PURE, FLAT, STEEP, 1.0, 10_000, gap(2.0)),
    Entry("noisy max, exponential noise", True, PURE, FLAT, STEEP, 1.0, 10_000,
          noisy_max("exponential"), limit=True),
    Entry("noisy max, Gumbel noise", True, PURE, FLAT, STEEP, 1.0, 10_000,
          noisy_max("gumbel"), limit=True),
    Entry("partial sums", True, PURE, BITS, OTHERS, 1.0, 10_000, running(1.0)),
    Entry("smart sum", True, PURE, BITS, OTHERS, 1.0, 10_000, blocks(2.0)),
    Entry("stable histogram", True, Claim(1.0, DELTA), [2, 1, 0, 0], [2, 1, 1, 0], 1.0, 10_000,
          StableHistogram.calibrated(epsilon=1.0, delta=DELTA).release_many, limit=True),
    Entry("Gaussian histogram", True, Claim(1.0, DELTA), [*MANY, 0], [*MORE, 1], 1.0, 10_000,
          GaussianHistogram.calibrated(epsilon=1.0, delta=DELTA, key_sensitivity=5).release_many,
          limit=True),
    Entry("staircase", True, PURE, 0.0, 1.0, 1.0, 10_000, staircase),
    Entry("truncated Laplace", True, Claim(1.0, DELTA), 0.0, 1.0, 1.0, 10_000,
          truncated(TRUNCATION)),
    Entry("truncated Laplace, declared", True, Claim(1.0, 1e-3), 0.0, 1.0, 1.0, 10_000,
          TruncatedLaplace.calibrated(epsilon=1.0, delta=1e-3, sensitivity=1.0).release_many),
    Entry("truncated discrete Gaussian", True, Claim(1.0, 1e-3), 0.0, 1.0, 0.8778039437, 10_000,
          TruncatedDiscreteGaussian(3.0, 10).release_many),
    Entry("Laplace, rounded", True, PURE, 0.0, 1.0, 1.0, 10_000, after(np.round), CURVE),
    Entry("Laplace, cut to [0, 1]", True, PURE, 0.0, 1.0, 1.0, 10_000,
          after(lambda noisy: np.clip(noisy, 0.0, 1.0)), CURVE),
    Entry("Laplace, told twice", True, PURE, 0.0, 1.0, 1.0, 10_000,
          after(lambda noisy: np.column_stack([noisy, noisy + 1.0])), CURVE),
    Entry("median by the exponential mechanism", True, PURE, APART, TOGETHER, 1.0, 10_000,
          median(0.25), limit=True),
)  # fmt: skip
