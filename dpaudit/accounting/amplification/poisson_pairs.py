"""The two directed pairs of a Poisson-sampled mechanism.

Sampling with probability q makes of the loss L of the symmetric base T(L) = ln(1 − q + q e^L),
which increases in L from ln(1 − q).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification.base import TAIL_UNITS, DirectedPair, even, log_ratio
from dpaudit.base.fields import OpenProbability
from dpaudit.mechanisms import DominatingPair, FinitePair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float

TwoTails = Callable[[ArrayLike], tuple[Floats, Floats]]


@dataclass(frozen=True)
class SampledPair(DirectedPair):
    """A sampled pair, whose tails are mixtures of those of the base.

    Attributes:
        base: symmetric pair of the unsampled mechanism.
        rate: sampling rate q in (0, 1).
    """

    base: DominatingPair
    rate: OpenProbability
    _end: ClassVar[float]
    """The probability of a larger loss, at the losses that sampling leaves no mass at."""

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Tails of the base beyond the loss before sampling, mixed."""
        return self._mixed(self.base.above, np.asarray(loss, dtype=np.float64), self._end)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        return self._mixed(self.base.below, np.asarray(loss, dtype=np.float64), 1 - self._end)

    @property
    def is_attained(self) -> bool:
        """As the base."""
        return self.base.is_attained

    @property
    def total_variation(self) -> float:
        """That of the base, times the rate."""
        return self.rate * min(float(self.base.delta(0.0)) * (1 + 1e-9) + TAIL_UNITS, 1.0)

    @abstractmethod
    def _mixed(self, tails: TwoTails, loss: Floats, outside: float) -> tuple[Floats, Floats]:
        """Tails of P and Q from those of the base; ``outside`` where the law has ended."""


@dataclass(frozen=True)
class RemovedPair(SampledPair):
    """(1 − q) Q + q P against Q: a Poisson-sampled unit leaves the data.

    Zhu, Dong and Wang 2022, Theorem 11. The loss is T(L).
    """

    _end: ClassVar[float] = 1.0

    def _mixed(self, tails: TwoTails, loss: Floats, outside: float) -> tuple[Floats, Floats]:
        p, q = tails(_unsampled(loss, self.rate))
        least = loss < math.log1p(-self.rate)
        mixed = self.rate * p + (1 - self.rate) * q
        return np.where(least, outside, mixed), np.where(least, outside, q)

    def nodes(self, tail: float, count: int) -> Floats:
        """Images of evenly spaced losses of the base."""
        high = self.base.upper_quantile(tail)
        low = min(-high, self.base.lower_quantile(tail))
        high = self.base.upper_quantile(min(tail / self._share(tail), 0.5))
        nodes = _covering(log_ratio(even(low, high, count), self.rate))
        return _with_end(nodes, self.base, math.log1p(-self.rate))

    def _share(self, tail: float) -> float:
        """At least what the sample's P-tail of that size is of the base's finite one.

        Which is q + (1 − q) Q/P: large losses of the sample are rarer than those of the base.
        """
        first = self.base.upper_quantile(min(tail / self.rate, 0.5))
        p, q = (float(mass) for mass in self.base.above(first))
        p -= float(self.base.above(math.inf)[0])
        return min(self.rate + (1 - self.rate) * q / p, 1.0) if p > 0 else self.rate

    @property
    def max_loss(self) -> float:
        """T of the pure ε of the base."""
        top = as_float(self.base.pure_epsilon)
        if math.isinf(top):
            return math.inf
        return float(log_ratio(top, self.rate)) * (1 + 1e-15)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those of a finite base; its lower infinity becomes the atom ln(1 − q)."""
        if not isinstance(self.base, FinitePair):
            return None
        losses = np.append(math.log1p(-self.rate), log_ratio(self.base.losses, self.rate))
        outside = (1 - self.rate) * self.base.p_infinite
        mixed = self.rate * self.base.p + (1 - self.rate) * self.base.q
        return losses, np.append(outside, mixed)


@dataclass(frozen=True)
class AddedPair(SampledPair):
    """Q against (1 − q) Q + q P: a Poisson-sampled unit joins the data.

    Zhu, Dong and Wang 2022, Theorem 11. The loss is −T(L), at most −ln(1 − q). Strict and weak
    inequalities at atoms are exchanged by the symmetry of the base: Q[L < l] = P[L > −l].
    """

    _end: ClassVar[float] = 0.0

    def _mixed(self, tails: TwoTails, loss: Floats, outside: float) -> tuple[Floats, Floats]:
        p, q = tails(-_unsampled(-loss, self.rate))
        largest = -loss <= math.log1p(-self.rate)
        mixed = (1 - self.rate) * p + self.rate * q
        return np.where(largest, outside, p), np.where(largest, outside, mixed)

    def nodes(self, tail: float, count: int) -> Floats:
        """Images of evenly spaced losses of the base."""
        high, low = self.base.upper_quantile(tail), self.base.lower_quantile(tail)
        nodes = _covering(-log_ratio(even(-high, -low, count), self.rate))
        return _with_end(nodes, self.base, -math.log1p(-self.rate))

    @property
    def max_loss(self) -> float:
        """−T of the least loss of the base."""
        top = as_float(self.base.pure_epsilon)
        least = -math.log1p(-self.rate) if math.isinf(top) else -float(log_ratio(-top, self.rate))
        return least * (1 + 1e-15)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those of a finite base; its lower infinity becomes the atom −ln(1 − q)."""
        if not isinstance(self.base, FinitePair):
            return None
        losses = np.append(-log_ratio(self.base.losses[::-1], self.rate), -math.log1p(-self.rate))
        return losses, np.append(self.base.q[::-1], self.base.p_infinite)


def _unsampled(loss: ArrayLike, rate: float) -> Floats:
    """The inverse of T; minus infinity at and below its least value ln(1 − q).

    Its rounding error is that of a threshold moved by a few units in the last place.
    """
    loss = np.asarray(loss, dtype=np.float64)
    inner = np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0)
    with np.errstate(divide="ignore"):
        small: Floats = np.log1p(inner)
    if not (loss >= 30).any():
        return small
    large = loss + np.log1p(-(1 - rate) * np.exp(-np.maximum(loss, 1.0))) - math.log(rate)
    return np.where(loss < 30, small, large)


def _covering(nodes: Floats) -> Floats:
    """The nodes, the largest a few units in the last place higher.

    An atom there is then at or below it, however the inverse of T rounds.
    """
    top = nodes.argmax()
    if math.isfinite(nodes[top]):
        nodes[top] += 8 * np.spacing(abs(nodes[top]))
    return nodes


def _with_end(nodes: Floats, base: DominatingPair, end: float) -> Floats:
    """The nodes, increasing, and the loss that sampling makes of an infinite one, if there is."""
    if float(base.above(math.inf)[0]) > 0:
        nodes = np.append(nodes, end)
    elif len(nodes) == 2 and nodes[0] > nodes[1]:
        return nodes[::-1]
    return nodes if len(nodes) <= 2 and nodes[0] < nodes[-1] else np.unique(nodes)
