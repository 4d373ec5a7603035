"""Poisson samples of units of several rows and of replaced units: mixtures of shifted noise.

Of noise with a monotone likelihood ratio, such as Gaussian or Laplace noise, half-lines are the
most powerful tests of every shift at once. So with β_s(a) the largest N(x)(A) over events A with
N(0)(A) = a, ‖x‖ ≤ s, for any weights and any vectors of norm at most s_i

    sup_A Σ w_i N(x_i)(A) − α N(0)(A) ≤ sup_a Σ w_i β_{s_i}(a) − α a,

which the mixture of collinear shifts s_i attains; likewise for N(0)(A) − α Σ w_i N(x_i)(A). So one
number for each part dominates vectors, in both directions (for Gaussian noise: Choquette-Choo,
Ganesh, Steinke and Thakurta 2024, *Privacy amplification for matrix mechanisms*). As every step
has such a pair whatever was released before, adaptive steps compose (Zhu et al. 2022, Theorem 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification.base import DirectedPair
from dpaudit.mechanisms import DominatingPair, FinitePair, GaussianPair, LaplacePair
from dpaudit.mechanisms.pairs import BoundedRangePair, Floats

_MOST_LOSSES = 20_000
_MOST_PANELS = 6_000


@singledispatch
def quadrature(
    pair: DominatingPair, top: float, *, split: bool = False
) -> tuple[Floats, Floats] | None:
    """Losses and log-weights under Q that integrate r^α for α up to ``top``; None if unknown.

    Rules for other pairs are registered: ``quadrature.register(MyPair)``.

    Args:
        pair: the base pair.
        top: the largest order.
        split: whether the integrand has a kink at loss 0.
    """
    return None


@quadrature.register(FinitePair)
def _(pair: FinitePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    if pair.p_infinite > 0 or pair.losses.size > _MOST_LOSSES:
        return None
    return pair.losses, pair.log_masses()[1]


@quadrature.register(GaussianPair)
def _(pair: GaussianPair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    if not 0 < pair.mu * top <= 320:
        return None
    return _gaussian_panels(pair.mu, top) if split else _gaussian_trapezia(pair.mu, top)


@quadrature.register(LaplacePair)
def _(pair: LaplacePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    """The two atoms and what lies between them."""
    epsilon = pair.epsilon
    between = _exponential_panels(epsilon, top)
    if between is None:
        return None
    losses = np.concatenate([[-epsilon], between[0], [epsilon]])
    return losses, np.concatenate([[0.0], between[1], [-epsilon]]) - math.log(2.0)


@quadrature.register(BoundedRangePair)
def _(pair: BoundedRangePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    between = _exponential_panels(pair.epsilon, top)
    return between and (between[0], between[1] - math.log(-math.expm1(-pair.epsilon)))


def _exponential_panels(epsilon: float, top: float) -> tuple[Floats, Floats] | None:
    """Losses of Q-density e^(−(loss+ε)/2)/2, in panels where no moment grows by more than e^8."""
    if not epsilon * top <= 2000:
        return None
    width = 4 / max(top, 8.0)
    left, weight_left = _panels(0.0, epsilon / 2, width)
    right, weight_right = _panels(epsilon / 2, epsilon, width)
    x = np.concatenate([left, right])
    return 2 * x - epsilon, np.log(np.concatenate([weight_left, weight_right])) - x


def _gaussian_trapezia(mu: float, top: float) -> tuple[Floats, Floats]:
    """The trapezoidal rule, which converges geometrically for analytic integrands.

    The integrand is analytic in |Im x| < π/μ, where it is bounded by e^(y²/2) times itself; a step
    of at most 1/4 and 1/2μ leaves a relative error below e^−36.
    """
    step = min(0.25, 0.5 / mu)
    x = np.arange(-10.0, top * mu + 10.0 + step, step)
    return mu * x - mu * mu / 2, -x * x / 2 + math.log(step / math.sqrt(2 * math.pi))


def _gaussian_panels(mu: float, top: float) -> tuple[Floats, Floats] | None:
    """Gauss-Legendre panels on both sides of loss 0, which lies at x = μ/2."""
    width = min(1.0, 1.0 / mu)
    if (top + 1) * mu + 20 > width * _MOST_PANELS:
        return None
    ahead, weight_ahead = _panels(mu / 2, top * mu + 10, width)
    back, weight_back = _panels(-10.0 - mu, mu / 2, width)
    x = np.concatenate([back, ahead])
    weights = np.concatenate([weight_back, weight_ahead])
    return mu * x - mu * mu / 2, -x * x / 2 + np.log(weights / math.sqrt(2 * math.pi))


def _panels(low: float, high: float, width: float) -> tuple[Floats, Floats]:
    """Sixteen Gauss-Legendre nodes in each of equal panels no wider than ``width``."""
    count = max(1, math.ceil((high - low) / width))
    node, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, count + 1)
    half = (high - low) / count / 2
    return ((edges[:-1] + half)[:, None] + half * node).ravel(), np.tile(half * weight, count)


Parts = tuple[tuple[float, float], ...]
"""Shifts, in units of the base's, and their weights, which add up to 1."""

