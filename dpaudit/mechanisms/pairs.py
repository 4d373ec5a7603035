"""Dominating pairs: the two distributions that stand for the worst neighbours of a mechanism.

A pair (P, Q) dominates a mechanism M if the hockey-stick divergence of P and Q is at least that of
M(x) and M(x') for all neighbours x, x' and every order (Zhu, Dong and Wang 2022, Definition 7).
Everything an accountant needs follows from the law of the privacy loss L = ln dP/dQ under P and Q.

The pairs here are *symmetric*: the loss under P has the law of minus the loss under Q, so that both
directions of the relation cost the same. Sampling breaks the symmetry; it is applied to a pair by
the accounting layer.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "DominatingPair",
    "FinitePair",
    "Floats",
    "GaussianPair",
    "LaplacePair",
    "approximate_pair",
]

Floats = NDArray[np.float64]

_NORMAL = 1e-290
"""Masses below may have lost precision."""


class DominatingPair(ABC):
    """A symmetric pair (P, Q), seen through its privacy loss L = ln dP/dQ.

    All methods take and return arrays of any shape; losses and orders may be any real numbers.
    """

    @abstractmethod
    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L > loss], Q[L > loss]), accurate relative to themselves in the upper tail."""

    @abstractmethod
    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L <= loss], Q[L <= loss]), accurate relative to themselves in the lower tail."""

    @abstractmethod
    def renyi(self, orders: ArrayLike) -> Floats:
        """Rényi divergence of P from Q, for orders above 1."""

    @property
    @abstractmethod
    def pure_epsilon(self) -> Fraction | float:
        """The largest loss: exact where it is rational, rounded up where not, or infinity."""

    @property
    def gaussian_mu(self) -> float | None:
        """The μ of Gaussian differential privacy where the pair is N(μ, 1) against N(0, 1)."""
        return None

    @property
    def zcdp_rho(self) -> float:
        """The ρ of zero-concentrated differential privacy, or infinity.

        A pure ε gives ρ = ε²/2 (Bun and Steinke 2016, Proposition 1.4).
        """
        return concentration(self.pure_epsilon, 0.5)

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Hockey-stick divergence P[L > ε] − e^ε Q[L > ε], for any real ε."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        p, q = self.above(epsilon)
        # A subnormal q may be above the truth by half, so beyond e^700 it counts as nothing.
        held = q > np.where(epsilon > 700, _NORMAL, 0.0)
        exponent = np.where(held, epsilon + np.log(np.where(held, q, 1.0)), -np.inf)
        scaled = np.exp(np.minimum(exponent, 1.0))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(held & (epsilon <= 700), np.exp(epsilon) * q, scaled)
        clipped: Floats = np.clip(p - scaled, 0.0, 1.0)
        return clipped


@dataclass(frozen=True)
class GaussianPair(DominatingPair):
    """N(μ, 1) against N(0, 1); L is N(μ²/2, μ²) under P (Balle and Wang 2018, Lemma 3)."""

    mu: float

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Normal upper tails."""
        from scipy.special import ndtr

        if self.mu == 0:
            return _point_above(loss)
        if self.mu == math.inf:
            whole = np.ones(np.shape(loss))
            return whole, 0 * whole
        with np.errstate(over="ignore"):
            z = np.asarray(loss, dtype=np.float64) / self.mu
        return ndtr(self.mu / 2 - z), ndtr(-self.mu / 2 - z)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Normal lower tails."""
        from scipy.special import ndtr

        if self.mu == 0:
            return _point_below(loss)
        if self.mu == math.inf:
            whole = np.ones(np.shape(loss))
            return 0 * whole, whole
        with np.errstate(over="ignore"):
            z = np.asarray(loss, dtype=np.float64) / self.mu
        return ndtr(z - self.mu / 2), ndtr(z + self.mu / 2)

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Closed form (Balle and Wang 2018, Theorem 8), by scaled tails so that nothing cancels.

        With a = ε/μ − μ/2 and b = ε/μ + μ/2, δ = φ(a) (m(a) − m(b)), where m = Φ(−x)/φ(x) is the
        Mills ratio; the two terms then share one scale.
        """
        from scipy.special import erfcx, ndtr

        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.mu == 0:
            trivial: Floats = np.maximum(-np.expm1(epsilon), 0.0)
            return trivial
        root = math.sqrt(2.0)
        with np.errstate(over="ignore", invalid="ignore"):
            a = epsilon / self.mu - self.mu / 2
            b = epsilon / self.mu + self.mu / 2
            safe = np.maximum(a, -5.0)
            mills = erfcx(safe / root) - erfcx(np.maximum(b, safe) / root)
            tail = np.exp(-safe * safe / 2) / 2 * mills
            bulk = ndtr(-a) - np.exp(epsilon) * ndtr(-b)
        curve: Floats = np.clip(np.where(a > -5.0, tail, bulk), 0.0, 1.0)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """α μ²/2 (Mironov 2017, Corollary 3)."""
        with np.errstate(over="ignore"):
            curve: Floats = np.asarray(orders, dtype=np.float64) * (self.mu * self.mu / 2)
        return curve

    @property
    def pure_epsilon(self) -> Fraction | float:
        """Infinite: the Gaussian loss is unbounded."""
        return math.inf if self.mu > 0 else Fraction(0)

    @property
    def zcdp_rho(self) -> float:
        """μ²/2 (Bun and Steinke 2016, Proposition 1.6)."""
        return concentration(self.mu, 0.5)

    @property
    def gaussian_mu(self) -> float | None:
        """μ itself."""
        return self.mu


