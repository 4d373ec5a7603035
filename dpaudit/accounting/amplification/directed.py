"""Directed dominating pairs: what sampling makes of the symmetric pair of a mechanism.

Whether a unit joins or leaves the data costs the same for a symmetric pair, but not for a sampled
one. An invocation therefore has two directed pairs, *remove* and *add*; each composes with its own
kind, and a guarantee is the worse of the two.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.fields import Checked
from dpaudit.mechanisms import DominatingPair, FinitePair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float

SMALLEST_DELTA = 1e-280
"""Probabilities below it may stand for masses that no float holds."""

TAIL_UNITS = 2.0**-50
"""What a difference of two probabilities may be off by."""


@dataclass(frozen=True, eq=False)
class DirectedPair(Checked, ABC):
    """A pair (P, Q), not necessarily symmetric, seen through its loss L = ln dP/dQ."""

    @abstractmethod
    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L > loss], Q[L > loss]), accurate relative to themselves in the upper tail."""

    @abstractmethod
    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L <= loss], Q[L <= loss]), accurate relative to themselves in the lower tail."""

    @abstractmethod
    def nodes(self, tail: float, count: int) -> Floats:
        """Choose about ``count`` increasing losses that resolve the law of L.

        About ``tail`` of the P-mass lies below the first and at most that much above the last
        (mass at infinity apart).
        """

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """The largest loss, rounded up; infinity where there is none."""

    @property
    def is_attained(self) -> bool:
        """As :attr:`dpaudit.mechanisms.DominatingPair.is_attained`."""
        return True

    @cached_property
    def infinite(self) -> float:
        """The P-mass of infinite loss."""
        return float(self.above(math.inf)[0])

    @property
    def truly_infinite(self) -> float:
        """The same; 0 where it is so rare that it may stand for what a pair left out of its law."""
        return 0.0 if self.infinite < SMALLEST_DELTA else self.infinite

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Finite losses and their P-masses where there are finitely many losses, else None."""
        return None

    @property
    def span(self) -> float | None:
        """A loss that a grid should divide, because the law has an atom there; or None."""
        return None

    @property
    def total_variation(self) -> float:
        """The divergence at ε = 0, rounded up."""
        return min(float(self.delta(0.0)) * (1 + 1e-9) + TAIL_UNITS, 1.0)

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
    """A symmetric pair as it is: both directions cost the same.

    Attributes:
        base: the symmetric pair.
    """

    base: DominatingPair

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """P- and Q-mass of losses above, as of the base."""
        return self.base.above(loss)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """P- and Q-mass of losses below, as of the base."""
        return self.base.below(loss)

    def nodes(self, tail: float, count: int) -> Floats:
        """Evenly spaced losses."""
        return even(self.base.lower_quantile(tail), self.base.upper_quantile(tail), count)

    @property
    def max_loss(self) -> float:
        """The pure ε of the base."""
        return as_float(self.base.pure_epsilon)

    @property
    def is_attained(self) -> bool:
        """As the base."""
        return self.base.is_attained

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Losses and masses of a finite base; None for any other."""
        if isinstance(self.base, FinitePair):
            return self.base.losses, self.base.p
        return None

    @property
    def span(self) -> float | None:
        """The loss that a grid should divide, if the base has one."""
        return self.base.span


def even(low: float, high: float, count: int) -> Floats:
    """Evenly spaced losses; one where the two ends meet, two where they are infinite."""
    if not high > low:
        return np.array([low])
    return (
        np.array([low, high])
        if count == 2 or math.isinf(high - low)
        else np.linspace(low, high, count)
    )
