"""Poisson samples that are cut at a size, and draws with replacement.

*Truncated.* Let K of the n − 1 others be in the sample of rate q, before it is cut at B. If K < B,
the sample is a Poisson sample. If not, a uniform subset T of B of the others, which tells nothing
of K, is what is left without the unit; with it, the unit is in with probability qB/(K + 1), in
place of one of T; one that is zeroed is in as well. So on K >= B, which has probability τ, the unit
takes a place with probability r = E[qB/(K + 1) | K >= B] = B P[Bin(n, q) > B]/(nτ), and values are
two changes apart. That K >= B counts as known. dp-accounting has the same mixture, but takes the
second part for a replacement too.

*With replacement*, m times one of n units: the unit is drawn Bin(m, 1/n) times, in place of others.
Given these, j draws move a value by j changes of a replacement. Under add-remove a replacement is
two changes, and the mixtures are those of :mod:`~dpaudit.accounting.amplification.mixtures`. Under
replace-one the two laws have the part without the unit in common, and j counts as known in the
other one (Balle, Barthe and Gaboardi 2018, Theorem 10, with the curves of groups).
"""

from __future__ import annotations

from fractions import Fraction

from dpaudit.accounting.amplification.base import Amplification, amplification, refusal
from dpaudit.accounting.amplification.fixed_size import FixedSizeAmplification
from dpaudit.accounting.amplification.known_kind import LEAST, RevealedAmplification, TimesPair
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.mixtures import binomial_tail
from dpaudit.accounting.amplification.poisson import (
    PoissonAmplification,
    ReplacedAmplification,
    is_absent,
    is_location,
    times_drawn,
)
from dpaudit.mechanisms import DominatingPair, Norm
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import (
    AddRemove,
    Invocation,
    ReplaceOne,
    TruncatedPoissonSampling,
    WithReplacementSampling,
)

_ROUNDING = 1 + 1e-9
"""Binomial tails are known to ten digits or more. All divergences are convex in the rate and 0 at
rate 0, so that a rate that is larger by a factor makes up for weights that are smaller by it."""


@amplification.register(TruncatedPoissonSampling)
def _(sampling: TruncatedPoissonSampling, use: Invocation) -> Amplification | None:
    """Of a use whose sensitivity is that of a replacement, as it is covered."""
    rate, relation, mechanism = _below_one(sampling.rate), use.relation, use.mechanism
    full, taken = truncation(sampling)
    whole = half = mechanism.pair(use.sensitivity)
    kinds: tuple[tuple[Amplification, DominatingPair], ...]
    if is_absent(use):
        if mechanism.norm is not Norm.CHANGE:
            half = mechanism.pair(use.sensitivity / 2)
        alone = isinstance(relation, AddRemove)
        few, many = PoissonAmplification(rate), FixedSizeAmplification(taken)
        kinds = (few, half), (PoissonAmplification(taken) if alone else many, whole)
    elif isinstance(relation, ReplaceOne) and sampling.contribution is not None:
        kinds = (ReplacedAmplification(rate), whole), (FixedSizeAmplification(taken), whole)
    else:
        return KnownParticipation(rate)
    weighted = ((1 - full, *kinds[0]), (full, *kinds[1]))
    return RevealedAmplification(rate, tuple(one for one in weighted if one[0] > 0))


@amplification.register(WithReplacementSampling)
def _(sampling: WithReplacementSampling, use: Invocation) -> Amplification | None:
    """Of a use whose sensitivity is that of all draws, as it is covered."""
    times = sampling.size
    weights = binomial_tail(times, 1 / sampling.population)
    if weights is None:
        raise refusal(use, "it has too many draws, so declare it without sampling.")
    absent = isinstance(use.relation, AddRemove)
    if absent and is_location(use):
        return times_drawn(times, weights)
    seldom = times_drawn(times, weights).rate
    parts: list[tuple[float, DominatingPair]] = [(1.0, use.mechanism.pair(use.sensitivity))]
    if use.mechanism.norm is not Norm.CHANGE:
        share, any_time = Fraction(use.sensitivity) / times, sum(weights[1:])
        parts = [
            (weight / any_time, use.mechanism.pair(round_up(share * number)))
            for number, weight in enumerate(weights)
            if number and weight
        ]
    scheme = FixedSizeAmplification if isinstance(use.relation, ReplaceOne) else KnownParticipation
    drawn = (PoissonAmplification if absent else scheme)(seldom)
    return RevealedAmplification(seldom, ((1.0, drawn, TimesPair(tuple(parts))),))


def truncation(sampling: TruncatedPoissonSampling) -> tuple[float, float]:
    """The probability τ that as many others are drawn as fit, and r, that the unit is in then."""
    from scipy.special import betainc

    most, units, rate = sampling.size, sampling.population, sampling.rate
    full = max(float(betainc(most, units - most, rate)), LEAST)
    more = max(float(betainc(most + 1, units - most, rate)), LEAST)
    return min(full, 1 - 1e-16), _below_one(min(most / units * more / full, rate))


def _below_one(rate: float) -> float:
    return min(rate * _ROUNDING, 1 - 2.0**-53)
