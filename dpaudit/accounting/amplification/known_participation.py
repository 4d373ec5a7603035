"""Samples that both neighbours draw alike, where no theorem says that they amplify."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpaudit.accounting.amplification.base import Amplification, DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import SampledPair, TwoTails
from dpaudit.accounting.orders import ORDERS
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats


@dataclass(frozen=True)
class KnownPair(SampledPair):
    """With probability q the base pair, else two equal laws; and which of the two is known."""

    _end: ClassVar[float] = 1.0

    def _mixed(self, tails: TwoTails, loss: Floats, outside: float) -> tuple[Floats, Floats]:
        p, q = tails(loss)
        atom = (1 - self.rate) * np.where(loss < 0, outside, 1 - outside)
        return atom + self.rate * p, atom + self.rate * q

    def nodes(self, tail: float, count: int) -> Floats:
        """Those of the base, and 0, where the laws are equal."""
        return np.unique(np.append(PlainPair(self.base).nodes(tail, count), 0.0))

    @property
    def max_loss(self) -> float:
        """That of the base."""
        return PlainPair(self.base).max_loss


@dataclass(frozen=True)
class KnownParticipation(Amplification):
    """A sample that is drawn alike for both neighbours, which both have the unit in question.

    Tell the adversary whether the unit is drawn, which is more than what is released. If so, the
    others are the same on both sides, and the values differ by at most the declared sensitivity; if
    not, they are equal. So the two mixtures dominate, of any mechanism, and the profile is q δ(ε).
    A release of how many were drawn, beside an answer of the base's ε, attains it.
    """

    is_attained: ClassVar[bool] = False

    def epsilon(self, epsilon: Fraction | float) -> Fraction | float:
        """Unchanged: a unit that is known to be drawn has no other."""
        return epsilon

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """The same pair both ways."""
        known = KnownPair(pair, self.rate)
        return known, known

    def log_moments(self, pair: DominatingPair) -> Floats:
        """Bound the moments of the mixture."""
        return self._shared_moments((ORDERS - 1) * pair.renyi(ORDERS))

    def integer_moments(self, pair: DominatingPair, orders: tuple[int, ...]) -> Floats:
        """The same."""
        alpha = np.asarray(orders, dtype=np.float64)
        return self._shared_moments((alpha - 1) * pair.renyi(alpha))
