"""Draws of every mechanism that has an exact sampler, from a source of exact integers.

A mechanism's ``sample_exactly`` and ``require_exact`` run what is here for its class;
:class:`SecureNoise <dpaudit.ledger.SecureNoise>` calls them. Nothing is rounded after the noise is
added but to a grid that the noise itself lies on, and what that costs is paid for by wider noise,
so that a release guarantees at most what is declared (:mod:`dpaudit.ledger.samplers.grid`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.by_class import implementation
from dpaudit.base.errors import UnsupportedError
from dpaudit.ledger.samplers.grid import as_int64, decays, on_grid, places, widened, within
from dpaudit.ledger.samplers.runs import drawn_candidates
from dpaudit.mechanisms.additive import Gaussian, Laplace, VectorNoise
from dpaudit.mechanisms.base import ExactSource, Mechanism
from dpaudit.mechanisms.bit_vectors import BitVectorResponse
from dpaudit.mechanisms.choice import Choice, Noise, SparseVector, TopK
from dpaudit.mechanisms.gaussian_histogram import GaussianHistogram
from dpaudit.mechanisms.integers import DiscreteGaussian, DiscreteLaplace, StableHistogram
from dpaudit.mechanisms.local_randomizers import (
    RandomizedResponse,
    Shuffled,
    SubsetSelection,
    UnaryEncoding,
)
from dpaudit.mechanisms.truncated_gaussian import TruncatedDiscreteGaussian
from dpaudit.plan import PrivateSelection

_SMALLEST_SHIFT, _LARGEST_SHIFT = 2.0**-16, 10.0
_MOST_ENTRIES = 2**14

# -- noise on numbers ------------------------------------------------------------------------------


def laplace_scale(law: Laplace, sensitivity: float, entries: int, step: float) -> float:
    """B (1 + 3dγ/Δ), in steps γ of a grid, for d entries: ε and the curve are at most declared.

    Let K be an integer shift and t the scale, both in grid steps. At the losses e_j = (2j − K)/t
    discrete Laplace noise has δ(e_j) = 1 − exp((j − K)/t), and δ falls in between. A continuous
    pair of ε = (K + 2)/t has δ(e_{j+1}) = 1 − exp((j − K)/t), no less. So it dominates, entry by
    entry; and over d entries, with K ≤ Δ/γ + d in all, one pair of ε = (Δ/γ + 3d)/t does
    (composition, and the walk of :class:`~dpaudit.mechanisms.LaplacePair`).
    """
    return widened(law.scale, step, sensitivity, 3 * entries)


@implementation(Mechanism.require_grid, Laplace)
def _require_laplace(
    law: Laplace, sensitivity: float, source: ExactSource, entries: int = 1
) -> None:
    """Refuse what no grid holds: the scale, or the sensitivity beside it."""
    laplace_scale(law, sensitivity, entries, source.step(law.scale))


@implementation(Mechanism.sample_exactly, Laplace)
def _laplace(
    law: Laplace, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Discrete Laplace noise on a grid, as wide as :func:`laplace_scale` asks for."""
    step = source.step(law.scale)
    scale = laplace_scale(law, sensitivity, math.prod(values.shape[1:]), step)
    return on_grid(values, step, partial(source.laplace, scale))


def normal_scale(law: Gaussian, sensitivity: float, entries: int, step: float) -> float:
    """σ (1 + (√d + 1)γ/Δ), in steps γ of a grid, for d entries: no more than declared is spent.

    Rounding moves neighbours to at most Δ + √d γ apart. The discrete normal law satisfies
    ρ = Δ²/2σ² exactly (Canonne, Kamath and Steinke 2020, Theorem 4), so that √d steps pay for the
    rounding. One step more pays for the curve: rounding a *continuous* normal release to the grid
    only loses information (post-processing), and within 40 σ its masses and the discrete ones
    differ by a factor of at most exp(68 γ²/σ²) an entry. That is far below what the step gains in
    δ(ε), at any δ above 1e-300, for 2^-16 ≤ Δ/σ ≤ 10 and d ≤ 2^14.

    Raises:
        UnsupportedError: if there are more entries than the proof covers.
    """
    if entries > _MOST_ENTRIES:
        raise UnsupportedError(
            f"value has {entries} entries; exact normal noise takes at most {_MOST_ENTRIES}."
        )
    return widened(law.sigma, step, sensitivity, math.isqrt(entries) + 2)


