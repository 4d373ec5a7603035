"""Directed dominating pairs: what sampling makes of the symmetric pair of a mechanism.

Whether a unit joins or leaves the data costs the same for a symmetric pair, but not for a sampled
one. An invocation therefore has two directed pairs, *remove* and *add*; each composes with its own
kind, and a guarantee is the worse of the two.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification.quantiles import lower_quantile, upper_quantile
from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import DominatingPair, FinitePair, LaplacePair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    PoissonSampling,
    ReplaceOne,
    ZeroOut,
)

__all__ = [
    "AddedPair",
    "DirectedPair",
    "PlainPair",
    "RemovedPair",
    "ReplacedPair",
    "directed",
]


class DirectedPair(ABC):
    """A pair (P, Q), not necessarily symmetric, seen through its loss L = ln dP/dQ."""

    @abstractmethod
    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L > loss], Q[L > loss]), accurate relative to themselves in the upper tail."""

    @abstractmethod
    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L <= loss], Q[L <= loss]), accurate relative to themselves in the lower tail."""

    @abstractmethod
    def nodes(self, tail: float, count: int) -> Floats:
        """About ``count`` increasing losses that resolve the law of L.

        About ``tail`` of the P-mass lies below the first and at most that much above the last
        (mass at infinity apart).
        """

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """The largest loss, rounded up; infinity where there is none."""

    @property
    def infinite(self) -> float:
        """The P-mass of infinite loss."""
        return float(self.above(math.inf)[0])

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Finite losses and their P-masses where there are finitely many losses, else None."""
        return None

    @property
    def span(self) -> float | None:
        """A loss that a grid should divide, because the law has an atom there; or None."""
        return None

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Hockey-stick divergence P[L > ε] − e^ε Q[L > ε] of one use."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        p, q = self.above(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(q > 0, np.exp(epsilon) * q, 0.0)
        clipped: Floats = np.clip(p - scaled, 0.0, 1.0)
        return clipped