@dataclass(frozen=True)
class LaplacePair(DominatingPair):
    """Laplace(ε, 1) against Laplace(0, 1).

    A vector of independent Laplace noises with total shift Δ in L1 is dominated by one coordinate
    with the whole shift: its trade-off curve is at least that of going there coordinate by
    coordinate (group privacy, Dong, Roth and Su 2022, Theorem 2.14), and for a location family with
    monotone likelihood ratio the steps of such a walk compose exactly to the one long step.
    """

    ratio: Fraction

    @property
    def epsilon(self) -> float:
        """Sensitivity over scale, as the nearest float; infinity beyond all floats."""
        try:
            return float(self.ratio)
        except OverflowError:
            return math.inf

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """An atom of P-mass 1/2 at ε, of e^-ε/2 at −ε, and an exponential between."""
        loss = np.asarray(loss, dtype=np.float64)
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        p = -np.expm1((inside - e) / 2 - math.log(2.0))
        q = np.exp(-(inside + e) / 2) / 2
        return (
            np.where(loss >= e, 0.0, np.where(loss < -e, 1.0, p)),
            np.where(loss >= e, 0.0, np.where(loss < -e, 1.0, q)),
        )

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        loss = np.asarray(loss, dtype=np.float64)
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        p = np.exp((inside - e) / 2) / 2
        q = -np.expm1(-(inside + e) / 2 - math.log(2.0))
        return (
            np.where(loss >= e, 1.0, np.where(loss < -e, 0.0, p)),
            np.where(loss >= e, 1.0, np.where(loss < -e, 0.0, q)),
        )

    def delta(self, epsilon: ArrayLike) -> Floats:
        """1 − exp((ε' − ε)/2) inside, 0 above ε, 1 − e^ε' below −ε."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        e = self.epsilon
        inside = -np.expm1((np.clip(epsilon, -e, e) - e) / 2)
        curve: Floats = np.where(epsilon < -e, -np.expm1(np.minimum(epsilon, 0.0)), inside)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """Mironov 2017, Proposition 6, in logarithms so that no order overflows."""
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        if not self.ratio:
            return np.zeros_like(a)
        first = np.log(a / (2 * a - 1)) + (a - 1) * e
        second = np.log((a - 1) / (2 * a - 1)) - a * e
        return np.clip(np.logaddexp(first, second) / (a - 1), 0.0, e)

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The ratio, exact."""
        return self.ratio


