"""What a membership audit tests: a stated (ε, δ), a plan's whole curve, or both."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.accounting import guarantee
from dpaudit.auditing.evidence.one_run_families import Least, curve_least
from dpaudit.auditing.subjects import claimed_curve
from dpaudit.claim import Claim
from dpaudit.errors import InputError
from dpaudit.plan import Plan
from dpaudit.relations import MetricBall

__all__ = ["Tested", "tested"]


@dataclass(frozen=True)
class Tested:
    """The null hypothesis.

    Attributes:
        claim: its ε and δ.
        least: its curve as a test sees it; None where (ε, δ) alone is claimed.
    """

    claim: Claim
    least: Least | None

    @property
    def words(self) -> str:
        """What is tested, for the record."""
        return "(ε, δ) alone" if self.least is None else "the plan's whole curve δ(ε)"


def tested(epsilon: float | None, delta: float, plan: Plan | None) -> Tested:
    """The hypothesis of an audit: a plan gives its curve, and its ε where none is stated.

    A claim that is looser than its plan is tested alone.

    Raises:
        InputError: if there is neither ε nor plan, the plan proves no finite ε at δ, or its
            neighbours do not differ in who takes part.
    """
    if plan is None:
        if epsilon is None:
            raise InputError("epsilon is missing, and there is no plan; give one of them.")
        return Tested(Claim(epsilon, delta), None)
    if isinstance(plan.relation, MetricBall):
        raise InputError(
            f"plan has the relation {plan.relation}; membership is a matter of add-remove, "
            "zero-out or replace-one."
        )
    if epsilon is None:
        epsilon = guarantee(plan, delta).epsilon
        if epsilon == math.inf:
            raise InputError(f"delta is {delta:g}; the plan proves no finite epsilon there.")
    claim = Claim(epsilon, delta)
    curve, _ = claimed_curve(plan, claim)
    return Tested(claim, None if curve is None else curve_least(curve))