@implementation(Mechanism.require_grid, Gaussian)
def _require_normal(
    law: Gaussian, sensitivity: float, source: ExactSource, entries: int = 1
) -> None:
    """Refuse what no grid holds, and shifts and entries beyond the proof."""
    step, ratio = source.step(law.sigma), sensitivity / law.sigma
    if ratio and not _SMALLEST_SHIFT <= ratio <= _LARGEST_SHIFT:
        raise UnsupportedError(
            f"sensitivity is {ratio:g} times sigma; exact normal noise needs a ratio from 2^-16 to "
            "10, so change sigma, or use FloatNoise()."
        )
    normal_scale(law, sensitivity, entries, step)


@implementation(Mechanism.sample_exactly, Gaussian)
def _normal(
    law: Gaussian, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Discrete normal noise on a grid, as wide as :func:`normal_scale` asks for."""
    step = source.step(law.sigma)
    scale = normal_scale(law, sensitivity, math.prod(values.shape[1:]), step)
    return on_grid(values, step, partial(source.normal, scale))


@implementation(Mechanism.require_grid, VectorNoise)
def _require_vector(
    law: VectorNoise, sensitivity: float, source: ExactSource, entries: int = 1
) -> None:
    """Refuse what cannot be drawn for one of the coordinates."""
    for scale, moved in zip(law.scales, law.sensitivities, strict=True):
        law.of_one(scale).require_exact(moved, source)  # one entry each


@implementation(Mechanism.sample_exactly, VectorNoise)
def _vector(
    law: VectorNoise, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Every coordinate on a grid of its own, so that each costs at most what is declared."""
    columns = zip(law.scales, law.sensitivities, np.moveaxis(values, -1, 0), strict=True)
    drawn = [law.of_one(b).sample_exactly(each, moved, source) for b, moved, each in columns]
    return np.stack(drawn, axis=-1)


@implementation(Mechanism.sample_exactly, DiscreteLaplace)
def _discrete_laplace(
    law: DiscreteLaplace, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    return as_int64(source.laplace(law.scale, values))


@implementation(Mechanism.sample_exactly, DiscreteGaussian)
def _discrete_normal(
    law: DiscreteGaussian, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    return as_int64(source.normal(law.sigma, values))


@implementation(Mechanism.sample_exactly, TruncatedDiscreteGaussian)
def _bounded_normal(
    law: TruncatedDiscreteGaussian, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Drawn anew where it is beyond the bound."""

    def draw(count: int) -> NDArray[np.int64]:
        return as_int64(source.normal(law.sigma, np.zeros(count, dtype=np.int64)))

    return as_int64(values.astype(object) + within(law.bound, values.shape, draw))


# -- choices ---------------------------------------------------------------------------------------


@implementation(Mechanism.require_grid, Choice)
def _require_choice(law: Choice, sensitivity: float, source: ExactSource, entries: int = 1) -> None:
    """Refuse Laplace noise, whose largest has no exact sampler yet."""
    if law.law is Noise.LAPLACE:
        raise UnsupportedError(
            f"{law.kind} with laplace noise has no exact sampler yet; noise 'exponential' and "
            "'gumbel' have one."
        )


@implementation(Mechanism.sample_exactly, Choice)
def _choice(
    law: Choice, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """The law itself, of the utilities, ε and Δ as the rational numbers that the floats are.

    Gumbel noise: a candidate is drawn uniformly and taken with probability exp(−γ), where
    γ = ε (max u − u)/2Δ; else another one is drawn. One trial ends with candidate i with
    probability exp(−γ_i)/k, and trials are independent, so that i is taken with probability
    exp(−γ_i)/Σ_j exp(−γ_j), which is the law of the mechanism. As the best candidate is always
    taken when it is drawn, at most k trials are expected: k, where it dominates all others.

    Exponential noise: permute-and-flip, where none is drawn twice.
    """
    rows = values.reshape(-1, values.shape[-1])
    chosen = [_chosen(law, row, source) for row in rows]
    return np.array(chosen, dtype=np.int64).reshape(values.shape[:-1])


@implementation(Mechanism.sample_exactly, TopK)
def _top_k(
    law: TopK, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """The exact choice of one of those that are left, k times."""
    rows = values.reshape(-1, values.shape[-1])
    chosen = np.empty((len(rows), law.k), dtype=np.int64)
    for row, taken in zip(rows, chosen, strict=True):
        left = list(range(row.size))
        for place in range(law.k):
            taken[place] = left.pop(_chosen(law, row[left], source))
    return chosen.reshape(*values.shape[:-1], law.k)


def _chosen(law: Choice, utilities: NDArray[Any], source: ExactSource) -> int:
    """One choice, in integers."""
    epsilon, epsilon_scale = law.epsilon.as_integer_ratio()
    delta, delta_scale = law.utility_sensitivity.as_integer_ratio()
    above, below = epsilon * delta_scale, law.span * epsilon_scale * delta
    best, scale = float(utilities.max()).as_integer_ratio()
    left = list(range(utilities.size))
    while True:
        at = source.below(len(left))
        own, own_scale = float(utilities[left[at]]).as_integer_ratio()
        gap = best * own_scale - own * scale
        if decays(above * gap, below * scale * own_scale, source):
            return left[at]
        if law.law is Noise.EXPONENTIAL:
            left[at] = left[-1]
            left.pop()


@implementation(Mechanism.require_grid, SparseVector)
def _require_sparse_vector(
    law: SparseVector, sensitivity: float, source: ExactSource, entries: int = 1
) -> None:
    """Refuse what no grid holds."""
    _grid_of(law, source)


@implementation(Mechanism.sample_exactly, SparseVector)
def _sparse_vector(
    law: SparseVector, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """On a grid γ, with noise that is (1 + 3γ/Δ) times as wide.

    The proof needs no more of the noise than what a shift costs. Rounded queries move by Δ/γ + 1
    places at most, in steps of one, of which that past the median may cost as much as two
    (:class:`~dpaudit.mechanisms.pairs.LaplaceBound`); 3 steps are paid for.
    """
    step, wide = _grid_of(law, source)
    threshold = np.full((*values.shape[:-1], 1), law.threshold)
    noisy = source.laplace(wide[1], places(values, step))
    above = (noisy >= source.laplace(wide[0], places(threshold, step))).astype(bool)
    answers = None
    if law.answers_share:
        answers = on_grid(values, step, partial(source.laplace, wide[2]))
    return law.transcript(above, answers)


def _grid_of(law: SparseVector, source: ExactSource) -> tuple[float, list[float]]:
    """The step γ, and the scales of all noise in steps."""
    scales = [scale for scale in law.scales if scale]
    step = source.step(min(scales))
    return step, [widened(scale, step, law.query_sensitivity, 3) for scale in scales]


# -- reports and counts ----------------------------------------------------------------------------


@implementation(Mechanism.sample_exactly, RandomizedResponse)
def _response(
    law: RandomizedResponse, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Coins whose bias is exactly the float p, and uniform answers."""
    lies = source.events(law.p, values.shape)
    return np.where(lies, source.integers(law.k, values.shape), values)


@implementation(Mechanism.sample_exactly, BitVectorResponse)
def _vector_of_bits(
    law: BitVectorResponse, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    return _response(law.bit, values, sensitivity, source)


@implementation(Mechanism.sample_exactly, UnaryEncoding)
def _bits(
    law: UnaryEncoding, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """Coins whose biases are exactly the floats."""
    own = law.is_answer(values)
    true, other = source.events(law.keep, values.shape), source.events(law.lie, own.shape)
    return np.where(own, true[..., None], other).astype(np.int64)


@implementation(Mechanism.sample_exactly, SubsetSelection)
def _subset(
    law: SubsetSelection, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """A coin whose bias is exactly the float p, and a uniform set."""
    bits = np.zeros((values.size, law.k), dtype=np.int64)
    blind = source.events(law.p, (values.size,))
    for row, answer, uniform in zip(bits, values.ravel().tolist(), blind, strict=True):
        left = list(range(law.k))
        if not uniform:
            row[left.pop(answer)] = 1
        while row.sum() < law.members:
            row[left.pop(source.below(len(left)))] = 1
    return bits.reshape(*values.shape, law.k)


@implementation(Mechanism.sample_exactly, Shuffled)
def _shuffled(
    law: Shuffled, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    """The local mechanism's exact reports, sorted; who is asked what is drawn exactly too."""
    if law.questions is not None:
        orders = [_permutation(law.reports, source) for _ in range(len(values))]
        values = law.answers(values, np.array(orders, dtype=np.intp).reshape(-1, law.reports))
    return law.sorted(law.local.sample_exactly(values, sensitivity, source))


def _permutation(size: int, source: ExactSource) -> list[int]:
    """Uniform (Fisher and Yates)."""
    order = list(range(size))
    for place in range(size - 1, 0, -1):
        other = source.below(place + 1)
        order[place], order[other] = order[other], order[place]
    return order


@implementation(Mechanism.sample_exactly, StableHistogram)
def _counts(
    law: StableHistogram, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    draw = source.normal if isinstance(law, GaussianHistogram) else source.laplace
    return law.shown(values, as_int64(draw(law.scale, values)))


@implementation(Mechanism.sample_exactly, PrivateSelection)
def _selection(
    law: PrivateSelection, values: NDArray[Any], sensitivity: float, source: ExactSource
) -> NDArray[Any]:
    return drawn_candidates(law.runs, int(values[0]), source.below)[None]
