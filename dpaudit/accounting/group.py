"""Guarantees for groups of units, for users with several rows, and for larger distances."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from dpaudit import validate
from dpaudit.accounting.terms import Term, terms, use_of
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import AdditiveNoise, ApproximateBlackBox, Mechanism, PureBlackBox
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import Invocation, MetricBall, Plan, PrivacyUnit

__all__ = ["at_radius", "for_group", "for_users"]


def for_group(plan: Plan, size: int, *, unit: PrivacyUnit | None = None) -> Plan:
    """The plan that protects ``size`` units together.

    A shift mechanism without sampling has ``size`` times its sensitivity. Of the others the group
    gets what is proved of any mechanism: kε from a pure ε; (kε, δ(e^kε − 1)/(e^ε − 1)) from an
    (ε, δ) (Vadhan 2017, Lemma 2.2); k²ρ from ρ-zCDP (Bun and Steinke 2016, Proposition 1.9).

    Args:
        plan: what protects one unit.
        size: number of units in a group, at least 1.
        unit: what the group is called; "group of k units" where not given.

    Raises:
        UnsupportedError: if no theorem covers an invocation, or if disjoint sets of units are
            treated differently, as the group may be spread over them.
    """
    size = validate.integer_at_least(1, size=size)
    unit = unit or PrivacyUnit(f"group of {size} {plan.unit}"[:80])
    groups = plan.by_unit()
    if len({frozenset((use_of(each), each.count) for each in group) for group in groups}) > 1:
        raise UnsupportedError(
            "the plan treats disjoint sets of units differently; a group spread over them has no "
            "theorem here, so plan for the group directly."
        )
    return Plan(tuple(_for_group(each, size, unit) for each in groups[0]))


def for_users(plan: Plan, rows: int, *, unit: PrivacyUnit | None = None) -> Plan:
    """The plan that protects a user who contributes at most ``rows`` rows.

    Raises:
        UnsupportedError: as :func:`for_group`.
    """
    rows = validate.integer_at_least(1, rows=rows)
    return for_group(plan, rows, unit=unit or PrivacyUnit("user"))


def at_radius(plan: Plan, radius: float) -> Plan:
    """The plan for neighbours at most ``radius`` apart, in the metric of its relation.

    It takes the released query to be Lipschitz, so that its sensitivity is proportional to the
    distance; queries with integer values are not.

    Raises:
        InputError: if the plan's relation is not a metric ball.
        UnsupportedError: if an invocation is sampled or is not additive, real-valued noise.
    """
    radius = validate.positive(radius=radius)
    relation = plan.relation
    if not isinstance(relation, MetricBall):
        raise InputError(f"relation is {relation}; at_radius needs a metric-ball.")
    ratio = Fraction(radius) / Fraction(relation.radius)
    moved = []
    for invocation in plan.invocations:
        mechanism = invocation.mechanism
        lipschitz = isinstance(mechanism, AdditiveNoise) and mechanism.real_valued
        if not lipschitz or invocation.sampling:
            raise UnsupportedError(
                f"{invocation.describe()} has no sensitivity proportional to the distance; "
                "at_radius takes real-valued noise, such as laplace and gaussian, without sampling."
            )
        sensitivity = round_up(Fraction(invocation.sensitivity) * ratio)
        moved.append(replace(invocation, sensitivity=sensitivity, relation=MetricBall(radius)))
    return Plan(tuple(moved))


def _for_group(invocation: Invocation, size: int, unit: PrivacyUnit) -> Invocation:
    alone = replace(invocation, unit=unit, group=None)
    if size == 1 or invocation.sensitivity == 0:
        return alone
    part = terms([invocation])[0]
    if part.amplification is None and _shifts_add_up(invocation):
        longer = round_up(Fraction(invocation.sensitivity) * size)
        with suppress(InputError):  # a mechanism may have no pair for so long a shift
            invocation.mechanism.pair(longer)
            return replace(alone, sensitivity=longer)
    return replace(alone, mechanism=_black_box(part, size), sensitivity=1.0, sampling=None)


def _shifts_add_up(invocation: Invocation) -> bool:
    """Whether the group costs at most one long shift: of each release, or of any of them."""
    mechanism = invocation.mechanism
    return isinstance(mechanism, AdditiveNoise) and (
        mechanism.long_shift_dominates or invocation.releases == invocation.count
    )


def _black_box(part: Term, size: int) -> Mechanism:
    """What is proved of ``size`` units of any mechanism."""
    known = part.invocation.mechanism.for_group(size)
    if known is not None and part.amplification is None:
        return known
    epsilon = part.sampled_epsilon
    if epsilon == math.inf:
        raise UnsupportedError(
            f"{part.invocation.describe()} has no theorem for groups of units: it is sampled, or "
            "not a shift, and has no pure ε."
        )
    grown = round_up(Fraction(epsilon) * size)
    if not part.slack:
        return PureBlackBox(grown)
    one = part.slack / part.count
    growth = sum(math.exp(step * float(epsilon)) for step in range(size)) * (1 + 1e-12)
    delta = float(one) * growth * (1 + 1e-12)
    if not delta < 1:
        named = part.invocation.describe()
        raise UnsupportedError(f"{named} has a δ of at least 1 for {size} units.")
    return ApproximateBlackBox(grown, delta)
