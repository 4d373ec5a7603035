"""What adaptively chosen releases have cost so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpaudit.accounting.budgets.base import Running, refuse_slack
from dpaudit.accounting.closed_forms.rdp import renyi_curve
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.proved import CurvePoint
from dpaudit.fields import OpenProbability
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import round_up, up
from dpaudit.plan import Invocation

__all__ = ["Odometer"]

_AT = np.arange(0, ORDERS.size, 6)


@dataclass(eq=False)
class Odometer(Running):
    """The ε spent so far, valid at all times at once, for parameters chosen adaptively.

    The time-uniform argument of Whitehouse, Ramdas, Rogers and Wu 2023, at several Rényi orders: at
    each order α of a fixed set, exp((α − 1)(L_t − Σ D_α)) is a nonnegative supermartingale under
    the first data set, L_t being the privacy loss so far and D_α the divergences of what was
    chosen. By Ville's inequality and the union over m orders, with probability 1 − δ for every t
    and α, L_t ≤ Σ D_α + ln(m/δ)/(α − 1). So at every stopping time the releases so far are
    (ε_t, δ)-private with the least of these.

    Attributes:
        delta: δ of all statements together, in (0, 1).
    """

    delta: OpenProbability
    _spent: Floats = field(default_factory=lambda: np.zeros(_AT.size), init=False, repr=False)
    _pure: Fraction = field(default=Fraction(0), init=False, repr=False)
    _unbounded: bool = field(default=False, init=False, repr=False)

    def record(self, invocation: Invocation) -> CurvePoint:
        """Charge an invocation and return what is spent with it.

        Raises:
            UnsupportedError: if no theorem covers it.
            InputError: if it protects another unit or relation than those before.
        """
        part = self._price(invocation)
        if part is not None:
            refuse_slack(part)
            curve = part.count * renyi_curve(part)[_AT]
            self._spent = (self._spent + curve) * (1 + 2.0**-51)
            self._unbounded |= part.sampled_epsilon == math.inf
            if not self._unbounded:
                self._pure += part.count * Fraction(part.sampled_epsilon)
        self._charged(invocation)
        return self.spent

    @property
    def spent(self) -> CurvePoint:
        """The ε so far, at the odometer's δ."""
        if self.admitted == 0 or not self._spent.any():
            return CurvePoint(0.0, self.delta)
        tail = (math.log(_AT.size) - math.log(self.delta)) / (ORDERS[_AT] - 1)
        epsilon = up(float((self._spent + tail).min()), 8)
        cap = math.inf if self._unbounded else round_up(self._pure)
        return CurvePoint(min(epsilon, cap), self.delta)
