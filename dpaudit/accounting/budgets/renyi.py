"""A filter at several Rényi orders."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.budgets.base import Filter, refuse_slack
from dpaudit.accounting.closed_forms.rdp import renyi_curve
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.terms import Term
from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability, Positive
from dpaudit.mechanisms.pairs import Floats


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