FAR = 1e9
"""Shifts, in units of the noise, from which on no loss is of interest, and floats overflow."""
_FAR = 40.0
"""Standard deviations beyond which no float holds a normal tail."""
_CELLS = 1024
_ROUNDS = 200


@dataclass(frozen=True)
class MixturePair(DirectedPair):
    """A mixture of shifts of at least 0 against one of shifts of at most 0.

    The loss increases in the output x; its law follows from inverting it.

    Attributes:
        base: the pair of a shift by one unit, Gaussian or Laplace.
        p: shifts of P, in units of the base's, and their weights.
        q: shifts of Q.
    """

    base: DominatingPair
    p: Parts
    q: Parts

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums of the tails of the noise."""
        return self._tails(loss, upper=True)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        return self._tails(loss, upper=False)

    def nodes(self, tail: float, count: int) -> Floats:
        """Losses of evenly spaced outputs."""
        low, high = self._quantile(tail, upper=False), self._quantile(tail, upper=True)
        nodes = np.maximum.accumulate(self._loss(np.linspace(low, max(low, high), count))[0])
        nodes[-1] += 8 * np.spacing(abs(nodes[-1]))  # an atom there is at or below it
        return nodes if count == 2 and nodes[0] < nodes[1] else np.unique(nodes)

    @property
    def max_loss(self) -> float:
        """Infinite for unbounded noise, but where P and Q have their last part in common."""
        (last, weight), (end, other) = max(self.p), max(self.q)
        if not self._unit:
            return 0.0
        if isinstance(self.base, LaplacePair):
            return max(float(self._table[1][-1]), 0.0) * (1 + 1e-14)
        if last > end or not other:
            return math.inf
        return (math.log(weight) - math.log(other)) * (1 + 1e-14)

    @property
    def total_variation(self) -> float:
        """At most the weight of what is shifted."""
        return min(super().total_variation, self._shifted * (1 + 1e-12))

    @property
    def _shifted(self) -> float:
        return max(sum(w for shift, w in parts if shift) for parts in (self.p, self.q))

    @property
    def _unit(self) -> float:
        return unit_of(self.base)

    def _tails(self, loss: ArrayLike, *, upper: bool) -> tuple[Floats, Floats]:
        asked = np.asarray(loss, dtype=np.float64)
        x = self._output(asked.ravel()).reshape(asked.shape)
        losses = self._table[1]
        least, most = asked < losses[0], asked >= losses[-1]
        one, zero = (least, most) if upper else (most, least)
        p, q = (self._mass(parts, x, upper=upper) for parts in (self.p, self.q))
        return (
            np.where(zero, 0.0, np.where(one, 1.0, p)),
            np.where(zero, 0.0, np.where(one, 1.0, q)),
        )

    def _mass(self, parts: Parts, x: Floats, *, upper: bool) -> Floats:
        from scipy.special import ndtr

        total = np.zeros(x.shape)
        for shift, weight in parts:
            z = shift * self._unit - x if upper else x - shift * self._unit
            if isinstance(self.base, LaplacePair):
                half = np.exp(-np.abs(z)) / 2
                total += weight * np.where(z < 0, half, 1 - half)
            else:
                total += weight * ndtr(z)
        return np.minimum(total, 1.0)

    def _loss(self, x: Floats) -> tuple[Floats, Floats]:
        """Ln dP/dQ at outputs, and its slope."""
        ahead, slope = self._log_mean(self.p, x)
        behind, fall = self._log_mean(self.q, x)
        return ahead - behind, slope - fall

    def _log_mean(self, parts: Parts, x: Floats) -> tuple[Floats, Floats]:
        """Ln Σ w f(x − s)/f(x), accurate also where it is near 0, and its slope."""
        gains = [self._gain(shift * self._unit, x) for shift, _ in parts]
        top = np.maximum.reduce([gain for gain, _ in gains])
        direct, near, slope = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
        for (gain, steep), (_, weight) in zip(gains, parts, strict=True):
            share = weight * np.exp(gain - top)
            direct += share
            slope += share * steep
            near += weight * np.expm1(np.minimum(gain, 600.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = top + np.log(direct)
            small = (top <= 600.0) & (np.abs(near) < 0.5)
            value = np.where(small, np.log1p(np.where(small, near, 0.0)), plain)
            return value, slope / direct

    def _gain(self, shift: float, x: Floats) -> tuple[Floats, Floats | float]:
        """Ln f(x − s)/f(x), and its slope."""
        if isinstance(self.base, LaplacePair):
            return np.abs(x) - np.abs(x - shift), np.sign(x) - np.sign(x - shift)
        return shift * (x - shift / 2), shift

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Outputs from end to end, and their losses."""
        shifts = [shift * self._unit for shift, _ in (*self.p, *self.q)]
        far = 0.0 if isinstance(self.base, LaplacePair) else _FAR
        x = np.linspace(min(shifts) - far, max(shifts) + far, _CELLS + 1)
        return x, np.maximum.accumulate(self._loss(x)[0])

    def _output(self, loss: Floats) -> Floats:
        """The largest output of at most that loss: Newton's method between bisections."""
        outputs, losses = self._table
        asked = np.clip(loss, losses[0], losses[-1])
        cell = np.clip(np.searchsorted(losses, asked, side="right") - 1, 0, _CELLS - 1)
        low, high = outputs[cell], outputs[cell + 1]
        rise = losses[cell + 1] - losses[cell]
        share = np.divide(asked - losses[cell], rise, out=np.ones(rise.shape), where=rise > 0)
        x = low + share * (high - low)
        # A threshold may be off by a few units of the largest loss of a grid.
        least = 0.05 * min(abs(losses[0]), abs(losses[-1]), self._shifted)
        left = np.flatnonzero(rise > 0)
        for _ in range(_ROUNDS):
            if not left.size:
                break
            here, wanted = x[left], asked[left]
            value, slope = self._loss(here)
            under = value <= wanted
            low[left] = np.where(under, here, low[left])
            high[left] = np.where(under, high[left], here)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = here - (value - wanted) / slope
            inside = (step >= low[left]) & (step <= high[left])
            moved = np.where(inside, step, (low[left] + high[left]) / 2)
            settled = np.abs(moved - here) <= 4e-16 * np.abs(here) + 1e-300
            settled |= np.abs(value - wanted) <= 2.0**-51 * (np.abs(wanted) + least)
            x[left] = moved
            left = left[~settled]
        return x

    def _quantile(self, tail: float, *, upper: bool) -> float:
        """An output with about that much of P beyond it."""
        low, high = (float(end) for end in self._table[0][[0, -1]])
        for _ in range(64):
            middle = (low + high) / 2
            enough = float(self._mass(self.p, np.array(middle), upper=upper)) <= tail
            low, high = (low, middle) if enough is upper else (middle, high)
        return high if upper else low


