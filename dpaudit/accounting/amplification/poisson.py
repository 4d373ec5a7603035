"""Poisson sampling of units that are present or absent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.amplification.base import (
    SAFETY,
    Amplification,
    DirectedPair,
    amplification,
    log_moment,
    log_ratio,
    refusal,
)
from dpaudit.accounting.amplification.fixed_size import FixedSizeAmplification
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.mixtures import (
    FAR,
    binomial_tail,
    drawn_pairs,
    quadrature,
    replaced_pair,
    unit_of,
)
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.orders import ORDERS, REAL, WHOLE
from dpaudit.mechanisms import DominatingPair, GaussianPair, LaplacePair, Norm
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float, up
from dpaudit.plan import (
    AddRemove,
    Invocation,
    MixtureSampling,
    PoissonSampling,
    TruncatedPoissonSampling,
    ZeroOut,
)

_SMALL = tuple(range(2, 17))
_LOCATIONS = (GaussianPair, LaplacePair)


@dataclass(frozen=True)
class PoissonAmplification(Amplification):
    """Every unit takes part independently, and one that is left out is as one that is not drawn.

    So it is under add-remove, and under zero-out where a zeroed unit is an absent one, as in a sum.
    """

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """Zhu, Dong and Wang 2022, Theorem 11."""
        return RemovedPair(pair, self.rate), AddedPair(pair, self.rate)

    def log_moments(self, pair: DominatingPair) -> Floats:
        """By quadrature at real orders, by the binomial sum at integers, else infinite."""
        moments = np.full(ORDERS.size, np.inf)
        whole = poisson_moments_at_integers(pair, self.rate, _SMALL + WHOLE)
        moments[REAL.size : REAL.size + len(WHOLE)] = whole[len(_SMALL) :]
        real = poisson_moments(pair, self.rate, REAL)
        if real is None:
            # α ↦ ln E[r^α] is convex and 0 at 1 (Wang, Balle and Kasiviswanathan 2019, Cor. 10).
            known = np.append(0.0, whole[: len(_SMALL)])
            real = np.interp(REAL, np.arange(1.0, len(known) + 1), known)
        moments[: REAL.size] = real
        return moments

    def integer_moments(self, pair: DominatingPair, orders: tuple[int, ...]) -> Floats:
        """The binomial sum."""
        return poisson_moments_at_integers(pair, self.rate, orders)


@dataclass(frozen=True)
class SharesAmplification(Amplification):
    """A unit adds a random share of the whole shift, as if it were drawn several times.

    For Gaussian and Laplace noise.

    Attributes:
        shares: of the whole shift, from 0 on.
        weights: of the shares, rounded to a law that is stochastically larger.
    """

    shares: tuple[float, ...]
    weights: tuple[float, ...]

    def epsilon(self, epsilon: Fraction | float) -> Fraction | float:
        """Ln Σ w e^(sε), rounded up: the largest loss of Laplace noise."""
        whole = as_float(epsilon)
        if whole in (0.0, math.inf):
            return epsilon
        return min(epsilon, float(self._mean([whole * n for n in self.shares])))

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """Of :mod:`~dpaudit.accounting.amplification.mixtures`.

        Beyond all losses of interest any share counts as the whole.
        """
        if not unit_of(pair) < FAR:
            return PoissonAmplification(self.rate).directed(pair)
        return drawn_pairs(pair, list(zip(self.shares, self.weights, strict=True)))

    def log_moments(self, pair: DominatingPair) -> Floats:
        """By joint convexity over the share, as if that were known."""
        if isinstance(pair, LaplacePair):
            parts = [LaplacePair(pair.ratio * Fraction(n)).renyi(ORDERS) for n in self.shares]
        else:
            unit = unit_of(pair)
            shifts = [unit * n if n else 0.0 for n in self.shares]
            parts = [GaussianPair(shift).renyi(ORDERS) for shift in shifts]
        return self._mean([(ORDERS - 1) * part for part in parts])

    def _mean(self, logs: Sequence[Floats | float]) -> Floats:
        """Ln Σ w e^logs, rounded up."""
        with np.errstate(divide="ignore"):
            terms = np.log(self.weights) + np.array(logs).T
        total: Floats = np.logaddexp.reduce(terms.T, axis=0)
        return np.maximum(total, 0.0) * (1 + SAFETY) + 1e-15


@dataclass(frozen=True)
class ReplacedAmplification(FixedSizeAmplification):
    """Poisson sampling of replaced units, of which one is within half a replacement of none.

    Of any noise the two mixtures have the part without the unit in common, so that they cost what
    fixed-size samples do. Gaussian and Laplace noise cost less.
    """

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """Of :func:`~.mixtures.replaced_pair` where it is known."""
        if not (isinstance(pair, _LOCATIONS) and unit_of(pair) < FAR):
            return super().directed(pair)
        replaced = replaced_pair(pair, self.rate)
        return replaced, replaced


@amplification.register(PoissonSampling)
def _(sampling: PoissonSampling, invocation: Invocation) -> Amplification | None:
    if sampling.rate == 1:
        return None
    relation = invocation.relation
    if sampling.rows:
        weights = binomial_tail(sampling.rows, sampling.rate)
        assert weights is not None  # as :func:`cover` has seen
        return times_drawn(sampling.rows, weights)
    if is_absent(invocation):
        return PoissonAmplification(sampling.rate)
    if part_bound(sampling, invocation) is not None:
        return ReplacedAmplification(sampling.rate)
    if relation.replaces or isinstance(relation, ZeroOut):
        # The sensitivity does not bound the change when a unit drops out of the sample.
        return KnownParticipation(sampling.rate)
    raise refusal(invocation, "no dominating pair is known, so declare it without sampling.")


@amplification.register(MixtureSampling)
def _(sampling: MixtureSampling, invocation: Invocation) -> Amplification:
    """Of noise on sums, as :func:`cover` has seen; from the largest share on, the dearest one."""
    left, found = Fraction(1), []
    for share, rate in sorted(zip(sampling.shares, sampling.rates, strict=True), reverse=True):
        weight = min(left, Fraction(rate))
        left -= weight
        found.append((share, float(weight)))
    shares, weights = zip((0.0, float(left)), *found[::-1], strict=True)
    return SharesAmplification(_below_one(1 - weights[0]), shares, weights)


def times_drawn(times: int, weights: tuple[float, ...]) -> SharesAmplification:
    """The amplification of weights of 0, 1, … of so many times, each an equal part of the shift."""
    shares = tuple(up(number / times) for number in range(len(weights)))
    return SharesAmplification(_below_one(1 - weights[0]), shares, weights)


def _below_one(rate: float) -> float:
    return min(max(rate, 1e-300), 1 - 2.0**-53)


def is_absent(use: Invocation) -> bool:
    """Tell whether the unit takes no part in one neighbour, as if it were not drawn."""
    zeroed = isinstance(use.relation, ZeroOut) and use.mechanism.zeroed_is_absent
    return zeroed or isinstance(use.relation, AddRemove)


def is_location(use: Invocation) -> bool:
    """Tell whether noise of a monotone likelihood ratio is added to a sum of parts."""
    if use.mechanism.norm is Norm.CHANGE:
        return False
    return isinstance(use.mechanism.pair(use.sensitivity), _LOCATIONS)


def part_bound(
    sampling: PoissonSampling | TruncatedPoissonSampling, use: Invocation
) -> float | None:
    """The largest norm of what one unit adds, where units are replaced and it is declared."""
    if not use.relation.replaces or use.mechanism.norm is Norm.CHANGE:
        return None
    if sampling.contribution is not None or use.contribution is None:
        return sampling.contribution
    return use.contribution.bound


def poisson_moments(pair: DominatingPair, rate: float, orders: Floats) -> Floats | None:
    """Ln E_Q[r^α] at real orders up to about 16; None where there is no quadrature for the pair.

    The mixture against Q is the worse of the two directions for a symmetric pair (Mironov, Talwar
    and Zhang 2019, Theorem 5).
    """
    nodes = quadrature(pair, float(orders[-1]))
    if nodes is None:
        return None
    losses, log_q = nodes
    return log_moment(orders, log_ratio(losses, rate), log_q)


def poisson_moments_at_integers(
    pair: DominatingPair, rate: float, orders: tuple[int, ...]
) -> Floats:
    """Ln E_Q[r^α] by the binomial sum over the base pair's own moments.

    Mironov, Talwar and Zhang 2019, Section 3.3: Σ_j C(α, j)(1 − q)^(α−j) q^j e^((j−1)D_j). As the
    weights sum to 1 and the moments of j = 0 and 1 are 1, it is 1 + Σ_{j≥2} weight (moment − 1).
    """
    alpha, j, log_binomial, starts = _binomials(orders)
    base = np.arange(2, max(orders) + 1, dtype=np.float64)
    curve = pair.renyi(base)
    kappa = (base - 1) * curve
    log_gain = np.where(kappa > 30, kappa, np.log(np.expm1(np.minimum(kappa, 31.0)) + 1e-320))
    log_weight = log_binomial + (alpha - j) * math.log1p(-rate) + j * math.log(rate)
    exponents = log_weight + log_gain[j - 2]
    top = np.maximum.reduceat(exponents, starts)
    spread = np.repeat(top, np.diff(np.append(starts, exponents.size)))
    with np.errstate(invalid="ignore"):
        total = top + np.log(np.add.reduceat(np.exp(exponents - spread), starts))
    total = np.where(np.isfinite(top), total, top)
    moments: Floats = np.logaddexp(0.0, total) * (1 + SAFETY)
    return moments


@lru_cache(maxsize=8)
def _binomials(
    orders: tuple[int, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    from scipy.special import gammaln

    alpha = np.concatenate([np.full(order - 1, order) for order in orders])
    j = np.concatenate([np.arange(2, order + 1) for order in orders])
    starts = np.cumsum([0, *(order - 1 for order in orders[:-1])])
    return alpha, j, gammaln(alpha + 1) - gammaln(j + 1) - gammaln(alpha - j + 1), starts
