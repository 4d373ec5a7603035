"""Draws of every mechanism with a generator of numpy, in floating point.

A mechanism's ``sample`` and ``noise`` run what is here for its class; :class:`FloatNoise
<dpaudit.ledger.FloatNoise>`, audits and tests call them. The law of what is drawn is the declared
one up to rounding, and one seed gives the same draws for ever: the order of draws must stay.
Streams are in :mod:`dpaudit.ledger.samplers.streams`.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.by_class import implementation
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.validate import shown
from dpaudit.ledger.samplers import streams  # noqa: F401  # their bodies are registered too
from dpaudit.ledger.samplers.grid import within
from dpaudit.ledger.samplers.runs import drawn_candidates
from dpaudit.mechanisms.additive import (
    AdditiveNoise,
    Gaussian,
    Laplace,
    Staircase,
    TruncatedLaplace,
    VectorNoise,
)
from dpaudit.mechanisms.base import Mechanism
from dpaudit.mechanisms.bit_vectors import BitVectorResponse
from dpaudit.mechanisms.black_box import BlackBox, Opaque
from dpaudit.mechanisms.choice import Choice, SparseVector, TopK
from dpaudit.mechanisms.integers import DiscreteGaussian, DiscreteLaplace, StableHistogram
from dpaudit.mechanisms.local_randomizers import (
    RandomizedResponse,
    Shuffled,
    SubsetSelection,
    UnaryEncoding,
)
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.truncated_gaussian import TruncatedDiscreteGaussian
from dpaudit.plan import PrivateSelection

Rng = np.random.Generator
Shape = tuple[int, ...]

# -- noise on numbers ------------------------------------------------------------------------------


@implementation(Mechanism.sample, AdditiveNoise)
def _added(law: AdditiveNoise, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Values plus noise."""
    noise = law.noise(values.shape, rng)
    own = type(law) is Gaussian and values.dtype == noise.dtype  # no other array of many entries
    released: NDArray[Any] = np.add(values, noise, out=noise if own else None)
    return released


@implementation(AdditiveNoise.noise, Laplace)
def _laplace(law: Laplace, shape: Shape, rng: Rng) -> Floats:
    return rng.laplace(scale=law.scale, size=shape)


@implementation(AdditiveNoise.noise, Gaussian)
def _normal(law: Gaussian, shape: Shape, rng: Rng) -> Floats:
    return rng.normal(scale=law.sigma, size=shape)


@implementation(AdditiveNoise.noise, VectorNoise)
def _vector(law: VectorNoise, shape: Shape, rng: Rng) -> Floats:
    drawn: Floats = getattr(rng, law.of_one.numpy_law)(scale=law.scales, size=shape)
    return drawn


@implementation(AdditiveNoise.noise, TruncatedLaplace)
def _truncated(law: TruncatedLaplace, shape: Shape, rng: Rng) -> Floats:
    """A sign, and a size by the inverse of its distribution."""
    reach = math.expm1(-law.bound / law.scale)
    size = np.minimum(-law.scale * np.log1p(rng.random(shape) * reach), law.bound)
    return np.asarray(rng.choice([-1.0, 1.0], shape) * size)


@implementation(AdditiveNoise.noise, Staircase)
def _staircase(law: Staircase, shape: Shape, rng: Rng) -> Floats:
    """Sign, level, part and place within it (Geng and Viswanath 2014, Algorithm 1)."""
    (step, inner), place = law.steps, rng.random(shape)
    with np.errstate(over="ignore"):
        level = np.floor(rng.exponential(size=shape) / law.epsilon)
    within = np.where(rng.random(shape) < inner, step * place, step + (1 - step) * place)
    return np.asarray(rng.choice([-law.width, law.width], shape) * (level + within))


@implementation(AdditiveNoise.noise, DiscreteLaplace)
def _two_sided_geometric(law: DiscreteLaplace, shape: Shape, rng: Rng) -> NDArray[np.int64]:
    """The difference of two geometric draws."""
    success = -math.expm1(-1 / law.scale)
    first = rng.geometric(success, shape)
    drawn: NDArray[np.int64] = first - rng.geometric(success, shape)
    return drawn


@implementation(AdditiveNoise.noise, DiscreteGaussian)
def _discrete_normal(law: DiscreteGaussian, shape: Shape, rng: Rng) -> NDArray[np.int64]:
    """Rejection from a discrete Laplace law (Canonne, Kamath and Steinke 2020, Algorithm 3).

    The proposal has scale t = ⌊σ⌋ + 1 and is accepted with probability
    exp(−(|y| − σ²/t)²/2σ²), which makes the accepted law exact up to floating point.
    """
    sigma, scale = law.sigma, math.floor(law.sigma) + 1
    success = -math.expm1(-1 / scale)
    drawn: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    missing = math.prod(shape)
    while missing > 0:
        batch = math.ceil(missing * 1.8) + 16
        proposal = rng.geometric(success, batch) - rng.geometric(success, batch)
        with np.errstate(over="ignore"):
            exponent = ((np.abs(proposal) - sigma * sigma / scale) / sigma) ** 2 / 2
        accepted = proposal[rng.random(batch) < np.exp(-exponent)]
        drawn.append(accepted[:missing])
        missing -= len(drawn[-1])
    return np.concatenate(drawn).reshape(shape)


