"""Continual release: trees, and what is forgotten in them.

Leaves are values of single steps, and every node of the tree is told with noise. Wrong rows forget
that one leaf lies under several nodes, or draw the noise of all nodes once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from audits.catalogue.entry import (
    APPROXIMATE,
    DELTA,
    PURE,
    SIGMA,
    Entry,
    Floats,
    Release,
    gaussian_epsilon,
)
from dpaudit import Mechanism
from dpaudit.auditing.distinguishing.scores import FixedScore, LinearScore, WhiteBox
from dpaudit.mechanisms import (
    BinaryTree,
    ContinualGaussian,
    ContinualLaplace,
    GaussianPair,
    LaplacePair,
    OwnMatrix,
    OwnToeplitz,
    SquareRootToeplitz,
)

LEAVES, LEVELS = 8, 4
STREAM, OTHER = [0.0] * LEAVES, [1.0] + [0.0] * (LEAVES - 1)


def node_sums(leaves: Any) -> Floats:
    """Sums of all nodes of the complete tree, the root first (as in a heap)."""
    level, levels = np.asarray(leaves, dtype=np.float64), []
    while True:
        levels.append(level)
        if level.size == 1:
            return np.concatenate(levels[::-1])
        level = level[::2] + level[1::2]


CANARY = LinearScore(tuple(node_sums(OTHER).tolist()))
"""The sum of the nodes that hold the changed leaf: the best weights for equal noise in all."""


def noisy_tree(noise: str, scale: float, *, shared: bool = False) -> Release:
    """All nodes, each with noise of this scale, or all with the same noise."""

    def release(leaves: Any, size: int, rng: np.random.Generator) -> Floats:
        sums = node_sums(leaves)
        shape = (size, 1) if shared else (size, sums.size)
        return sums + getattr(rng, noise)(0.0, scale, size=shape)

    return release


def _difference(outputs: Floats) -> Floats:
    """The root less its right child: without noise, if both have the same."""
    return np.asarray(outputs[:, 2] - outputs[:, 0])


def _laplace_canary(outputs: Floats) -> Floats:
    """Log ratio of the nodes over the canary's leaf, each with Lap(1)."""
    held = outputs[:, [0, 1, 3, 7]]
    return np.asarray((np.abs(held - 1) - np.abs(held)).sum(axis=1))


def _right(name: str, mechanism: Mechanism, pure: bool, other: Any = OTHER) -> Entry:
    claim = PURE if pure else APPROXIMATE
    pair = mechanism.pair(1.0)
    return Entry(name, True, claim, STREAM, other, 1.0, 10_000, mechanism.release_many, pair.delta,
                 WhiteBox(mechanism, STREAM, other))  # fmt: skip


def own(participations: int, sigma: float | None = None) -> ContinualGaussian:
    """A matrix of one's own with three diagonals, its noise for so many participations."""
    rows = tuple(((0.0,) * LEAVES + (0.25, 0.5, 1.0))[-n:] for n in range(1, LEAVES + 1))
    made = ContinualGaussian.calibrated(
        epsilon=1.0, delta=DELTA, sensitivity=1.0, factorization=OwnMatrix(rows),
        participations=participations, min_separation=4)  # fmt: skip
    return made if sigma is None else replace(made, sigma=sigma)


TWICE = [1.0] + [0.0] * 3 + [1.0] + [0.0] * (LEAVES - 5)
ONCE = own(1).sigma

WRONG = (
    Entry("matrix of one's own, noise of one participation for two", False, APPROXIMATE, STREAM,
          TWICE, gaussian_epsilon(math.sqrt(2) / SIGMA), 20_000, own(2, ONCE).release_many,
          GaussianPair(1 / SIGMA).delta, WhiteBox(own(2, ONCE), STREAM, TWICE)),
    Entry("tree that ignores its levels, Laplace", False, PURE, STREAM, OTHER, float(LEVELS), 3_000,
          noisy_tree("laplace", 1.0), LaplacePair(Fraction(1)).delta, FixedScore(_laplace_canary)),
    Entry("tree that ignores its levels, Gaussian", False, APPROXIMATE, STREAM, OTHER,
          gaussian_epsilon(math.sqrt(LEVELS) / SIGMA), 10_000, noisy_tree("normal", SIGMA),
          GaussianPair(1 / SIGMA).delta, CANARY),
    Entry("tree with the same noise in every node", False, PURE, STREAM, OTHER, math.inf, 1_000,
          noisy_tree("laplace", float(LEVELS), shared=True), None, FixedScore(_difference)),
)  # fmt: skip

RIGHT = (
    _right("tree aggregation, Laplace", ContinualLaplace.calibrated(
        epsilon=1.0, sensitivity=1.0, factorization=BinaryTree(LEAVES), participations=1), True),
    _right("tree aggregation, Gaussian", ContinualGaussian.calibrated(
        epsilon=1.0, delta=DELTA, sensitivity=1.0, factorization=BinaryTree(LEAVES),
        participations=1), False),
    _right("square-root factorisation", ContinualGaussian.calibrated(
        epsilon=1.0, delta=DELTA, sensitivity=1.0, factorization=SquareRootToeplitz(LEAVES),
        participations=1), False),
    _right("matrix of one's own, two participations", own(2), False, TWICE),
    _right("Toeplitz matrix with an inverse of one's own", ContinualGaussian.calibrated(
        epsilon=1.0, delta=DELTA, sensitivity=1.0, participations=1,
        factorization=OwnToeplitz(LEAVES, (1.0, -0.5, -0.25), inverse=True)), False),
)  # fmt: skip
