"""The tails of released noise under the law of each mechanism.

``Mechanism.tails`` and ``AdditiveNoise.noise_tails`` run what is here for a class; conformance
tests whether the tails are uniform. Ties of discrete laws are broken at random, so that they are
so exactly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.by_class import implementation
from dpaudit.mechanisms.additive import (
    AdditiveNoise,
    Gaussian,
    IntegerNoise,
    Laplace,
    Staircase,
    TruncatedLaplace,
    VectorNoise,
)
from dpaudit.mechanisms.base import Mechanism, Tails
from dpaudit.mechanisms.bit_vectors import BitVectorResponse
from dpaudit.mechanisms.choice import Enumerated, SparseVector
from dpaudit.mechanisms.continual import ContinualGaussian, ContinualLaplace
from dpaudit.mechanisms.integers import StableHistogram
from dpaudit.mechanisms.local_randomizers import RandomizedResponse
from dpaudit.mechanisms.pairs import Floats

Rng = np.random.Generator

# -- of kinds of laws ------------------------------------------------------------------------------


def laplace_tails(standard: Floats) -> Tails:
    """Tails of noise that is declared as Laplace of scale 1, of any shape."""
    z = np.abs(standard.ravel())
    return Tails(np.exp(-z), standard.ravel() > 0, z)


def normal_tails(standard: Floats) -> Tails:
    """Tails of noise that is declared as standard normal, of any shape."""
    from scipy.special import erfc

    z = np.abs(standard.ravel())
    mean = math.sqrt(2 / math.pi)
    return Tails(erfc(z / math.sqrt(2)), standard.ravel() > 0, z / mean, normal=z)


def integer_tails(
    noise: Floats, at_least: Callable[[Floats], Floats], mean: float, rng: np.random.Generator
) -> Tails:
    """Tails of noise on the integers, symmetric about 0.

    Between P(|k| > size) and P(|k| ≥ size), at random; a noise of 0 has a random sign, and one that
    is not whole a tail of 0.

    Args:
        noise: draws, of any shape.
        at_least: P[noise ≥ n] for integers, entry by entry.
        mean: declared mean of |k|, of at least 0.
        rng: breaks ties.
    """
    noise = noise.ravel()
    size = np.abs(noise)
    with np.errstate(over="ignore"):
        sizes = size / max(mean, sys.float_info.min)
    if (size != np.floor(size)).any():
        return Tails(np.zeros_like(size), noise > 0, sizes)
    weak = np.where(size > 0, 2 * at_least(size), 1.0)
    strict = 2 * at_least(size + 1)
    sign = np.where(noise == 0, rng.random(noise.size) < 0.5, noise > 0)
    return Tails(strict + rng.random(noise.size) * (weak - strict), sign, sizes)


def choice_tails(masses: Floats, chosen: NDArray[np.int64], rng: np.random.Generator) -> Tails:
    """Tails of choices, ordered by declared probability: too little noise favours the probable.

    Args:
        masses: declared probabilities, one row for each choice, shape (n, outcomes).
        chosen: number of the outcome of each choice, shape (n,).
        rng: breaks ties, and gives the signs, which mean nothing here.
    """
    mass = np.take_along_axis(masses, chosen[:, None], axis=1)
    more = (masses * (masses > mass * (1 + 1e-12))).sum(axis=1)
    same = (masses * (np.abs(masses - mass) <= mass * 1e-12)).sum(axis=1)
    tails = np.clip(more + rng.random(len(masses)) * same, 0.0, 1.0)
    return Tails(tails, rng.random(len(masses)) < 0.5, np.empty(0))


# -- of noise on numbers ---------------------------------------------------------------------------


@implementation(Mechanism.tails, AdditiveNoise)
def _added(law: AdditiveNoise, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """The tails of released less prepared value."""
    return law.noise_tails(np.asarray(released, dtype=np.float64) - value, rng)


@implementation(AdditiveNoise.noise_tails, Laplace)
def _laplace(law: Laplace, noise: Floats, rng: Rng) -> Tails:
    return laplace_tails(noise / law.scale)


@implementation(AdditiveNoise.noise_tails, Gaussian)
def _normal(law: Gaussian, noise: Floats, rng: Rng) -> Tails:
    return normal_tails(noise / law.sigma)


@implementation(AdditiveNoise.noise_tails, VectorNoise)
def _vector(law: VectorNoise, noise: Floats, rng: Rng) -> Tails:
    """Those of the standard law, in units of the scales."""
    return law.of_one(1.0).noise_tails(noise / law.scales, rng)


@implementation(AdditiveNoise.noise_tails, IntegerNoise)
def _integer(law: IntegerNoise, noise: Floats, rng: Rng) -> Tails:
    return integer_tails(noise, law.at_least, law.mean_size(), rng)


@implementation(AdditiveNoise.noise_tails, TruncatedLaplace)
def _truncated(law: TruncatedLaplace, noise: Floats, rng: Rng) -> Tails:
    """(e^(−|n|/b) − e^(−B/b))/(1 − e^(−B/b)), and 0 beyond the bound."""
    size, end = np.abs(noise.ravel()) / law.scale, law.bound / law.scale
    left = np.expm1(np.minimum(size - end, 0.0)) / math.expm1(-end)
    return Tails(np.exp(-size) * left, noise.ravel() > 0, np.empty(0))


@implementation(AdditiveNoise.noise_tails, Staircase)
def _staircase(law: Staircase, noise: Floats, rng: Rng) -> Tails:
    """P[|noise| ≥ n]: that of the level, and what is left of it."""
    (step, inner), decay = law.steps, -math.expm1(-law.epsilon)
    places = np.abs(noise.ravel()) / law.width
    level, within = np.floor(places), places - np.floor(places)
    outer = (1 - inner) * np.maximum(within - step, 0.0) / (1 - step)
    passed = inner * (np.minimum(within, step) / step) + outer
    tails = np.exp(-law.epsilon * level) * (1 - decay * passed)
    return Tails(tails, noise.ravel() > 0, np.empty(0))


@implementation(Mechanism.tails, ContinualGaussian)
def _normal_nodes(
    law: ContinualGaussian, released: ArrayLike, value: NDArray[Any], rng: Rng
) -> Tails:
    """Of the node noise that explains what was released."""
    return normal_tails(law.node_noise(released, value) / law.sigma)


@implementation(Mechanism.tails, ContinualLaplace)
def _laplace_nodes(
    law: ContinualLaplace, released: ArrayLike, value: NDArray[Any], rng: Rng
) -> Tails:
    """Of the node noise that explains what was released."""
    return laplace_tails(law.node_noise(released, value) / law.scale)


# -- of choices, reports and counts ----------------------------------------------------------------


@implementation(Mechanism.tails, Enumerated)
def _listed(law: Enumerated, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """One choice among all outputs; a tail of 0 for what is none of them."""
    every = law.outputs(value)
    same = (every == np.asarray(released)).reshape(len(every), -1).all(axis=1)
    if not same.any():
        return Tails(np.zeros(1), np.zeros(1, dtype=bool), np.empty(0))
    masses = np.exp(law.log_density(every, value))
    return choice_tails(masses[None], np.flatnonzero(same), rng)


@implementation(Mechanism.tails, SparseVector)
def _transcript(law: SparseVector, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """One choice among all transcripts of flags."""
    kept = law.epsilon * (1 - law.answers_share)
    flags = np.asarray(released)[..., 0] if law.answers_share else released
    return _listed(replace(law, epsilon=kept, answers_share=0.0), flags, value, rng)


@implementation(Mechanism.tails, RandomizedResponse)
def _response(law: RandomizedResponse, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """One choice for each answer: the truth first, then all lies, which are alike."""
    _, truth = law.answer_probabilities
    answers = np.ravel(released)
    within = rng.random(answers.size)
    tails = np.where(answers == np.ravel(value), within * truth, truth + within * (1 - truth))
    possible = (answers >= 0) & (answers < law.k)
    sign = rng.random(answers.size) < 0.5
    return Tails(np.where(possible, tails, 0.0), sign, np.empty(0))


@implementation(Mechanism.tails, BitVectorResponse)
def _bits(law: BitVectorResponse, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """One choice for each bit."""
    return _response(law.bit, released, value, rng)


@implementation(Mechanism.tails, StableHistogram)
def _counts(law: StableHistogram, released: ArrayLike, value: NDArray[Any], rng: Rng) -> Tails:
    """Where the noise of each count lies in its law, at random within what is told of it."""
    told, counts = np.ravel(released), np.ravel(value)
    if (told[counts == 0] != 0).any():
        return Tails(np.zeros(1), np.zeros(1, dtype=bool), np.empty(0))
    told, counts = told[counts > 0], counts[counts > 0]
    shown, noise = told >= law.threshold, law.noise
    low = noise.at_least(np.where(shown, told + 1, law.threshold) - counts)
    high = np.where(shown, noise.at_least(told - counts), 1.0)
    place = low + rng.random(told.size) * (high - low)
    return Tails(2 * np.minimum(place, 1 - place), place < 0.5, np.empty(0))