@implementation(AdditiveNoise.noise, TruncatedDiscreteGaussian)
def _bounded_normal(law: TruncatedDiscreteGaussian, shape: Shape, rng: Rng) -> NDArray[np.int64]:
    """Drawn anew where it is beyond the bound."""
    whole = DiscreteGaussian(law.sigma)
    return within(law.bound, shape, lambda count: whole.noise((count,), rng))


# -- choices ---------------------------------------------------------------------------------------


@implementation(Mechanism.sample, Choice)
def _choice(law: Choice, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The largest of utilities with noise."""
    noise = getattr(rng, law.law.value)(size=values.shape)
    chosen: NDArray[Any] = np.argmax(law.exponents(values) + noise, axis=-1)
    return chosen


@implementation(Mechanism.sample, TopK)
def _top_k(law: TopK, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The largest of those that are left, relative to the best of them: no gap is lost."""
    noise, left = rng.gumbel(size=values.shape), np.array(values)
    chosen = np.empty((*values.shape[:-1], law.k), dtype=np.int64)
    for place in range(law.k):
        chosen[..., place] = np.argmax(law.exponents(left) + noise, axis=-1)
        np.put_along_axis(left, chosen[..., place, None], -np.inf, axis=-1)
    return chosen


@implementation(Mechanism.sample, SparseVector)
def _sparse_vector(law: SparseVector, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """One run over each vector."""
    first, second, third = law.scales
    drift = rng.laplace(scale=first, size=(*values.shape[:-1], 1))
    above = values + rng.laplace(scale=second, size=values.shape) >= law.threshold + drift
    answers = values + rng.laplace(scale=third, size=values.shape) if third else None
    return law.transcript(above, answers)


# -- reports and counts ----------------------------------------------------------------------------


@implementation(Mechanism.sample, RandomizedResponse)
def _response(law: RandomizedResponse, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The truth, or a uniform answer."""
    lies = rng.random(values.shape) < law.p
    return np.where(lies, rng.integers(law.k, size=values.shape), values)


@implementation(Mechanism.sample, BitVectorResponse)
def _vector_of_bits(law: BitVectorResponse, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Each bit on its own."""
    return _response(law.bit, values, rng)


@implementation(Mechanism.sample, UnaryEncoding)
def _bits(law: UnaryEncoding, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """All bits at once."""
    own = law.is_answer(values)
    return (rng.random(own.shape) < np.where(own, law.keep, law.lie)).astype(np.int64)


@implementation(Mechanism.sample, SubsetSelection)
def _subset(law: SubsetSelection, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The first ω answers in random order, that of the truth at its head unless blind."""
    own, blind = law.is_answer(values), rng.random(values.shape) < law.p
    places = np.where(own & ~blind[..., None], -1.0, rng.random(own.shape))
    return (places.argsort(axis=-1).argsort(axis=-1) < law.members).astype(np.int64)


@implementation(Mechanism.sample, Shuffled)
def _shuffled(law: Shuffled, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Each answer randomised, then sorted; of several questions one is drawn for each user."""
    if law.questions is not None:
        order = np.broadcast_to(np.arange(law.reports), values.shape[:-1])
        values = law.answers(values, rng.permuted(order, axis=-1))
    return law.sorted(law.local.sample(values, rng))


@implementation(Mechanism.sample, StableHistogram)
def _counts(law: StableHistogram, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Noisy counts, and 0 for those that are not told."""
    return law.shown(values, values + law.noise.noise(values.shape, rng))


@implementation(Mechanism.sample, PrivateSelection)
def _selection(law: PrivateSelection, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The candidate of each run, where the value is their number; it is drawn once.

    Raises:
        UnsupportedError: if several releases are asked for, as by an audit.
    """
    if len(values) != 1:
        raise UnsupportedError(f"{law.kind} is made of runs; attack it through the run.")
    below = random.Random(int(rng.integers(2**63))).randrange
    return drawn_candidates(law.runs, int(values[0]), below)[None]


# -- laws that are only stated ---------------------------------------------------------------------


@implementation(Mechanism.sample, Opaque)
def _opaque(law: Opaque, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """One call of the author's sampler for each run.

    Raises:
        UnsupportedError: if there is no sampler.
    """
    if law.sampler is None:
        raise UnsupportedError(f"opaque mechanism {shown(law.label)} has no sampler; give it one.")
    released = [np.asarray(law.sampler(np.array(value), rng)) for value in values]
    return np.stack(released) if released else np.empty(values.shape)


@implementation(Mechanism.sample, BlackBox)
def _unknown(law: BlackBox, values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    raise UnsupportedError(
        f"{law.kind} states only its privacy, and has no sampler; run the library that it "
        "stands for."
    )