@dataclass(frozen=True, eq=False)
class FinitePair(DominatingPair):
    """A pair with finitely many losses, as of a mechanism with finitely many outputs.

    Attributes:
        losses: strictly increasing finite losses, shape (n,).
        p: P-mass of each loss, shape (n,).
        q: Q-mass of each loss, shape (n,).
        p_infinite: P-mass where Q has none; by symmetry also the Q-mass where P has none.
        bound: the largest loss where it is known better than the float in ``losses``.
    """

    losses: Floats
    p: Floats
    q: Floats
    p_infinite: float = 0.0
    bound: Fraction | None = None

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums from the top down, so that small tails stay accurate."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p = np.append(np.cumsum(self.p[::-1])[::-1], 0.0)
        q = np.append(np.cumsum(self.q[::-1])[::-1], 0.0)
        return np.minimum(p[at] + self.p_infinite, 1.0), np.minimum(q[at], 1.0)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums from the bottom up."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p = np.append(0.0, np.cumsum(self.p))
        q = np.append(0.0, np.cumsum(self.q))
        return np.minimum(p[at], 1.0), np.minimum(q[at] + self.p_infinite, 1.0)

    def log_masses(self) -> tuple[Floats, Floats]:
        """Ln p and ln q, also where the masses are below the floats.

        The larger of the two masses of a loss gives the smaller by the loss itself; a mass that
        no float holds is the smallest float at most, which is then added.
        """
        least = 5e-324
        log_p, log_q = np.log(self.p + least), np.log(self.q + least)
        low_p = (self.losses < 0) & (self.p < _NORMAL)
        low_q = (self.losses > 0) & (self.q < _NORMAL)
        return np.where(low_p, log_q + self.losses, log_p), np.where(
            low_q, log_p - self.losses, log_q
        )

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Σ p (1 − e^(ε − L)) over losses above ε: nothing cancels, overflows or needs q."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        starts = np.searchsorted(self.losses, epsilon, side="right")
        curve = np.empty(epsilon.shape)
        for at in np.ndindex(epsilon.shape):
            start = starts[at]
            gaps = -np.expm1(epsilon[at] - self.losses[start:])
            curve[at] = (self.p[start:] * gaps).sum() + self.p_infinite
        capped: Floats = np.minimum(curve, 1.0)
        return capped

    def renyi(self, orders: ArrayLike) -> Floats:
        """Ln Σ p e^((α − 1)L) / (α − 1); infinite where P has mass outside Q."""
        from scipy.special import logsumexp

        orders = np.asarray(orders, dtype=np.float64)
        if self.p_infinite > 0:
            return np.full_like(orders, np.inf)
        exponents = np.multiply.outer(orders - 1, self.losses) + self.log_masses()[0]
        value = logsumexp(exponents, axis=-1) / (orders - 1)
        capped: Floats = np.clip(value, 0.0, float(self.losses[-1]))
        return capped

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The largest loss, exact where ``bound`` is, else rounded up."""
        if self.p_infinite > 0:
            return math.inf
        return self.bound if self.bound is not None else max(_up(float(self.losses[-1])), 0.0)


def approximate_pair(epsilon: float, delta: float = 0.0) -> FinitePair:
    """The pair that dominates every (ε, δ)-private mechanism.

    Kairouz, Oh and Viswanath 2015, Theorem 3.3: with mass δ the loss is infinite, otherwise it is
    that of randomised response.
    """
    share = (1 - delta) / (1 + math.exp(-epsilon))
    low = (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    if epsilon == 0:
        masses = np.array([1 - delta])
        return FinitePair(np.zeros(1), masses, masses, delta, Fraction(0))
    return FinitePair(
        np.array([-epsilon, epsilon]),
        np.array([low, share]),
        np.array([share, low]),
        delta,
        Fraction(epsilon),
    )


@dataclass(frozen=True, eq=False)
class VastPair(FinitePair):
    """Two laws so far apart that no float holds their loss: all mass is of infinite loss.

    Only ``bound``, where there is one, still tells the exact largest loss.
    """

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The bound, or infinity."""
        return math.inf if self.bound is None else self.bound


def vast_pair(bound: Fraction | None = None) -> VastPair:
    """The pair of disjoint laws."""
    return VastPair(np.zeros(1), np.zeros(1), np.zeros(1), 1.0, bound)


def exceeds_floats(value: Fraction) -> bool:
    """Whether an exact number is above all floats."""
    return value > Fraction(sys.float_info.max)


def concentration(epsilon: Fraction | float, share: float) -> float:
    """``share`` times a square, rounded up: positive where the number is, infinite on overflow.

    A float counts as the nearest one to the number that is meant.
    """
    if epsilon == 0:
        return 0.0
    if isinstance(epsilon, Fraction):
        if exceeds_floats(epsilon):
            return math.inf
        nearest = float(epsilon)
        epsilon = math.nextafter(nearest, math.inf) if Fraction(nearest) < epsilon else nearest
    else:
        epsilon = math.nextafter(epsilon, math.inf)
    return math.nextafter(share * (epsilon * epsilon), math.inf)


def _point_above(loss: ArrayLike) -> tuple[Floats, Floats]:
    """Tails of a loss that is always 0."""
    tail = np.where(np.asarray(loss, dtype=np.float64) < 0, 1.0, 0.0)
    return tail, tail


def _point_below(loss: ArrayLike) -> tuple[Floats, Floats]:
    tail = np.where(np.asarray(loss, dtype=np.float64) < 0, 0.0, 1.0)
    return tail, tail


def _up(value: float) -> float:
    """The next float above a positive value: guarantees are rounded up."""
    return math.nextafter(value, math.inf) if 0 < value < math.inf else value
