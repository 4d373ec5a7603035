"""What a privacy filter proves of the releases that it admitted, whatever stopped them.

A filter holds for what is chosen from earlier releases, so that its ε is proved of a run that it
ended, where the plan says only what could have run at most. A certificate names the filter and how
often it admitted each invocation; whoever verifies it admits them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from dpaudit import accounting
from dpaudit.accounting import Guarantee
from dpaudit.accounting.accountant import FILTER, CurvePoint
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError, UnsupportedError
from dpaudit.base.fields import NonNegative, Positive, Probability, Record
from dpaudit.base.validate import shown
from dpaudit.plan import Plan

if TYPE_CHECKING:
    from dpaudit.accounting import Filter

_KINDS = {"adaptive": "AdaptiveFilter", "renyi": "RenyiFilter", "zcdp": "ZcdpFilter"}
"""Classes of :mod:`dpaudit.accounting`, which are imported where a certificate has one."""


@dataclass(frozen=True)
class FilterRecord(Record):
    """A filter that all releases passed, and what it admitted.

    Attributes:
        kind: ``adaptive``, ``renyi`` or ``zcdp``.
        epsilon: ε of all that is admitted.
        delta: δ of it.
        slack: the part of δ that pays for the δ of mechanisms.
        orders: of a Rényi filter.
        admitted: how often each invocation passed, by its label.
    """

    kind: str
    epsilon: NonNegative
    delta: Probability
    slack: NonNegative = 0.0
    orders: tuple[Positive, ...] = ()
    admitted: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: object, admitted: Mapping[str, int]) -> Self | None:
        """That of a ledger's budget; None where it is none of this package's filters.

        Args:
            budget: what the ledger asked.
            admitted: how often each invocation passed, by its label.
        """
        if not isinstance(budget, accounting.Filter):
            return None
        classes = {getattr(accounting, name): kind for kind, name in _KINDS.items()}
        kind = classes.get(type(budget))
        if kind is None:
            return None
        own = {name: getattr(budget, name) for name in ("slack", "orders") if hasattr(budget, name)}
        return cls(kind, budget.epsilon, budget.delta, admitted=dict(admitted), **own)

    def again(self, plan: Plan) -> Filter:
        """A filter that admits again what was admitted.

        Raises:
            InputError: if no such filter admits so much of this plan.
        """
        if self.kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise InputError(f"filtered.kind is {shown(self.kind)}; it must be one of {known}.")
        own = {"slack": self.slack, "orders": self.orders}
        try:
            anew: Filter = getattr(accounting, _KINDS[self.kind])(
                self.epsilon, self.delta, **{name: each for name, each in own.items() if each}
            )
        except TypeError:
            raise InputError(
                f"filtered has fields that the kind {self.kind!r} does not have."
            ) from None
        declared = {each.at: each for each in plan.invocations}
        for at, times in self.admitted.items():
            known_as = declared.get(at)
            if known_as is None or type(times) is not int or not 0 < times <= known_as.releases:
                raise InputError(
                    f"filtered.admitted has {shown(times)} at {shown(at)}; the plan declares less."
                )
            try:
                anew.admit(replace(known_as, count=times, total=times))
            except (BudgetExceededError, UnsupportedError):
                raise TamperedError("filtered.admitted is more than the filter admits.") from None
        return anew

    def releases(self, plan: Plan) -> str:
        """How many passed, of how many at most."""
        most = sum(each.releases for each in plan.invocations)
        return f"{sum(self.admitted.values())} of at most {most}"

    def bounded(self, plan: Plan, proved: Guarantee | None, delta: float) -> Guarantee | None:
        """The lesser of what the plan proves at δ and what the filter does.

        Raises:
            InputError: if no such filter admits what is said to have passed.
        """
        epsilon = self.again(plan).proved
        if not self.admitted:
            return proved
        if delta < self.delta or (proved is not None and proved.epsilon <= epsilon):
            return proved
        curve = () if proved is None else proved.curve
        kept = [each for each in curve if each.epsilon < epsilon or each.delta < self.delta]
        points = sorted((*kept, CurvePoint(epsilon, self.delta)), key=lambda each: each.epsilon)
        compared = {} if proved is None else dict(proved.compared)
        return Guarantee(
            epsilon=epsilon,
            delta=delta,
            accountant=FILTER,
            error_bound=None,
            native={"filter": self.kind, "delta": self.delta},
            curve=tuple(points),
            compared=compared | {FILTER: epsilon},
        )
