"""Budgets at run time: filters that refuse in time, and an odometer.

Parameters may be chosen from what was released before. Composition theorems for parameters fixed in
advance do not cover that; those used here do, and each is named where it is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NoReturn

import numpy as np

from dpaudit import validate
from dpaudit.accounting.closed_forms.rdp import ORDERS, renyi_curve
from dpaudit.accounting.closed_forms.zcdp import rho_of, zcdp_epsilon
from dpaudit.accounting.proved import AccountantName, CurvePoint
from dpaudit.accounting.terms import Term, round_up, terms, up
from dpaudit.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation, PrivacyUnit, Relation

__all__ = ["AdaptiveFilter", "Filter", "Odometer", "RenyiFilter", "ZcdpFilter", "filter_for"]


class _Running:
    """What filters and odometers share: one unit, one relation, and a history that stays."""

    def __init__(self) -> None:
        self._protected: tuple[PrivacyUnit, Relation] | None = None
        self.admitted = 0
        """Number of invocations charged so far."""

    def _price(self, invocation: Invocation) -> Term | None:
        """The invocation as a term; None where it costs nothing."""
        if not isinstance(invocation, Invocation):
            raise InputError(f"invocation is {invocation!r}; it must be an Invocation.")
        protected = invocation.unit, invocation.relation
        if self._protected is not None and self._protected != protected:
            unit, relation = self._protected
            raise InputError(
                f"{invocation.describe()} protects {invocation.unit} under {invocation.relation}; "
                f"this budget is for {unit} under {relation}."
            )
        found = terms([invocation])
        return found[0] if found else None

    def _charged(self, invocation: Invocation) -> None:
        self._protected = invocation.unit, invocation.relation
        self.admitted += 1

    def undo(self, invocation: Invocation | None = None) -> NoReturn:
        """Refused: what was released stays released.

        Raises:
            UnsupportedError: always.
        """
        named = "a release" if invocation is None else invocation.describe()
        raise UnsupportedError(f"{named} cannot be undone; what was released stays released.")


class Filter(_Running, ABC):
    """Admits releases, of parameters chosen adaptively, while a budget lasts.

    Attributes:
        epsilon: ε of the whole, whatever was admitted.
        delta: δ of the whole.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__()
        self.epsilon = validate.non_negative(epsilon=epsilon)
        self.delta = validate.probability(delta=delta)

    def admit(self, invocation: Invocation) -> None:
        """Charge an invocation, before it is run; or refuse it and charge nothing.

        Raises:
            BudgetExceededError: if it would exceed the budget; the message names it.
            UnsupportedError: if no theorem covers it.
            InputError: if it protects another unit or relation than those before.
        """
        part = self._price(invocation)
        if part is not None and not self._charge(part):
            raise BudgetExceededError(
                f"{invocation.describe()} would exceed the budget of ε={self.epsilon:g} at "
                f"δ={self.delta:g}; {self.admitted} invocations were admitted and nothing was "
                "drawn for this one."
            )
        self._charged(invocation)

    @abstractmethod
    def _charge(self, part: Term) -> bool:
        """Charge and return True, or leave everything as it is and return False."""


class ZcdpFilter(Filter):
    """Stops before the sum of ρ exceeds its budget; the whole is then ρ-zCDP.

    Whitehouse, Ramdas, Rogers and Wu 2023, the filter for approximate zCDP (for δ_i = 0 also
    Feldman and Zrnic 2021, at every order at once). The δ_i of (ε_i, δ_i)-private black boxes
    are charged to their own share of δ.

    Args:
        epsilon: ε of the whole.
        delta: δ of the whole, above 0.
        slack: the part of δ that pays for black boxes, below δ.
    """

    def __init__(self, epsilon: float, delta: float, *, slack: float = 0.0) -> None:
        super().__init__(epsilon, validate.open_fraction(delta=delta))
        self.slack = _share_of(slack, delta)
        self.rho = _largest_rho(self.epsilon, math.nextafter(self.delta - self.slack, 0.0))
        """The budget of ρ, rounded down."""
        self._spent = Fraction(0)
        self._slack_spent = Fraction(0)

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
        if spent > Fraction(self.rho) or slack > Fraction(self.slack):
            return False
        self._spent, self._slack_spent = spent, slack
        return True