def unit_of(base: DominatingPair) -> float:
    """The shift of Gaussian or Laplace noise, in standard deviations or scales."""
    return base.epsilon if isinstance(base, LaplacePair) else base.gaussian_mu or 0.0


def binomial_tail(rows: int, rate: float, most: int = 512) -> tuple[float, ...] | None:
    """Weights of 0, 1, … successes, rounded to a law that is stochastically larger.

    What lies beyond the last weight is below 1e-290. None where more weights than ``most`` count.
    """
    last = min(rows, most)
    j = np.arange(last, dtype=np.float64)
    steps = np.log((rows - j) / (j + 1)) + math.log(rate) - math.log1p(-rate)
    logs = rows * math.log1p(-rate) + np.append(0.0, np.cumsum(steps))
    if last < rows and not (logs[-1] < -668 and steps[-1] < -0.1):
        return None
    kept = np.flatnonzero(logs > -668)
    masses = np.exp(logs[: int(kept[-1]) + 1]) * (1 + 1e-11)
    at_least = np.minimum(np.cumsum(masses[::-1])[::-1], 1.0)
    at_least[0] = 1.0
    return tuple(float(one) for one in at_least - np.append(at_least[1:], 0.0))


def drawn_pairs(
    base: DominatingPair, drawn: Sequence[tuple[float, float]]
) -> tuple[MixturePair, MixturePair]:
    """The (remove, add) pairs of a unit that adds a random share of the base's shift.

    Args:
        base: the pair of the whole shift.
        drawn: shares of at least 0 and their weights, which add up to 1.
    """
    nothing, ahead = ((0.0, 1.0),), tuple(one for one in drawn if one[1] > 0)
    back = tuple((-share, weight) for share, weight in ahead)
    return MixturePair(base, ahead, nothing), MixturePair(base, nothing, back)


def replaced_pair(base: DominatingPair, rate: float) -> MixturePair:
    """The symmetric pair of a Poisson-sampled unit that is replaced by another.

    (1 − q)N(0) + qN(c) against (1 − q)N(0) + qN(−c), 2c the shift of the base (Schuchardt, Stoian,
    Kosmala and Günnemann 2024, *Unified mechanism-specific amplification by subsampling and group
    privacy amplification*; for any noise with a monotone likelihood ratio). For α ≥ 1
    H_α(P‖Q) = sup_A q N(x)(A) − (α − 1)(1 − q) N(0)(A) − αq N(x')(A): seen from x, the two others
    are at most c and 2c away, so that the second inequality of this module applies, and collinear
    shifts attain it. For α < 1 it follows from H_α(P‖Q) = 1 − α + α H_{1/α}(Q‖P).
    """
    rest = (0.0, 1 - rate)
    return MixturePair(base, (rest, (0.5, rate)), ((-0.5, rate), rest))
