"""Privacy filters: pure ε and its squares, ρ of zCDP, and moments at several Rényi orders.

Each refuses the release that would pass its limit, also where parameters follow from releases.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.closed_forms.additive import rho_of, zcdp_epsilon
from dpaudit.accounting.closed_forms.rdp import renyi_curve
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.terms import Term, terms
from dpaudit.base import validate
from dpaudit.base.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.base.fields import Checked, NonNegative, OpenProbability, Positive, Probability
from dpaudit.base.numbers import holds
from dpaudit.base.validate import shown
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import round_up, up
from dpaudit.plan import Invocation, PrivacyUnit, Relation

Protected = tuple[PrivacyUnit, Relation]


def refuse_others(invocation: Invocation, protected: Protected | None) -> Protected:
    """Refuse an invocation that protects another unit, or under another relation.

    Raises:
        InputError: if it does, or is none.
    """
    if not isinstance(invocation, Invocation):
        raise InputError(f"invocation is {shown(invocation)}; it must be an Invocation.")
    own = invocation.unit, invocation.relation
    if protected not in (None, own):
        assert protected is not None
        unit, relation = protected
        raise InputError(
            f"{invocation.describe()} protects {invocation.unit} under {invocation.relation}; "
            f"this budget is for {unit} under {relation}."
        )
    return own


@dataclass(eq=False)
class Filter(Checked, ABC):
    """Admits releases about one unit under one relation, chosen adaptively, while a budget lasts.

    Attributes:
        epsilon: ε of the whole, whatever was admitted.
        delta: δ of the whole.
        admitted: number of invocations charged so far.
    """

    epsilon: NonNegative
    delta: Probability
    admitted: int = field(default=0, init=False)
    _protected: Protected | None = field(default=None, init=False, repr=False)

    @property
    def proved(self) -> float:
        """ε of the whole, rounded up; that of decimals whose sum it is, as floats add them."""
        return self.epsilon

    def admit(self, invocation: Invocation) -> None:
        """Charge an invocation, before it is run; or refuse it and charge nothing.

        Raises:
            BudgetExceededError: if it would exceed the budget; the message names it.
            UnsupportedError: if no theorem covers it.
            InputError: if it protects another unit or relation than those before.
        """
        protected = refuse_others(invocation, self._protected)
        before = dict(vars(self))
        if not all(map(self._charge, terms([invocation]))):  # none where it costs nothing
            vars(self).update(before)  # some parts of it may have been charged
            raise BudgetExceededError(
                f"{invocation.describe()} would exceed the budget of ε={self.epsilon:g} at "
                f"δ={self.delta:g}; {self.admitted} invocations were admitted and nothing was "
                "drawn for this one."
            )
        self._protected = protected
        self.admitted += 1

    @abstractmethod
    def _charge(self, part: Term) -> bool:
        """Charge and return True, or leave everything as it is and return False."""


def share_of(slack: float, delta: float) -> float:
    """The part of δ that pays for the δ of black boxes.

    Raises:
        InputError: if it leaves nothing of δ.
    """
    share = validate.non_negative(slack=slack)
    if share >= delta:
        raise InputError(f"slack is {slack}; it must be below delta, {delta}.")
    return share


def refuse_slack(part: Term) -> None:
    """Refuse a mechanism with a δ of its own.

    Raises:
        UnsupportedError: naming it.
    """
    if part.slack:
        raise UnsupportedError(
            f"{part.invocation.describe()} has a δ of its own; use a zCDP or adaptive filter."
        )


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


@dataclass(eq=False)
class RenyiFilter(Filter):
    """Stops when no order of a fixed set has budget left; it takes sampled mechanisms.

    At one order the sum of divergences may be filled adaptively (the Rényi filter of Feldman and
    Zrnic 2021 and of Lécuyer 2021). Several orders share δ: the transcripts that end within the
    budget of an order are as likely as under the filter of that order alone, so by the union over m
    orders each is converted at δ/m.

    Attributes:
        epsilon: ε of the whole.
        delta: δ of the whole, above 0.
        orders: the orders, each replaced by the next one of the accounting grid.
    """

    delta: OpenProbability
    orders: tuple[Positive, ...] = field(default=(1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64), kw_only=True)
    _budgets: Floats = field(init=False, repr=False)
    _at: NDArray[np.intp] = field(init=False, repr=False)
    _spent: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.orders or min(self.orders) <= 1 or max(self.orders) > ORDERS[-1]:
            raise InputError(f"orders is {self.orders}; it must hold numbers above 1.")
        self._at = np.unique(np.searchsorted(ORDERS, self.orders))
        orders = ORDERS[self._at]
        self.orders = tuple(orders.tolist())
        share = math.log(self.delta) - math.log(orders.size)
        penalty = np.log1p(-1 / orders) - (share + np.log(orders)) / (orders - 1)
        self._budgets = (self.epsilon - penalty) * (1 - 1e-12) - 1e-15
        self._spent = np.zeros(orders.size)

    @property
    def budgets(self) -> Floats:
        """The budget of divergence at each order, shape (m,); negative where it is of no use."""
        return self._budgets.copy()

    @property
    def spent(self) -> Floats:
        """Divergences charged so far, at each order, rounded up."""
        return self._spent.copy()

    def _charge(self, part: Term) -> bool:
        refuse_slack(part)
        spent = (self._spent + part.count * renyi_curve(part)[self._at]) * (1 + 2.0**-51)
        if not (spent <= self._budgets).any():
            return False
        self._spent = spent
        return True


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
