"""A filter that adds up pure ε, or its squares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.accounting.budgets.base import Filter, share_of
from dpaudit.accounting.terms import Term
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import NonNegative
from dpaudit.base.numbers import holds
from dpaudit.mechanisms.rounding import round_up, up


@dataclass(eq=False)
class AdaptiveFilter(Filter):
    """Fully adaptive composition of (ε_i, δ_i)-private releases.

    Whitehouse, Ramdas, Rogers and Wu 2023, the filter for approximate privacy: as long as
    √(2 ln(1/δ') Σ ε_i²) + Σ ε_i²/2 ≤ ε and Σ δ_i ≤ δ'', the whole is (ε, δ' + δ'')-private. Basic
    composition, Σ ε_i ≤ ε (Rogers, Roth, Ullman and Vadhan 2016), needs no δ'; which
    of the two holds is fixed at the start.

    Attributes:
        epsilon: ε of the whole.
        delta: δ of the whole; 0 for basic composition.
        slack: δ'', the part of δ that pays for the δ_i, below δ.
    """

    slack: NonNegative = field(default=0.0, kw_only=True)
    _linear: Fraction = field(default=Fraction(0), init=False, repr=False)
    _squares: Fraction = field(default=Fraction(0), init=False, repr=False)
    _slack_spent: Fraction = field(default=Fraction(0), init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta > 0:
            share_of(self.slack, self.delta)
        elif self.slack > 0:
            raise InputError(f"slack is {self.slack}; it must be at most delta, 0.")

    @property
    def proved(self) -> float:
        """ε of the whole; what is spent, where it is above ε by no more than a claim admits."""
        return max(self.epsilon, self.spent)

    @property
    def spent(self) -> float:
        """ε reached so far."""
        return self._reached(self._linear, self._squares)

    def _reached(self, linear: Fraction, squares: Fraction) -> float:
        if self.delta == 0:
            return round_up(linear)
        total = round_up(squares)
        tail = -math.log(math.nextafter(self.delta - self.slack, 0.0))
        return up(math.sqrt(2 * tail * total) + total / 2, 8)

    def _charge(self, part: Term) -> bool:
        epsilon = part.sampled_epsilon
        if epsilon == math.inf:
            raise UnsupportedError(
                f"{part.invocation.describe()} has no pure ε; use a zCDP or Rényi filter."
            )
        linear = self._linear + part.count * Fraction(epsilon)
        squares = self._squares + part.count * Fraction(epsilon) ** 2
        slack = self._slack_spent + part.slack
        if not holds(self._reached(linear, squares), self.epsilon) or slack > self.slack:
            return False
        self._linear, self._squares, self._slack_spent = linear, squares, slack
        return True