@dataclass(frozen=True)
class PlainPair(DirectedPair):
    """A symmetric pair as it is: both directions cost the same."""

    base: DominatingPair

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Of the base."""
        return self.base.above(loss)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Of the base."""
        return self.base.below(loss)

    def nodes(self, tail: float, count: int) -> Floats:
        """Evenly spaced losses."""
        return _even(lower_quantile(self.base, tail), upper_quantile(self.base, tail), count)

    @property
    def max_loss(self) -> float:
        """The pure ε of the base."""
        return _rounded_up(self.base)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those of a finite base."""
        if isinstance(self.base, FinitePair):
            return self.base.losses, self.base.p
        return None

    @property
    def span(self) -> float | None:
        """The smallest loss of a finite base, the ε of a Laplace pair."""
        if isinstance(self.base, LaplacePair):
            return self.base.epsilon or None
        if isinstance(self.base, FinitePair):
            sizes = np.abs(self.base.losses[self.base.losses != 0])
            return float(sizes.min()) if sizes.size else None
        return None


@dataclass(frozen=True)
class RemovedPair(DirectedPair):
    """(1 − q) Q + q P against Q: a Poisson-sampled unit leaves the data.

    Zhu, Dong and Wang 2022, Theorem 11. The loss is T(L) = ln(1 − q + q e^L), increasing in the
    loss L of the symmetric base.

    Attributes:
        base: symmetric pair of the unsampled mechanism.
        rate: sampling rate q in (0, 1).
    """

    base: DominatingPair
    rate: float

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Tails of the base beyond the inverse of T, mixed."""
        p, q = self.base.above(_unsampled(loss, self.rate))
        everything = np.asarray(loss, dtype=np.float64) < math.log1p(-self.rate)
        mixed = self.rate * p + (1 - self.rate) * q
        return np.where(everything, 1.0, mixed), np.where(everything, 1.0, q)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        p, q = self.base.below(_unsampled(loss, self.rate))
        nothing = np.asarray(loss, dtype=np.float64) < math.log1p(-self.rate)
        mixed = self.rate * p + (1 - self.rate) * q
        return np.where(nothing, 0.0, mixed), np.where(nothing, 0.0, q)

    def nodes(self, tail: float, count: int) -> Floats:
        """Images of evenly spaced losses of the base."""
        high = upper_quantile(self.base, tail)
        low = min(-high, lower_quantile(self.base, tail))
        nodes = _covering(_sampled(_even(low, high, count), self.rate))
        return _with_end(nodes, self.base, math.log1p(-self.rate))

    @property
    def max_loss(self) -> float:
        """T of the pure ε of the base."""
        top = _rounded_up(self.base)
        if math.isinf(top):
            return math.inf
        return float(_sampled(top, self.rate)) * (1 + 1e-15)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those of a finite base; its lower infinity becomes the atom ln(1 − q)."""
        if not isinstance(self.base, FinitePair):
            return None
        losses = np.append(math.log1p(-self.rate), _sampled(self.base.losses, self.rate))
        outside = (1 - self.rate) * self.base.p_infinite
        mixed = self.rate * self.base.p + (1 - self.rate) * self.base.q
        return losses, np.append(outside, mixed)


@dataclass(frozen=True)
class AddedPair(DirectedPair):
    """Q against (1 − q) Q + q P: a Poisson-sampled unit joins the data.

    Zhu, Dong and Wang 2022, Theorem 11. The loss is −T(L) with T as in :class:`RemovedPair`, at
    most −ln(1 − q). Strict and weak inequalities at atoms are exchanged by the symmetry of the
    base: Q[L < l] = P[L > −l].

    Attributes:
        base: symmetric pair of the unsampled mechanism.
        rate: sampling rate q in (0, 1).
    """

    base: DominatingPair
    rate: float

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Q[T(L) < −loss] and the same of the mixture."""
        negated = -np.asarray(loss, dtype=np.float64)
        p, q = self.base.above(-_unsampled(negated, self.rate))
        nothing = negated <= math.log1p(-self.rate)
        mixed = (1 - self.rate) * p + self.rate * q
        return np.where(nothing, 0.0, p), np.where(nothing, 0.0, mixed)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        negated = -np.asarray(loss, dtype=np.float64)
        p, q = self.base.below(-_unsampled(negated, self.rate))
        everything = negated <= math.log1p(-self.rate)
        mixed = (1 - self.rate) * p + self.rate * q
        return np.where(everything, 1.0, p), np.where(everything, 1.0, mixed)

    def nodes(self, tail: float, count: int) -> Floats:
        """Images of evenly spaced losses of the base."""
        high = upper_quantile(self.base, tail)
        low = lower_quantile(self.base, tail)
        nodes = _covering(-_sampled(_even(-high, -low, count), self.rate))
        return _with_end(nodes, self.base, -math.log1p(-self.rate))

    @property
    def max_loss(self) -> float:
        """−T of the least loss of the base."""
        top = _rounded_up(self.base)
        least = -math.log1p(-self.rate) if math.isinf(top) else -float(_sampled(-top, self.rate))
        return least * (1 + 1e-15)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those of a finite base; its lower infinity becomes the atom −ln(1 − q)."""
        if not isinstance(self.base, FinitePair):
            return None
        losses = np.append(-_sampled(self.base.losses[::-1], self.rate), -math.log1p(-self.rate))
        return losses, np.append(self.base.q[::-1], self.base.p_infinite)


@dataclass(frozen=True)
class ReplacedPair(DirectedPair):
    """The symmetric pair of a fixed-size sample when one unit is replaced by another.

    With γ = m/n, δ'(ln(1 + γ(e^ε − 1))) = γ δ(ε) for ε ≥ 0 (Balle, Barthe and Gaboardi 2018,
    sampling without replacement under substitution), which is the curve of :class:`RemovedPair`
    for losses of at least 0. Replacement is a symmetric relation, so that negative losses follow by
    H_α(P‖Q) = 1 − α + α H_{1/α}(Q‖P): the curve of :class:`AddedPair`. The two meet at loss 0 in
    an atom, and their maximum is convex, hence the curve of a pair (Zhu et al. 2022, Lemma 10).

    Attributes:
        base: symmetric pair of the unsampled mechanism at its replace-one sensitivity.
        rate: sample size over population, in (0, 1).
    """

    base: DominatingPair
    rate: float

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Of the remove pair from 0 on, of the add pair below."""
        return self._joined(loss, self._remove.above(loss), self._add.above(loss))

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        return self._joined(loss, self._remove.below(loss), self._add.below(loss))

    def nodes(self, tail: float, count: int) -> Floats:
        """Nodes of the remove pair above 0, of the add pair below, and 0."""
        high, low = self._remove.nodes(tail, count), self._add.nodes(tail, count)
        return np.unique(np.concatenate([low[low < 0], [0.0], high[high > 0]]))

    @property
    def max_loss(self) -> float:
        """That of the remove pair."""
        return self._remove.max_loss

    @property
    def _remove(self) -> RemovedPair:
        return RemovedPair(self.base, self.rate)

    @property
    def _add(self) -> AddedPair:
        return AddedPair(self.base, self.rate)

    @staticmethod
    def _joined(
        loss: ArrayLike, remove: tuple[Floats, Floats], add: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        positive = np.asarray(loss, dtype=np.float64) >= 0
        return np.where(positive, remove[0], add[0]), np.where(positive, remove[1], add[1])


def directed(invocation: Invocation) -> tuple[DirectedPair, DirectedPair]:
    """The (remove, add) pairs that dominate one use of an invocation.

    Unsampled mechanisms, and fixed-size samples under replace-one, have a symmetric pair, given
    twice. A rate of 1 is no sampling.

    Raises:
        UnsupportedError: if no theorem gives a pair; the sentence names the invocation and says
            what would.
    """
    base = invocation.mechanism.pair(invocation.sensitivity)
    sampling, relation = invocation.sampling, invocation.relation
    if sampling is None:
        return PlainPair(base), PlainPair(base)
    if isinstance(sampling, PoissonSampling) and isinstance(relation, AddRemove | ZeroOut):
        if sampling.rate == 1:
            return PlainPair(base), PlainPair(base)
        return RemovedPair(base, sampling.rate), AddedPair(base, sampling.rate)
    if isinstance(sampling, FixedSizeSampling) and isinstance(relation, ReplaceOne):
        if sampling.size == sampling.population:
            return PlainPair(base), PlainPair(base)
        # The exact fraction may exceed the rounded quotient: a rate is rounded up.
        rate = math.nextafter(sampling.size / sampling.population, 1.0)
        return ReplacedPair(base, rate), ReplacedPair(base, rate)
    raise _refusal(invocation)


def _refusal(invocation: Invocation) -> UnsupportedError:
    sampling, relation = invocation.sampling, invocation.relation
    place = invocation.describe()
    if isinstance(sampling, PoissonSampling) and isinstance(relation, ReplaceOne):
        return UnsupportedError(
            f"{place} is Poisson-sampled under replace-one; its sensitivity does not bound the "
            "change when a unit drops out of the sample, so declare it under add-remove or "
            "zero-out, or use fixed-size sampling."
        )
    if isinstance(sampling, FixedSizeSampling):
        return UnsupportedError(
            f"{place} draws a fixed-size sample under {relation}; another unit then takes the "
            "place of the protected one, so declare the sensitivity under replace-one."
        )
    return UnsupportedError(
        f"{place} samples units under {relation}, for which no dominating pair is known; "
        "declare it without sampling."
    )


def _sampled(loss: ArrayLike, rate: float) -> Floats:
    """T(l) = ln(1 − q + q e^l), without overflow or cancellation."""
    loss = np.asarray(loss, dtype=np.float64)
    small = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
    large = loss + np.log(rate + (1 - rate) * np.exp(-np.maximum(loss, 0.0)))
    value: Floats = np.where(loss < 30, small, large)
    return value


def _unsampled(loss: ArrayLike, rate: float) -> Floats:
    """The inverse of T; minus infinity at and below its least value ln(1 − q).

    Its rounding error is that of a threshold moved by a few units in the last place.
    """
    loss = np.asarray(loss, dtype=np.float64)
    inner = np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0)
    with np.errstate(divide="ignore"):
        small = np.log1p(inner)
    large = loss + np.log1p(-(1 - rate) * np.exp(-np.maximum(loss, 1.0))) - math.log(rate)
    value: Floats = np.where(loss < 30, small, large)
    return value


def _even(low: float, high: float, count: int) -> Floats:
    if not high > low:
        return np.array([low])
    return np.array([low, high]) if count == 2 else np.linspace(low, high, count)


def _covering(nodes: Floats) -> Floats:
    """The nodes, the largest a few units in the last place higher.

    An atom there is then at or below it, however the inverse of T rounds.
    """
    top = nodes.argmax()
    nodes[top] += 8 * np.spacing(abs(nodes[top]))
    return nodes


def _with_end(nodes: Floats, base: DominatingPair, end: float) -> Floats:
    """The nodes, increasing, and the loss that sampling makes of an infinite one, if there is."""
    if isinstance(base, FinitePair) and base.p_infinite > 0:
        nodes = np.append(nodes, end)
    elif len(nodes) == 2 and nodes[0] > nodes[1]:
        return nodes[::-1]
    return nodes if len(nodes) <= 2 and nodes[0] < nodes[-1] else np.unique(nodes)


def _rounded_up(base: DominatingPair) -> float:
    """The pure ε as a float that is not below it."""
    exact = base.pure_epsilon
    try:
        value = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(value, math.inf) if value < exact else value
