"""What a membership audit tests: a stated (ε, δ), a plan's whole curve, or both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.accounting import guarantee
from dpaudit.auditing.evidence.one_run_families import (
    Least,
    approximate_least,
    curve_least,
)
from dpaudit.auditing.subjects.declared import claimed_curve
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim
from dpaudit.plan import MetricBall, Plan


@dataclass(frozen=True)
class MembershipNull:
    """The null hypothesis.

    Attributes:
        claim: its ε and δ.
        least: its curve as a test sees it; None where (ε, δ) alone is claimed.
        tighter: whether the claim says more than the plan's curve does.
    """

    claim: Claim
    least: Least | None
    tighter: bool = False

    @property
    def words(self) -> str:
        """What is tested, for the record."""
        if self.least is None:
            return "(ε, δ) alone"
        beside = ", and the tighter (ε, δ) of the claim" if self.tighter else ""
        return f"the plan's whole curve δ(ε){beside}"


def membership_null(epsilon: float | None, delta: float, plan: Plan | None) -> MembershipNull:
    """The hypothesis of an audit: a plan gives its curve, and its ε where none is stated.

    A claim that is looser than its plan is tested alone, a tighter one together with the curve:
    each of them must hold.

    Raises:
        InputError: if there is neither ε nor plan, the plan proves no finite ε at δ, or its
            neighbours do not differ in who takes part.
    """
    if plan is not None and not isinstance(plan, Plan):
        raise InputError(f"plan is {plan!r:.60}; it must be a Plan.")
    if plan is None:
        if epsilon is None:
            raise InputError("epsilon is missing, and there is no plan; give one of them.")
        return MembershipNull(Claim(epsilon, delta), None)
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
    if curve is None:
        return MembershipNull(claim, None)
    tighter = bool(curve(np.array([claim.epsilon]))[0] > claim.delta)
    of_plan, of_claim = curve_least(curve), approximate_least(claim.epsilon, claim.delta)
    return MembershipNull(claim, lambda p: np.maximum(of_plan(p), of_claim(p)), tighter)


def bound_as_json(epsilon: float) -> float | str:
    """A bound on ε in the details of a record, where strict JSON has no infinity.

    >>> bound_as_json(1.5), bound_as_json(math.inf)
    (1.5, 'infinity')
    """
    return "infinity" if epsilon == math.inf else epsilon
