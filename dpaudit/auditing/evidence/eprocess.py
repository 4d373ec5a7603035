"""E-processes: tests of a privacy claim by betting, which may be stopped at any time.

*Bets.* Scores are cut into ``B`` bins by ``B - 1`` edges. A bet has a gain ``u`` for the bin of
``x``'s score and a gain ``v`` for the bin of ``x'``'s score, and multiplies wealth by ``1 +
u[bin(x)] + v[bin(x')]``. For an event ``S`` (a union of bins) and a stake ``lam``::

    forward   u = lam (1_S - delta),   v = -lam exp(epsilon) 1_S
    backward  u = -lam exp(epsilon) 1_S,   v = lam (1_S - delta)

so that the expected factor is ``1 + lam (p - exp(epsilon) q - delta) <= 1`` if the claim
(epsilon, delta) holds: the bet is fair or worse under the claim. It stays non-negative as long as
``lam <= 1 / (exp(epsilon) + delta)``. A *double* bet holds an upper tail in one direction together
with a lower tail in the other, which adds up their growth instead of averaging their wealth.

The running wealth of a family of bets is an e-process.

**Theorem** (Ville 1939; Shafer, Shen, Vereshchagin and Vovk 2011). Let ``E_0 = 1`` and let ``E_t``
be a non-negative process with ``E[E_t | past] <= E_{t-1}`` under every distribution of the null
hypothesis. Then ``P(sup_t E_t >= 1 / alpha) <= alpha``.

*Why it applies.* The null is that for every epsilon and every event S, in both directions,
``P(x in S) <= exp(epsilon) P(x' in S) + delta(epsilon)``. Every bet multiplies its wealth by a
non-negative factor whose mean, given the past, is at most 1 under the null, whatever the dependence
between the two runs of a pair; so its wealth is a supermartingale. An average of supermartingales
with fixed weights is one too, which pays for looking at many events, stakes, values of epsilon and
both directions. The edges come from a pilot of the first pairs, on which
nothing is staked, and so do the weights: each bet's prior mass times what it would have won there,
so that both are known before the first bet. *Proof of Ville's inequality*: stop
at the first ``t`` with ``E_t >= 1 / alpha``; by optional stopping and Markov's inequality
``P(stopped) / alpha <= E[E_stopped] <= 1``. Looking only at the ends of batches can only miss
crossings, never add any.

The pairs must be independent of each other; the two runs within a pair need not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.events import as_scores, confidence_failure, deltas_of
from dpaudit.base.errors import InputError
from dpaudit.base.validate import probability, real_array
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


PILOT_PAIRS = 64


def _gains(family: Bets, counts: Floats) -> Floats:
    """The log wealth that each bet wins on pairs with the given cell counts."""
    factors = family.log_factors.reshape(family.log_prior.size, -1)
    won: Floats = factors @ counts
    return won


def _log_sum(values: Floats) -> float:
    """``log sum exp`` of the values."""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


class Wealth:
    """The wealth of several families of bets on one stream of pairs of scores.

    Args:
        nulls: for each family, the points of the claim that it bets against.

    Attributes:
        edges: the thresholds: quantiles of a pilot, the first ``PILOT_PAIRS`` pairs.
        pairs: pairs seen, the pilot included.
        log_wealth: log e-value of each family, shape ``(families,)``.
        log_peak: its running maximum, at least 0.
    """

    def __init__(self, nulls: Sequence[list[NullPoint]]) -> None:
        self._nulls = nulls
        self._pilot = [np.empty(0), np.empty(0)]
        self.edges: Floats | None = None
        self.pairs = 0
        self.log_wealth = np.zeros(len(nulls))
        self.log_peak = np.zeros(len(nulls))
        self._families: list[Bets] = []
        self._log_bets: list[Floats] = []

    def _weights(self, family: Bets) -> Floats:
        """Log initial weights: the prior times the wealth on the pilot, summing to 1."""
        gains = _gains(family, self._counts(*self._pilot))
        log_weights = family.log_prior + gains
        return log_weights - _log_sum(log_weights)

    def _counts(self, first: Floats, second: Floats) -> Floats:
        """Tell how many pairs fell into each of the ``B * B`` cells."""
        assert self.edges is not None
        bins = self.edges.size + 1
        cells = np.searchsorted(self.edges, first, side="right") * bins
        cells += np.searchsorted(self.edges, second, side="right")
        return np.bincount(cells, minlength=bins * bins).astype(np.float64)

    def update(self, scores_x: ArrayLike, scores_x_prime: ArrayLike) -> None:
        """Add pairs of scores, shape ``(n,)`` each, and bet on those that the pilot leaves.

        Raises:
            InputError: if a score is NaN or the lengths differ.
        """
        first, second = as_scores(scores_x=scores_x), as_scores(scores_x_prime=scores_x_prime)
        if first.size != second.size:
            raise InputError(
                f"scores_x has {first.size} runs and scores_x_prime has {second.size}; "
                "an e-process takes pairs, so both must have the same number."
            )
        start = self._fill_pilot(first, second)
        self.pairs += start
        while start < first.size:
            # Looking often is free under Ville's inequality; here, at every sixteenth of the run.
            end = min(first.size, start + max(32, self.pairs // 16))
            self._bet(first[start:end], second[start:end])
            self.pairs += end - start
            start = end

    def _fill_pilot(self, first: Floats, second: Floats) -> int:
        """Take what the pilot still lacks, and return how many pairs that were."""
        if self.edges is not None:
            return 0
        wanted = PILOT_PAIRS - self._pilot[0].size
        taken = [first[:wanted], second[:wanted]]
        self._pilot = [np.concatenate(both) for both in zip(self._pilot, taken, strict=True)]
        if self._pilot[0].size == PILOT_PAIRS:
            self.edges = quantile_edges(np.concatenate(self._pilot))
            self._families = [tail_bets(points, self.edges.size + 1) for points in self._nulls]
            self._log_bets = [self._weights(family) for family in self._families]
        return taken[0].size

    def _bet(self, first: Floats, second: Floats) -> None:
        counts = self._counts(first, second)
        for index, family in enumerate(self._families):
            self._log_bets[index] += _gains(family, counts)
            self.log_wealth[index] = _log_sum(self._log_bets[index])
        self.log_peak = np.maximum(self.log_peak, self.log_wealth)


Curve = Callable[[Floats], ArrayLike]

_LARGEST_EPSILON = 64.0
MOST_CORNERS = 12


def _curve_end(curve: Curve) -> float:
    """The smallest epsilon (to 1e-9) at which the curve is within 1e-6 of its end."""
    last = float(deltas_of(curve, np.array([_LARGEST_EPSILON]))[0]) + 1e-6
    low, high = 0.0, 1.0
    while deltas_of(curve, np.array([high]))[0] > last and high < _LARGEST_EPSILON:
        low, high = high, 2 * high
    if deltas_of(curve, np.array([0.0]))[0] <= last:
        return 0.0
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        if deltas_of(curve, np.array([middle]))[0] > last:
            low = middle
        else:
            high = middle
    return high


def curve_points(curve: Curve, epsilons: ArrayLike | None = None) -> list[NullPoint]:
    """Points of a claimed curve to bet against, the first with half of the wealth.

    Unless ``epsilons`` are given they run from 0, where most of a too-small noise shows, to the
    first value at which delta is practically 0 (for a pure claim: its epsilon), with the
    ``corners`` of a curve that has some.

    Args:
        curve: delta as a function of an array of epsilons of at least 0.
        epsilons: the values to use.

    Raises:
        InputError: if a delta or an epsilon is negative or not finite, or a shape is wrong.
    """
    if epsilons is None:
        corners = list(getattr(curve, "corners", ()))
        corners = corners[:: -(-len(corners) // MOST_CORNERS)] if corners else []
        values = np.unique([*np.linspace(0.0, _curve_end(curve), 6), *corners])
    else:
        values = np.unique(real_array(epsilons=epsilons))
        if values.size == 0 or values[0] < 0:
            raise InputError("epsilons is empty or has a negative value; all must be at least 0.")
    weights = [1.0, *([1.0 / max(1, values.size - 1)] * (values.size - 1))]
    return [
        NullPoint(float(epsilon), float(delta), weight)
        for epsilon, delta, weight in zip(values, deltas_of(curve, values), weights, strict=True)
    ]


class CurveEProcess(Wealth):
    """Anytime-valid test of a whole claimed privacy curve on one pair of neighbours.

    The null hypothesis is the curve at *every* epsilon and in both directions. Refutation at level
    ``alpha`` means that an e-value has reached ``1 / alpha``; a mechanism that satisfies its claim
    is refuted with probability at most ``alpha``, however often one looks and whenever one stops.

    Args:
        curve: claimed delta for an array of epsilons (rounded up).

    Raises:
        InputError: if the curve is out of range.
    """

    def __init__(self, curve: Curve) -> None:
        super().__init__([curve_points(curve)])

    @property
    def e_value(self) -> float:
        """The present e-value (``inf`` beyond the range of floats)."""
        return float(np.exp(np.minimum(self.log_wealth[0], 709.0)))


class EpsilonEProcess(Wealth):
    """Anytime-valid lower bound on epsilon at a given delta.

    One e-process per null (epsilon_j, delta) on a grid. The bound is the largest grid value up to
    which *every* null has been refuted: if it exceeded the true epsilon, the first grid value at or
    above the truth, whose null is true, would have been refuted, which happens with probability at
    most ``1 - confidence``. So one error rate pays for the whole grid.

    Args:
        delta: the delta in [0, 1) at which epsilon is bounded.
        epsilons: grid of null values.

    Raises:
        InputError: if delta or the epsilons are out of range.
    """

    def __init__(self, delta: float, epsilons: ArrayLike) -> None:
        probability(delta=delta)
        self._epsilons = np.unique(real_array(epsilons=epsilons))
        constant = lambda e: np.full_like(e, delta)  # noqa: E731
        super().__init__([curve_points(constant, [each]) for each in self._epsilons])

    def lower_bound(self, confidence: float) -> float:
        """The bound so far; valid at any stopping time.

        Raises:
            InputError: if ``confidence`` is not in (0, 1).
        """
        threshold = -math.log(confidence_failure(confidence))
        refuted = np.logical_and.accumulate(self.log_peak >= threshold)
        return float(self._epsilons[refuted].max(initial=0.0))