class RenyiFilter(Filter):
    """Stops when no order of a fixed set has budget left; it takes sampled mechanisms.

    At one order the sum of divergences may be filled adaptively (the Rényi filter of Feldman and
    Zrnic 2021 and of Lécuyer 2021). Several orders share δ: the transcripts that end within the
    budget of an order are as likely as under the filter of that order alone, so by the union over m
    orders each is converted at δ/m.

    Args:
        epsilon: ε of the whole.
        delta: δ of the whole, above 0.
        orders: the orders, each replaced by the next one of the accounting grid.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        orders: tuple[float, ...] = (1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64),
    ) -> None:
        super().__init__(epsilon, validate.open_fraction(delta=delta))
        self._at = _grid(orders)
        self.orders: Floats = ORDERS[self._at]
        """The orders in use."""
        share = math.log(self.delta) - math.log(self._at.size)
        penalty = np.log1p(-1 / self.orders) - (share + np.log(self.orders)) / (self.orders - 1)
        self.budgets: Floats = (self.epsilon - penalty) * (1 - 1e-12) - 1e-15
        """The budget of Rényi divergence at each order; negative where the order is of no use."""
        self._spent: Floats = np.zeros(self._at.size)

    @property
    def spent(self) -> Floats:
        """Divergences charged so far, at each order, rounded up."""
        return self._spent.copy()

    def _charge(self, part: Term) -> bool:
        _refuse_slack(part)
        spent = (self._spent + part.count * renyi_curve(part)[self._at]) * (1 + 2.0**-51)
        if not (spent <= self.budgets).any():
            return False
        self._spent = spent
        return True


class AdaptiveFilter(Filter):
    """Fully adaptive composition of (ε_i, δ_i)-private releases.

    Whitehouse, Ramdas, Rogers and Wu 2023, the filter for approximate privacy: as long as
    √(2 ln(1/δ') Σ ε_i²) + Σ ε_i²/2 ≤ ε and Σ δ_i ≤ δ'', the whole is (ε, δ' + δ'')-private. Basic
    composition, Σ ε_i ≤ ε (Rogers, Roth, Ullman and Vadhan 2016), needs no δ'; which
    of the two holds is fixed at the start.

    Args:
        epsilon: ε of the whole.
        delta: δ of the whole; 0 for basic composition.
        slack: δ'', the part of δ that pays for the δ_i, below δ.
    """

    def __init__(self, epsilon: float, delta: float, *, slack: float = 0.0) -> None:
        super().__init__(epsilon, delta)
        self.slack = _share_of(slack, delta) if delta > 0 else validate.non_negative(slack=slack)
        if self.slack > self.delta:
            raise InputError(f"slack is {slack}; it must be at most delta, {delta}.")
        self._linear = Fraction(0)
        self._squares = Fraction(0)
        self._slack_spent = Fraction(0)

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
        if self._reached(linear, squares) > self.epsilon or slack > Fraction(self.slack):
            return False
        self._linear, self._squares, self._slack_spent = linear, squares, slack
        return True


class Odometer(_Running):
    """The ε spent so far, valid at all times at once, for parameters chosen adaptively.

    The time-uniform argument of Whitehouse, Ramdas, Rogers and Wu 2023, at several Rényi orders: at
    each order α of a fixed set, exp((α − 1)(L_t − Σ D_α)) is a nonnegative supermartingale under
    the first data set, L_t being the privacy loss so far and D_α the divergences of what was
    chosen. By Ville's inequality and the union over m orders, with probability 1 − δ for every t
    and α, L_t ≤ Σ D_α + ln(m/δ)/(α − 1). So at every stopping time the releases so far are
    (ε_t, δ)-private with the least of these.

    Args:
        delta: δ of all statements together, in (0, 1).
    """

    def __init__(self, delta: float) -> None:
        super().__init__()
        self.delta = validate.open_fraction(delta=delta)
        self._at = np.arange(0, ORDERS.size, 6)
        self._spent: Floats = np.zeros(self._at.size)
        self._pure = Fraction(0)
        self._unbounded = False

    def record(self, invocation: Invocation) -> CurvePoint:
        """Charge an invocation and return what is spent with it.

        Raises:
            UnsupportedError: if no theorem covers it.
            InputError: if it protects another unit or relation than those before.
        """
        part = self._price(invocation)
        if part is not None:
            _refuse_slack(part)
            curve = part.count * renyi_curve(part)[self._at]
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
        tail = (math.log(self._at.size) - math.log(self.delta)) / (ORDERS[self._at] - 1)
        epsilon = up(float((self._spent + tail).min()), 8)
        cap = math.inf if self._unbounded else round_up(self._pure)
        return CurvePoint(min(epsilon, cap), self.delta)


def filter_for(accountant: AccountantName | str, epsilon: float, delta: float) -> Filter:
    """The filter of an accountant: pure, zcdp or rdp; best takes rdp.

    Raises:
        UnsupportedError: for accountants whose theorem needs parameters fixed in advance.
    """
    name = AccountantName.parse(accountant)
    if name is AccountantName.PURE:
        return AdaptiveFilter(epsilon, delta)
    if name is AccountantName.ZCDP:
        return ZcdpFilter(epsilon, delta)
    if name in (AccountantName.RDP, AccountantName.BEST):
        return RenyiFilter(epsilon, delta)
    raise UnsupportedError(
        f"{name} composes parameters that are fixed in advance; where they may be chosen from "
        "earlier releases its composition theorem does not hold, so use zcdp, rdp or pure."
    )


def _share_of(slack: float, delta: float) -> float:
    share = validate.non_negative(slack=slack)
    if share >= delta:
        raise InputError(f"slack is {slack}; it must be below delta, {delta}.")
    return share


def _refuse_slack(part: Term) -> None:
    if part.slack:
        raise UnsupportedError(
            f"{part.invocation.describe()} has a δ of its own; use a zCDP or adaptive filter."
        )


def _grid(orders: tuple[float, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    wanted = [validate.positive(order=order) for order in orders]
    if not wanted or min(wanted) <= 1 or max(wanted) > ORDERS[-1]:
        raise InputError(f"orders is {orders}; it must hold numbers above 1.")
    return np.unique(np.searchsorted(ORDERS, wanted))


def _largest_rho(epsilon: float, delta: float) -> float:
    """The largest ρ that converts to at most ε at δ, rounded down."""
    low, high = 0.0, max(2 * epsilon, 1e-300)
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low
