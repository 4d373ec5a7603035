"""What all filters share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from dpaudit.accounting.terms import Term, terms
from dpaudit.base import validate
from dpaudit.base.errors import BudgetExceededError, InputError, UnsupportedError
from dpaudit.base.fields import Checked, NonNegative, Probability
from dpaudit.base.validate import shown
from dpaudit.plan import Invocation, PrivacyUnit, Relation


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
    _protected: tuple[PrivacyUnit, Relation] | None = field(default=None, init=False, repr=False)

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
        if not isinstance(invocation, Invocation):
            raise InputError(f"invocation is {shown(invocation)}; it must be an Invocation.")
        protected = invocation.unit, invocation.relation
        if self._protected is not None and self._protected != protected:
            unit, relation = self._protected
            raise InputError(
                f"{invocation.describe()} protects {invocation.unit} under {invocation.relation}; "
                f"this budget is for {unit} under {relation}."
            )
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
