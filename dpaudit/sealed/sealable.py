"""Which plans the operations of a sealed run hold to, whatever the rows are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dpaudit.base.errors import InputError
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    Membership,
    MetricBall,
    Plan,
    PoissonSampling,
    TrustModel,
    ZeroOut,
)
from dpaudit.sealed.store import ReadTable
from dpaudit.sealed.sums import is_of_fixed_steps


def require_sealable(plan: Plan, table: ReadTable) -> None:
    """Refuse a plan of which the operations do not hold.

    Raises:
        InputError: if it has several units or relations, a metric ball, local answers without a
            public roster, or a mechanism whose law its author states; or groups by value beside
            others by position, as a unit may be in one of each.
    """
    first = plan.invocations[0]
    if len({each.group.membership for each in plan.invocations if each.group is not None}) > 1:
        raise InputError(
            "a sealed plan has groups by value or by position; a unit may be in one of each, so "
            "declare all of them in one way."
        )
    for each in plan.invocations:
        if each.unit != first.unit or each.relation != first.relation:
            raise InputError("a sealed plan has one unit and one relation; this one has several.")
        if each.mechanism.is_black_box:
            raise InputError(f"{each.describe()} is a black box; a run with one cannot be sealed.")
        if isinstance(each.relation, MetricBall):
            raise InputError("a sealed plan must protect whole units; a metric ball does not.")
        if each.trust is TrustModel.LOCAL and not table.roster:
            raise InputError("local answers need a roster of units in the table; list them.")
        if each.trust is TrustModel.LOCAL and isinstance(each.relation, AddRemove):
            raise InputError(
                "local answers need replace-one or zero-out, because the roster is public."
            )
        by_value = each.group is None or each.group.membership is Membership.VALUE
        if each.trust is TrustModel.LOCAL and each.group is not None and by_value:
            raise InputError(
                f"group {each.group} is by value; who answers is named, so declare Group(name)."
            )
        if not by_value and not table.roster:
            raise InputError(
                f"group {each.group} is by position; a partition is by the unit's own value, so "
                "declare Group(name, Membership.VALUE), or list a roster in the table."
            )
        if is_of_fixed_steps(each) and not table.roster:
            raise InputError(
                f"{each.describe()} declares fixed_steps; without a roster, a unit's own rows "
                "decide at which steps it takes part, so leave fixed_steps out, or list a "
                "roster in the table."
            )
        if each.sampling is not None:
            _require_sampling(each, table)


def _require_sampling(invocation: Invocation, table: ReadTable) -> None:
    """Refuse samples that depend on a number of units that is not public, and samples of rows.

    A unit that is zeroed has no rows, and belongs to the population all the same: a roster says so.

    Raises:
        InputError: if it is such a sampling.
    """
    sampling, absent = invocation.sampling, isinstance(invocation.relation, AddRemove)
    if isinstance(sampling, PoissonSampling) and sampling.rows in (None, 1):
        return
    if isinstance(sampling, FixedSizeSampling) and not absent:
        if isinstance(invocation.relation, ZeroOut) and not table.roster:
            raise InputError(
                f"{invocation.describe()} has samples of a fixed size under zero-out, where a unit "
                "without rows is one of the population; list a roster in the table, or declare "
                "replace-one."
            )
        return
    raise InputError(
        f"{invocation.describe()} has a sampling scheme that a sealed run cannot draw; declare "
        "Poisson sampling of units, or samples of a fixed size under replace-one."
    )


def are_alike(plan: Plan) -> bool:
    """Tell whether groups differ in name alone, so that each costs its units the same."""
    groups: dict[str, Counter[Invocation]] = {}
    for each in plan.invocations:
        if each.group is not None:
            own = groups.setdefault(each.group.name, Counter())
            own[replace(each, group=None, at="")] += 1
    kinds = list(groups.values())
    return all(each == kinds[0] for each in kinds)


def require_population(plan: Plan, units: int) -> None:
    """Refuse a table of another number of units than is declared, where that number is public.

    Raises:
        InputError: if it is another.
    """
    for each in plan.invocations:
        if isinstance(each.sampling, FixedSizeSampling) and each.sampling.population != units:
            raise InputError(
                f"the table has {units} units; {each.describe()} declares a population of "
                f"{each.sampling.population}."
            )
