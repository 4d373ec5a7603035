"""Bets against a privacy claim: the building blocks of :mod:`.eprocess`.

Scores are cut into ``B`` bins by ``B - 1`` edges. A bet has a gain ``u`` for the bin of ``x``'s
score and a gain ``v`` for the bin of ``x'``'s score, and multiplies wealth by
``1 + u[bin(x)] + v[bin(x')]``. For an event ``S`` (a union of bins) and a stake ``lam``::

    forward   u = lam (1_S - delta),   v = -lam exp(epsilon) 1_S
    backward  u = -lam exp(epsilon) 1_S,   v = lam (1_S - delta)

so that the expected factor is ``1 + lam (p - exp(epsilon) q - delta) <= 1`` if the claim
(epsilon, delta) holds: the bet is fair or worse under the claim. It stays non-negative as long as
``lam <= 1 / (exp(epsilon) + delta)``. A *double* bet holds an upper tail in one direction together
with a lower tail in the other, which adds up their growth instead of averaging their wealth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.types import as_scores
from dpaudit.mechanisms.pairs import Floats

# Tail probabilities of the pooled pilot at which events are cut; rarer ones cannot be seen early.
LEVELS = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.37, 0.5)
# Stakes as fractions of the largest admissible one; below 1, so that no bet can lose everything.
STAKES = (0.03, 0.1, 0.25, 0.6, 0.95)
# Their prior mass: a gross violation grows fast enough to make up for a small share.
STAKE_MASS = (0.15, 0.4, 0.3, 0.1, 0.05)
# Prior mass of the kinds of bet.
TAIL_MASS, DOUBLE_MASS, BIN_MASS = 0.45, 0.45, 0.1


@dataclass(frozen=True)
class NullPoint:
    """One point of the claimed privacy curve: ``p <= exp(epsilon) q + delta`` in both directions.

    Attributes:
        epsilon: the point's epsilon, at least 0.
        delta: the point's delta.
        weight: prior mass of the bets against this point.
    """

    epsilon: float
    delta: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Bets:
    """A family of ``K`` bets over ``B`` bins.

    Attributes:
        log_factors: shape ``(K, B, B)``; log of the factor by the bins of x and x'.
        log_prior: shape ``(K,)``; log of each bet's share of the initial wealth, summing to 1.
    """

    log_factors: Floats
    log_prior: Floats


def quantile_edges(scores: ArrayLike) -> Floats:
    """Edges at both tails' quantiles of the pooled scores, with every atom cut out.

    A value that makes up more than 5 % of the scores is an atom and gets an edge on either side,
    so that it is a bin of its own. An edge at ``-inf`` is dropped, as nothing lies below it.

    Args:
        scores: pooled scores of both sides, shape ``(n,)``.

    Returns:
        Increasing edges; bin ``i`` holds ``edges[i-1] <= score < edges[i]``.
    """
    values = as_scores(scores=scores)
    levels = sorted({*LEVELS, *(1 - level for level in LEVELS)})
    ordered = np.sort(values)
    places = np.ceil(np.array(levels) * values.size).astype(int)
    cuts = ordered[np.clip(places, 0, values.size - 1)]
    atoms, counts = np.unique(values, return_counts=True)
    atoms = atoms[(counts > 0.05 * values.size) & (counts > 1)]
    edges = np.unique(np.concatenate([cuts, atoms, np.nextafter(atoms, np.inf)]))
    return edges[edges > -np.inf]


def _unit_gains(masks: Floats, point: NullPoint, forward: bool) -> tuple[Floats, Floats]:
    """The gains (u, v) of unit stakes on each event (row) of ``masks``."""
    gain, loss = masks - point.delta, -math.exp(point.epsilon) * masks
    return (gain, loss) if forward else (loss, gain)


def _bet_factors(u: Floats, v: Floats, mass: float) -> list[tuple[float, Floats]]:
    """For each stake the prior mass and the factors ``(rows, B, B)`` of bets on unit gains."""
    gains = u[:, :, None] + v[:, None, :]
    limit = -1.0 / gains.min(axis=(1, 2), keepdims=True)
    return [
        (mass * share, 1.0 + stake * limit * gains)
        for stake, share in zip(STAKES, STAKE_MASS, strict=True)
    ]


def _bets_against(point: NullPoint, bins: int) -> list[tuple[float, Floats]]:
    """Groups of (prior mass, factors) of the bets against one point; the masses add up to 1."""
    below = np.tri(bins - 1, bins)  # row j: the bins up to j, that is, score < edge j
    tails = np.concatenate([below, 1.0 - below])
    groups: list[tuple[float, Floats]] = []
    for forward in (True, False):
        groups += _bet_factors(*_unit_gains(tails, point, forward), TAIL_MASS / 2)
        groups += _bet_factors(*_unit_gains(np.eye(bins), point, forward), BIN_MASS / 2)
        upper = _unit_gains(1.0 - below[::-1], point, forward)
        lower = _unit_gains(below, point, not forward)
        groups += _bet_factors(upper[0] + lower[0], upper[1] + lower[1], DOUBLE_MASS / 2)
    return groups


def tail_bets(points: list[NullPoint], bins: int) -> Bets:
    """Bets on both tails, on single bins and on pairs of tails, against every point.

    Args:
        points: points of the claimed curve, with their prior weights (any positive scale).
        bins: the number of bins, at least 2.
    """
    total = sum(point.weight for point in points)
    factors, priors = [], []
    for point in points:
        for mass, group in _bets_against(point, bins):
            factors.append(group)
            share = mass * point.weight / total / len(group)
            priors.append(np.full(len(group), math.log(share)))
    return Bets(np.log(np.concatenate(factors)), np.concatenate(priors))
