"""Pairs with finitely many losses: of finite outputs, of bounded range, of concentration alone.

Choices, reports, integer noise and black boxes return them. Masses and losses are given together:
moving one without the other may understate the cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import NonNegative, Positive
from dpaudit.mechanisms.pairs.base import NORMAL, DominatingPair, Floats
from dpaudit.mechanisms.rounding import concentration, up

WORK_OF_LOSS = 4e4
"""Elementary operations that accountants spend on each loss, for a curve and its comparison."""
_LARGEST_TABLE = 10**7
_COMPARED = 4096
_CLOSEST = 1e-6
"""An ε of a profile: of points that are closer to 0 the chords would have no digits."""


@dataclass(frozen=True, eq=False)
class FinitePair(DominatingPair):
    """A pair with finitely many losses, as of a mechanism with finitely many outputs.

    Attributes:
        losses: strictly increasing finite losses, shape (n,).
        p: P-mass of each loss, shape (n,).
        q: Q-mass of each loss, shape (n,).
        p_infinite: P-mass where Q has none; by symmetry also the Q-mass where P has none.
        bound: the largest loss where it is known better than the float in ``losses``.

    Raises:
        InputError: if the losses do not increase, are not ln p/q, or the two laws are no
            distributions or not the mirror images of each other.
    """

    losses: Floats
    p: Floats
    q: Floats
    p_infinite: float = 0.0
    bound: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        losses, p, q = self.losses, self.p, self.q
        if not losses.ndim == 1 <= losses.size or not losses.shape == p.shape == q.shape:
            raise InputError(f"losses has shape {losses.shape}; p and q must have the same, (n,).")
        if not np.isfinite(losses).all() or (np.diff(losses) <= 0).any():
            raise InputError("losses do not increase strictly; merge equal ones and sort them.")
        least = min(float(p.min()), self.p_infinite)
        if not (least >= 0 and abs(float(p.sum()) + self.p_infinite - 1) < 1e-9):
            raise InputError("p and p_infinite must be masses of at least 0 that add up to 1.")
        mirrored = np.abs(losses + losses[::-1]) <= 1e-9 * np.abs(losses)
        if not (mirrored & (np.abs(p - q[::-1]) <= 1e-6 * p + NORMAL)).all():
            raise InputError("q must be the mirror image of p, and the losses must be symmetric.")
        some = slice(None, None, 1 + losses.size // _COMPARED)
        held = (p[some] > NORMAL) & (q[some] > NORMAL)
        gaps = np.log(p[some][held] / q[some][held]) - losses[some][held]
        if (np.abs(gaps) > 1e-6 * (1 + np.abs(losses[some][held]))).any():
            raise InputError("losses are not ln p/q; give each loss with its own masses.")

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums from the top down, so that small tails stay accurate."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p, q = self._from_the_top
        return np.minimum(p[at] + self.p_infinite, 1.0), np.minimum(q[at], 1.0)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """P- and Q-mass of losses below, summed from the least loss on."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p, q = self._from_the_bottom
        return np.minimum(p[at], 1.0), np.minimum(q[at] + self.p_infinite, 1.0)

    @cached_property
    def _from_the_top(self) -> tuple[Floats, Floats]:
        """P- and Q-mass from each loss on."""
        sums = np.zeros((2, self.losses.size + 1))
        np.cumsum(self.p[::-1], out=sums[0, -2::-1])
        np.cumsum(self.q[::-1], out=sums[1, -2::-1])
        return sums[0], sums[1]

    @cached_property
    def _from_the_bottom(self) -> tuple[Floats, Floats]:
        """P- and Q-mass before each loss."""
        sums = np.zeros((2, self.losses.size + 1))
        np.cumsum(self.p, out=sums[0, 1:])
        np.cumsum(self.q, out=sums[1, 1:])
        return sums[0], sums[1]

    def log_masses(self) -> tuple[Floats, Floats]:
        """Ln p and ln q, also where the masses are below the floats.

        The larger of the two masses of a loss gives the smaller by the loss itself; a mass that
        no float holds is the smallest float at most, which is then added.
        """
        least = 5e-324
        log_p, log_q = np.log(self.p + least), np.log(self.q + least)
        low_p = (self.losses < 0) & (self.p < NORMAL)
        low_q = (self.losses > 0) & (self.q < NORMAL)
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
        log_p, steps = self.log_masses()[0], (orders - 1).ravel()
        parts = np.array_split(steps, 1 + steps.size * log_p.size // _LARGEST_TABLE)
        tables = (np.multiply.outer(part, self.losses) + log_p for part in parts)
        sums = np.concatenate([logsumexp(table, axis=-1) for table in tables])
        value = sums.reshape(orders.shape) / (orders - 1)
        capped: Floats = np.clip(value, 0.0, float(self.losses[-1]))
        return capped

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The largest loss, exact where ``bound`` is, else rounded up."""
        if self.p_infinite > 0:
            return math.inf
        return self.bound if self.bound is not None else max(up(float(self.losses[-1])), 0.0)

    def upper_quantile(self, tail: float) -> float:
        """The largest loss with more than the tail from it on."""
        kept = np.flatnonzero(self._from_the_top[0][:-1] > tail)
        return float(self.losses[kept[-1]] if kept.size else self.losses[0])

    def lower_quantile(self, tail: float) -> float:
        """The smallest loss with more than the tail up to it."""
        kept = np.flatnonzero(self._from_the_bottom[0][1:] > tail)
        return float(self.losses[kept[0]] if kept.size else self.losses[-1])

    @property
    def span(self) -> float | None:
        """The smallest loss other than 0, which has a mirror image."""
        above = self.losses[np.searchsorted(self.losses, 0.0, side="right") :]
        return float(above[0]) if above.size else None


@dataclass(frozen=True, eq=False)
class FiniteBound(FinitePair):
    """Such a pair of which each point of the curve is attained, but by other neighbours each."""

    is_attained: ClassVar[bool] = False


def profile_masses(
    epsilons: Floats, deltas: Floats, at_zero: float, pure: float = math.inf
) -> tuple[Floats, Floats, Floats, float]:
    """The masses of the law that dominates all that is (ε, δ)-private at each of some points.

    H_t is convex in t, so that between two points it is below their chord in t = e^ε, beyond the
    last at most that point's δ, and at 0 < t < 1 it is the mirror image 1 − t + t H_{1/t}. At t = 1
    each point allows at most (e^ε − 1 + 2δ)/(e^ε + 1). The hull of the points is that law's curve
    (Dong, Roth and Su 2022, Proposition 2.12; Doroshenko et al. 2022, *Connect the dots*).

    Args:
        epsilons: ε above 0 and below 700, shape (n,); others are left out.
        deltas: δ of each, shape (n,).
        at_zero: a δ at ε = 0.
        pure: an ε at which δ is 0, or infinity.

    Returns:
        Losses, P-masses and Q-masses as of a :class:`FinitePair`, and the mass at infinity.
    """
    held = (epsilons > 0) & (epsilons < min(pure, 700.0)) & (deltas < 1)
    x, y = np.maximum(epsilons[held], _CLOSEST), deltas[held] * (1 + 1e-12)
    if pure < 700:
        x, y = np.append(x, pure), np.append(y, 0.0)
    if x.size == 1 or pure <= _CLOSEST:
        alone = pure if pure < 700 else float(epsilons[held][0])
        pair = approximate_pair(alone, float(y[-1]))
        return pair.losses, pair.p, pair.q, pair.p_infinite
    if not x.size:
        return np.zeros(1), np.zeros(1), np.zeros(1), 1.0
    tops = (np.expm1(x) + 2 * y) / (np.exp(x) + 1)
    # More would make the first chord steeper than a law allows, as a point may be near 0.
    hull = [(0.0, min(at_zero, float(tops.min())) * (1 + 1e-15))]
    for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        if point[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _slope(hull[-2], point) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    slopes = [_slope(*two) for two in pairwise(hull)] + [0.0]
    losses = np.array([point[0] for point in hull[1:]])
    low = np.maximum(-np.diff(slopes), 0.0)
    high, infinite = low * np.exp(losses), hull[-1][1]
    middle = max(1 - float(high.sum() + low.sum()) - infinite, 0.0)
    p = np.concatenate([low[::-1], [middle], high])
    return np.concatenate([-losses[::-1], [0.0], losses]), p, p[::-1].copy(), infinite


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By how much a chord of the curve falls, as a function of e^ε."""
    fall = (one[1] - other[1]) * math.exp(-one[0])
    return fall / math.expm1(other[0] - one[0])


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


def costless_pair() -> FinitePair:
    """Two equal laws: the pair of data that do not differ."""
    return approximate_pair(0.0)


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


@dataclass(frozen=True)
class BoundedRangePair(DominatingPair):
    """The law whose curve is the worst of all mechanisms with losses in some [t − ε, t].

    For one t the worst has two losses, t and t − ε, the former of Q-mass
    (e^−t − e^−ε)/(1 − e^−ε). Its δ(x) = (e^−t − e^−ε)(e^t − e^x)/(1 − e^−ε) is the largest at
    t = (ε + x)/2, where it is (1 − e^((x−ε)/2))²/(1 − e^−ε) (Dong, Durfee and Rogers 2020, *Optimal
    differential privacy composition for exponential mechanisms*). The law with that curve has the
    P-density e^((x−ε)/2)/2(1 − e^−ε) on [−ε, ε].

    Attributes:
        epsilon: ε, the span of the losses and the largest of them.
    """

    is_attained: ClassVar[bool] = False
    epsilon: Positive

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(1 − e^((x−ε)/2))/(1 − e^−ε), and e^(−(x+ε)/2) times that."""
        x = np.clip(np.asarray(loss, dtype=np.float64), -self.epsilon, self.epsilon)
        p = np.expm1((x - self.epsilon) / 2) / math.expm1(-self.epsilon)
        return p, np.exp(-(x + self.epsilon) / 2) * p

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Mirror those above −x, of Q and of P."""
        q, p = self.above(-np.asarray(loss, dtype=np.float64))
        return p, q

    def delta(self, epsilon: ArrayLike) -> Floats:
        """(1 − e^((x−ε)/2))²/(1 − e^−ε) inside, 0 above ε, 1 − e^x below −ε."""
        asked = np.asarray(epsilon, dtype=np.float64)
        x = np.clip(asked, -self.epsilon, self.epsilon)
        step = np.expm1((x - self.epsilon) / 2)
        inside = step * (step / -math.expm1(-self.epsilon))
        below = -np.expm1(np.minimum(asked, 0.0))
        curve: Floats = np.where(asked < -self.epsilon, below, inside)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """That of the law: E_P[e^((α−1)L)] = e^(−ε/2) sinh(aε)/a(1 − e^−ε) with a = α − 1/2."""
        a, e = np.asarray(orders, dtype=np.float64) - 0.5, self.epsilon
        grown = -np.expm1(-2 * a * e) / (2 * a * -math.expm1(-e))
        curve = ((a - 0.5) * e + np.log(grown)) / (a - 0.5)
        return np.clip(curve, 0.0, e)

    @property
    def pure_epsilon(self) -> Fraction:
        """The span."""
        return Fraction(self.epsilon)

    @property
    def zcdp_rho(self) -> float:
        """ε²/8, which the mechanism has (Cesar and Rogers 2021, Lemma 3.2), rounded up."""
        return concentration(self.pure_epsilon, 0.125)

    def upper_quantile(self, tail: float) -> float:
        """The end of the law."""
        return self.epsilon

    def lower_quantile(self, tail: float) -> float:
        """Invert the exponential density."""
        end = math.exp(-self.epsilon)
        return max(-self.epsilon, self.epsilon + 2 * math.log(tail * (1 - end) + end + 1e-300))


@dataclass(frozen=True)
class ConcentratedPair(DominatingPair):
    """A pair of which only a bound on its Rényi divergences is known: at most ξ + α ρ.

    Attributes:
        rho: ρ of zero-concentrated differential privacy.
        xi: ξ of it.
    """

    has_law: ClassVar[bool] = False
    rho: NonNegative
    xi: NonNegative = 0.0

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("ρ-zCDP alone does not give the law of the privacy loss.")

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        return self.above(loss)

    def renyi(self, orders: ArrayLike) -> Floats:
        """ξ + α ρ (Bun and Steinke 2016, Definition 1.1)."""
        with np.errstate(over="ignore"):
            return self.xi + np.asarray(orders, dtype=np.float64) * self.rho

    @property
    def pure_epsilon(self) -> Fraction | float:
        """ξ, where that bounds all orders; else unknown, hence infinite."""
        return math.inf if self.rho > 0 else Fraction(self.xi)

    @property
    def zcdp_rho(self) -> float:
        """ρ itself; infinite beside a ξ, which is none of ρ alone."""
        return self.rho if not self.xi else math.inf
