"""Poisson sampling of units that are present or absent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.amplification.base import Amplification, amplification, refusal
from dpaudit.accounting.amplification.directed import DirectedPair
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.moments import SAFETY, log_moment, log_ratio
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.amplification.quadrature import quadrature
from dpaudit.accounting.orders import ORDERS, REAL, WHOLE
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import AddRemove, Invocation, PoissonSampling, ZeroOut

_SMALL = tuple(range(2, 17))


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


@amplification.register(PoissonSampling)
def _(sampling: PoissonSampling, invocation: Invocation) -> Amplification | None:
    if sampling.rate == 1:
        return None
    relation, mechanism = invocation.relation, invocation.mechanism
    absent = isinstance(relation, ZeroOut) and mechanism.zeroed_is_absent
    if absent or isinstance(relation, AddRemove):
        return PoissonAmplification(sampling.rate)
    if relation.replaces or isinstance(relation, ZeroOut):
        # The sensitivity does not bound the change when a unit drops out of the sample.
        return KnownParticipation(sampling.rate)
    raise refusal(invocation, "no dominating pair is known, so declare it without sampling.")


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
