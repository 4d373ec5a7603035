"""The neighbours of each mechanism that are most likely told apart, where its norm does not say.

``Mechanism.worst_pairs`` runs what is here for a class; audits and the tests of foreign laws begin
with these pairs. Each must be at distance 1, as its mechanism measures it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.base.by_class import implementation
from dpaudit.mechanisms.additive import VectorNoise
from dpaudit.mechanisms.base import Mechanism
from dpaudit.mechanisms.bit_vectors import BitVectorResponse
from dpaudit.mechanisms.choice import Choice, SparseVector, TopK
from dpaudit.mechanisms.integers import StableHistogram
from dpaudit.mechanisms.local_randomizers import Encoding, RandomizedResponse, Shuffled

Pairs = tuple[tuple[Any, Any, str], ...]


@implementation(Mechanism.worst_pairs, Choice)
def _choice(law: Choice) -> Pairs:
    """Two candidates whose utilities change places, or one that rises."""
    high = law.utility_sensitivity
    if law.span == 1:
        return (([0.0, 0.0], [0.0, high], "one of two equal candidates that rises"),)
    return (([high, 0.0], [0.0, high], "two candidates that change places"),)


@implementation(Mechanism.worst_pairs, TopK)
def _top_k(law: TopK) -> Pairs:
    """Twice as many candidates, of which half rise."""
    low, high = [0.0] * law.k, [law.utility_sensitivity] * law.k
    before = low if law.monotonic else high
    return ((before + low, low + high, "candidates that rise"),)


@implementation(Mechanism.worst_pairs, SparseVector)
def _sparse_vector(law: SparseVector) -> Pairs:
    """Queries at the threshold that move towards those above it, which move down."""
    low, high = law.threshold, law.threshold + law.query_sensitivity
    few = min(law.cutoff, 4)
    after = high if law.monotonic else low
    pair = ([low] * 4 + [high] * few, [high] * 4 + [after] * few)
    return ((*pair, "queries around the threshold"),)


@implementation(Mechanism.worst_pairs, RandomizedResponse)
def _response(law: RandomizedResponse) -> Pairs:
    """Two answers, and those at both ends."""
    return (0, 1, "two answers"), (0, law.k - 1, "first and last")


@implementation(Mechanism.worst_pairs, Encoding)
def _report(law: Encoding) -> Pairs:
    """Two answers; all pairs are alike."""
    return ((0, 1, "two answers"),)


@implementation(Mechanism.worst_pairs, BitVectorResponse)
def _bits(law: BitVectorResponse) -> Pairs:
    """Ones at the first places, and at the next ones."""
    ahead, others = min(law.ones, law.bits - law.ones), law.bits - law.ones
    after = [0] * law.ones + [1] * ahead + [0] * (others - ahead)
    return (([1] * law.ones + [0] * others, after, "ones at other places"),)


@implementation(Mechanism.worst_pairs, Shuffled)
def _shuffled(law: Shuffled) -> Pairs:
    """One user's answer among equal ones."""
    shape = (law.reports,) if law.questions is None else (law.reports, law.questions)
    zeros, ones = np.zeros(shape, dtype=np.int64).tolist(), np.ones(shape, dtype=np.int64).tolist()
    return ((zeros, [ones[0], *zeros[1:]], "one answer among equal ones"),)


@implementation(Mechanism.worst_pairs, StableHistogram)
def _counts(law: StableHistogram) -> Pairs:
    """Keys that nobody else has, and keys that are told more often than not."""
    keys, many = min(law.key_sensitivity, 100), int(law.threshold)
    most = getattr(law, "count_sensitivity", 1)
    new = [most] * keys, [0] * keys, "keys that nobody else has"
    return new, ([many] * keys, [many - most] * keys, "counts at the threshold")


@implementation(Mechanism.worst_pairs, VectorNoise)
def _vector(law: VectorNoise) -> Pairs:
    """Two opposite corners of the box."""
    corner = list(law.sensitivities)
    return (([0.0] * len(corner), corner, "all coordinates"),) if any(corner) else ()
