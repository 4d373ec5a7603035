"""Guarantees for groups of units, and for larger distances.

Guarantees for several units, and observed releases, are made from a plan here. What is returned
must cost no less than the original does for such neighbours.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from dpaudit.accounting.amplification.poisson import part_bound
from dpaudit.accounting.terms import Term, use_of, whole
from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import AdditiveNoise, Mechanism, Norm
from dpaudit.mechanisms.black_box import steps_apart
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
)


def for_group(plan: Plan, size: int, *, unit: PrivacyUnit | None = None) -> Plan:
    """The plan that protects ``size`` units together.

    A shift mechanism without sampling has ``size`` times its sensitivity; noisy sums of Poisson
    samples are those of units of ``size`` times as many rows, which all leave or join. Of subsets
    any one that is drawn counts as all. Of the others the group
    gets what is proved of any mechanism (:func:`dpaudit.mechanisms.black_box.steps_apart`), and k²ρ
    from ρ-zCDP (Bun and Steinke 2016, Proposition 1.9).

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
            "the plan treats disjoint sets of units differently; no theorem here covers a "
            "group that is spread over several sets, so plan for the group directly."
        )
    return Plan(tuple(_together(each, size, unit) for each in groups[0]))


def at_radius(plan: Plan, radius: float) -> Plan:
    """The plan for neighbours at most ``radius`` apart, in the metric of its relation.

    Neighbours k radii apart, between which the data may lie anywhere, are k steps apart, and cost
    what a group of k costs. Nearer ones may still move a value by all of its sensitivity, as a clip
    or a threshold may lie between them: for a smaller radius declare the sensitivity there.

    Raises:
        InputError: if the plan's relation is not a metric ball.
        UnsupportedError: as :func:`for_group`.
    """
    radius = validate.positive(radius=radius)
    relation = plan.relation
    if not isinstance(relation, MetricBall):
        raise InputError(f"relation is {relation}; at_radius needs a metric-ball.")
    steps, ball = math.ceil(Fraction(radius) / Fraction(relation.radius)), MetricBall(radius)
    return Plan(
        tuple(
            replace(_for_group(each, steps, each.unit), group=each.group, relation=ball)
            for each in plan.invocations
        )
    )


def _for_group(invocation: Invocation, size: int, unit: PrivacyUnit) -> Invocation:
    alone = replace(invocation, unit=unit, group=None)
    if size == 1 or invocation.sensitivity == 0:
        return alone
    part = whole(invocation, invocation.count)
    if part.amplification is None and _shifts_add_up(invocation):
        longer = round_up(Fraction(invocation.sensitivity) * size)
        with suppress(InputError):  # a mechanism may have no pair for so long a shift
            invocation.mechanism.pair(longer)
            return replace(alone, sensitivity=longer, sampling=None)  # which amplifies nothing
    count = part.invocation.count  # which may be more than are declared
    total = max(alone.releases, count)
    several = replace(alone, mechanism=_black_box(part, size), sensitivity=1.0, sampling=None)
    return replace(several, total=total, count=count) if count > alone.count else several


def _together(invocation: Invocation, size: int, unit: PrivacyUnit) -> Invocation:
    """The group as one unit of a sample where no pure ε says more, else as steps."""
    sampling, longer = invocation.sampling, Fraction(invocation.sensitivity) * size
    known = sampling is None or invocation.mechanism.norm is Norm.CHANGE
    if known or size == 1 or not longer or invocation.releases > invocation.count:
        return _for_group(invocation, size, unit)
    alone = replace(invocation, unit=unit, group=None, contribution=None)
    bounded = invocation.mechanism.pair(invocation.sensitivity).pure_epsilon < math.inf
    if isinstance(sampling, PoissonSampling) and not bounded:
        part = part_bound(sampling, invocation)
        rows = size * (sampling.rows or 1)
        return replace(alone, sampling=replace(sampling, rows=rows, contribution=part))
    if isinstance(sampling, FixedSizeSampling) and not bounded:
        # A subset has any of k units with probability at most km/n; their places go to others.
        most = min(size * sampling.size, sampling.population)
        return replace(alone, sensitivity=round_up(longer), sampling=replace(sampling, size=most))
    return _for_group(invocation, size, unit)


def swapped(plan: Plan) -> Plan:
    """Turn a plan for add-remove or zero-out into one for units that are replaced.

    Samples of noisy sums have theorems of their own; else it is a group of two.

    Raises:
        UnsupportedError: as :func:`for_group`.
    """

    def replaced(each: Invocation) -> Invocation:
        sampling = each.sampling
        if sampling is None or each.mechanism.norm is Norm.CHANGE:
            two = _together(each, 2, each.unit)
            return replace(two, group=each.group, relation=ReplaceOne())
        if isinstance(sampling, PoissonSampling):
            sampling = replace(sampling, contribution=each.sensitivity or None)
        longer = round_up(2 * Fraction(each.sensitivity))
        return replace(each, sensitivity=longer, sampling=sampling, relation=ReplaceOne())

    if all(each.sampling is None for each in plan.invocations):
        return for_group(plan, 2)
    return Plan(tuple(map(replaced, plan.invocations)))


def _shifts_add_up(invocation: Invocation) -> bool:
    """Tell whether the group costs at most one long shift: of each release, or of any."""
    mechanism = invocation.mechanism
    spread = isinstance(mechanism, AdditiveNoise) and mechanism.long_shift_dominates
    return mechanism.norm is not Norm.CHANGE and (spread or invocation.releases == invocation.count)


def _black_box(part: Term, size: int) -> Mechanism:
    """Bound ``size`` units of any mechanism by what is proved of one."""
    known = part.invocation.mechanism.for_group(size)
    if known is not None and part.amplification is None:
        return known
    try:
        return steps_apart(part.sampled_epsilon, part.slack / part.count, size)
    except UnsupportedError as error:
        raise UnsupportedError(f"{part.invocation.describe()}: {error}") from None
