"""Samples that are one of several kinds, where which kind it is counts as known.

To tell an adversary more than what is released can only cost more, so that the mixture of the
costs, each with the probability of its kind, is an upper bound (joint convexity).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification.base import SAFETY, Amplification, DirectedPair
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float

LEAST = 1e-290
"""A kind that is rarer is taken to be as frequent."""


class _Averaged:
    """The tails of one of several pairs, by probabilities that add up to 1."""

    parts: tuple[tuple[float, Any], ...]

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The average of the tails."""
        return _average([(weight, pair.above(loss)) for weight, pair in self.parts])

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        return _average([(weight, pair.below(loss)) for weight, pair in self.parts])


@dataclass(frozen=True)
class RevealedPair(_Averaged, DirectedPair):
    """One of several pairs; which one is known.

    Attributes:
        parts: probabilities that add up to 1, and pairs.
    """

    is_attained = False  # more is told than is released
    parts: tuple[tuple[float, DirectedPair], ...]

    def nodes(self, tail: float, count: int) -> Floats:
        """Gather those of all pairs."""
        found = [pair.nodes(min(tail / weight, 0.4), count) for weight, pair in self.parts]
        return np.unique(np.concatenate(found))

    @property
    def max_loss(self) -> float:
        """The largest of all pairs."""
        return max(pair.max_loss for _, pair in self.parts)


@dataclass(frozen=True)
class TimesPair(_Averaged, DominatingPair):
    """One of several symmetric pairs, such as of a unit that is drawn so many times.

    Attributes:
        parts: probabilities that add up to 1, and pairs.
    """

    parts: tuple[tuple[float, DominatingPair], ...]

    def renyi(self, orders: ArrayLike) -> Floats:
        """Average the moments."""
        steps = np.asarray(orders, dtype=np.float64) - 1
        return _log_average([(w, steps * pair.renyi(orders)) for w, pair in self.parts]) / steps

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The largest of all pairs."""
        return max(pair.pure_epsilon for _, pair in self.parts)

    def upper_quantile(self, tail: float) -> float:
        """The farthest of all pairs, of which each may leave out an equal share of the tail."""
        return max(pair.upper_quantile(own) for own, pair in self._shares(tail))

    def lower_quantile(self, tail: float) -> float:
        """The farthest of all pairs."""
        return min(pair.lower_quantile(own) for own, pair in self._shares(tail))

    def _shares(self, tail: float) -> list[tuple[float, DominatingPair]]:
        each = tail / len(self.parts)
        return [(min(each / weight, 0.4), pair) for weight, pair in self.parts]


@dataclass(frozen=True)
class RevealedAmplification(Amplification):
    """The pairs of several kinds of samples, each with a probability of its own.

    Attributes:
        kinds: probabilities that add up to 1, what each kind does, and to which pair.
    """

    kinds: tuple[tuple[float, Amplification, DominatingPair], ...]
    is_attained: ClassVar[bool] = False

    def epsilon(self, epsilon: Fraction | float) -> Fraction | float:
        """The largest; the pair of no kind costs more than that of the whole."""
        return max((kind.epsilon(epsilon) for _, kind, _ in self.kinds), key=as_float)

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """Gather the pairs of all kinds."""
        found = [(weight, kind.directed(own)) for weight, kind, own in self.kinds]
        if len(found) == 1:
            return found[0][1]
        remove, add = (tuple((weight, both[way]) for weight, both in found) for way in (0, 1))
        return RevealedPair(remove), RevealedPair(add)

    def log_moments(self, pair: DominatingPair) -> Floats:
        """Average the moments of all kinds."""
        return _log_average([(weight, kind.log_moments(own)) for weight, kind, own in self.kinds])


def _average(tails: list[tuple[float, tuple[Floats, Floats]]]) -> tuple[Floats, Floats]:
    p, q = (np.sum([w * both[at] for w, both in tails], axis=0) for at in (0, 1))
    return np.minimum(p, 1.0), np.minimum(q, 1.0)


def _log_average(logs: list[tuple[float, Floats]]) -> Floats:
    """Ln Σ w e^logs, rounded up."""
    weighted = np.array([math.log(weight) + np.asarray(log) for weight, log in logs])
    found: Floats = np.maximum(np.logaddexp.reduce(weighted, axis=0), 0.0) * (1 + SAFETY) + 1e-15
    return found
