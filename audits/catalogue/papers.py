"""Small models of the releases of the papers on private Bayesian optimisation, right and wrong.

Each has the noise and the neighbours of one release of a paper, and data so small that the law of
the outputs is known. Whole algorithms are audited by ``audits.papers`` instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audits.catalogue.entry import (
    APPROXIMATE,
    DELTA,
    SIGMA,
    Entry,
    Floats,
    claim_of,
    curve_of,
    gaussian_epsilon,
    sampled_plan,
)
from dpaudit import ZeroOut
from dpaudit.auditing.distinguishing.scores import FixedScore, LinearScore
from dpaudit.mechanisms import BinaryTree, ContinualGaussian, GaussianPair

_PUBLIC = np.random.default_rng(20)

# Outsourced: the rows of X are projected at random; one row moves by at most 1.
ROWS = np.round(_PUBLIC.normal(size=(6, 2)) * 3, 3)
MOVED = ROWS + np.array([[0.6, 0.8], *([[0.0, 0.0]] * 5)])
PROJECTION = _PUBLIC.normal(size=(2, 3)) / math.sqrt(3)

# Federated: 20 agents with vectors of norm 1, sampled with probability 1/4 in each of 5 rounds.
AGENTS, RATE, ROUNDS = 20, 0.25, 5
VECTORS = _PUBLIC.normal(size=(AGENTS, 4))
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
FEDERATED = sampled_plan(1.0, RATE, steps=ROUNDS, relation=ZeroOut())

# Joint: a user's φφᵀ and yφ enter every prefix sum; unit φ and y in [0, 1], replaced.
STEPS = 4
TREE = ContinualGaussian.calibrated(
    epsilon=1.0, delta=DELTA, sensitivity=2.0, factorization=BinaryTree(STEPS), participations=1
)


def projected(rows: Any, size: int, rng: np.random.Generator) -> Floats:
    """X M/√r with a secret M and no noise: its columns stay in the column space of X."""
    matrix = np.asarray(rows)
    return matrix @ rng.normal(size=(size, matrix.shape[1], 3)) / math.sqrt(3)


def projected_with_noise(rows: Any, size: int, rng: np.random.Generator) -> Floats:
    """X M/√r with a public M, and Gaussian noise for its largest singular value."""
    scale = SIGMA * float(np.linalg.norm(PROJECTION, 2))
    return np.asarray(rows) @ PROJECTION + rng.normal(scale=scale, size=(size, 6, 3))


def _residuals(outputs: Floats) -> Floats:
    """Log ratio of what is left outside the column spaces of the two candidates."""
    left = [
        np.square(outputs - basis @ (basis.T @ outputs)).sum(axis=(1, 2))
        for basis in (np.linalg.qr(rows)[0] for rows in (ROWS, MOVED))
    ]
    return np.asarray(np.log(left[1] + 1e-30) - np.log(left[0] + 1e-30))


def _federated(present: Any, size: int, rng: np.random.Generator, rate: float) -> Floats:
    """Sums of the vectors of those that take part, with noise, for every round."""
    held = VECTORS * np.asarray(present, dtype=np.float64)[:, None]
    taken = rng.random((size, ROUNDS, AGENTS)) < rate
    return taken @ held + rng.normal(size=(size, ROUNDS, held.shape[1]))


def everyone(present: Any, size: int, rng: np.random.Generator) -> Floats:
    """Every agent takes part in every round, though sampling is stated."""
    return _federated(present, size, rng, 1.0)


def a_sample(present: Any, size: int, rng: np.random.Generator) -> Floats:
    """Agents take part as stated."""
    return _federated(present, size, rng, RATE)


def features(users: Any) -> Floats:
    """φφᵀ and yφ of each user, flat: shape (users, 6)."""
    rows = []
    for angle, reward in users:
        phi = np.array([math.cos(angle), math.sin(angle)])
        rows.append([*np.outer(phi, phi).ravel(), *(reward * phi)])
    return np.array(rows)


def joint_tree(users: Any, size: int, rng: np.random.Generator) -> Floats:
    """Prefix sums of the features; replacing a user moves them by √3 < 2 at most."""
    return TREE.release_many(features(users), size, rng)


USERS = [[0.1, 1.0], [0.5, 0.0], [1.0, 1.0], [1.2, 0.0]]
REPLACED = [[1.5, 1.0], *USERS[1:]]
PRESENT, ABSENT = [1] * AGENTS, [0] + [1] * (AGENTS - 1)
_CANARY = LinearScore(tuple(np.tile(VECTORS[0], ROUNDS).tolist()))
_PROJECTED = LinearScore(tuple(((ROWS - MOVED) @ PROJECTION).ravel().tolist()))
_JOINT = LinearScore(tuple((features(USERS) - features(REPLACED)).cumsum(axis=0).ravel().tolist()))

WRONG = (
    Entry("random projection without noise", False, APPROXIMATE, ROWS.tolist(), MOVED.tolist(),
          math.inf, 1_000, projected, None, FixedScore(_residuals)),
    Entry("federated Thompson sampling, everyone takes part", False, claim_of(FEDERATED), PRESENT,
          ABSENT, gaussian_epsilon(math.sqrt(ROUNDS)), 5_000, everyone, curve_of(FEDERATED),
          _CANARY),
)  # fmt: skip

RIGHT = (
    Entry("public projection with Gaussian noise", True, APPROXIMATE, ROWS.tolist(),
          MOVED.tolist(), 1.0, 10_000, projected_with_noise, GaussianPair(1 / SIGMA).delta,
          _PROJECTED, limit=True),
    Entry("joint tree of features", True, APPROXIMATE, USERS, REPLACED, 1.0, 10_000, joint_tree,
          GaussianPair(1 / SIGMA).delta, _JOINT, limit=True),
    Entry("federated Thompson sampling, sampled", True, claim_of(FEDERATED), PRESENT, ABSENT,
          claim_of(FEDERATED).epsilon, 10_000, a_sample, curve_of(FEDERATED), _CANARY, limit=True),
)  # fmt: skip
