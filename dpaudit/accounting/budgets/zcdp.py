"""A filter that adds up ρ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.accounting.budgets.base import Filter, share_of
from dpaudit.accounting.closed_forms.zcdp import rho_of, zcdp_epsilon
from dpaudit.accounting.terms import Term
from dpaudit.base.fields import NonNegative, OpenProbability
from dpaudit.mechanisms.rounding import round_up


@dataclass(eq=False)
class ZcdpFilter(Filter):
    """Stops before the sum of ρ exceeds its budget; the whole is then ρ-zCDP.

    Whitehouse, Ramdas, Rogers and Wu 2023, the filter for approximate zCDP (for δ_i = 0 also
    Feldman and Zrnic 2021, at every order at once). The δ_i of (ε_i, δ_i)-private black boxes
    are charged to their own share of δ.

    Attributes:
        epsilon: ε of the whole.
        delta: δ of the whole, above 0.
        slack: the part of δ that pays for black boxes, below δ.
    """

    delta: OpenProbability
    slack: NonNegative = field(default=0.0, kw_only=True)
    _rho: float = field(init=False, repr=False)
    _spent: Fraction = field(default=Fraction(0), init=False, repr=False)
    _slack_spent: Fraction = field(default=Fraction(0), init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        left = self.delta - share_of(self.slack, self.delta)
        self._rho = _largest_rho(self.epsilon, math.nextafter(left, 0.0))

    @property
    def rho(self) -> float:
        """The budget of ρ, rounded down."""
        return self._rho

    @property
    def spent(self) -> float:
        """ρ charged so far, rounded up."""
        return round_up(self._spent)

    def _charge(self, part: Term) -> bool:
        rho = rho_of(part)
        if rho == math.inf:
            return False
        spent = self._spent + part.count * Fraction(rho)
        slack = self._slack_spent + part.slack
        if spent > Fraction(self._rho) or slack > Fraction(self.slack):
            return False
        self._spent, self._slack_spent = spent, slack
        return True


def _largest_rho(epsilon: float, delta: float) -> float:
    """The largest ρ that converts to at most ε at δ, rounded down."""
    low, high = 0.0, max(2 * epsilon, 1e-300)
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low
