"""Budgets: what several subjects release together, against the largest allowed (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from dpaudit.base.errors import InputError
from dpaudit.plan import Group, Invocation, Membership, Plan
from dpaudit.project.project_file import BudgetEntry
from dpaudit.workflow.comparing import Change, Direction, in_full

MOST_COMBINATIONS = 4096
"""Groups of one plan meet those of every other; more combinations than that are refused."""


def budget_changes(
    old: Sequence[BudgetEntry] | None, new: Sequence[BudgetEntry], names: Mapping[str, str]
) -> Iterator[Change]:
    """Return what became of older budgets.

    One is kept where a budget of now allows no more to those of its subjects that are still there.
    ``old`` is None where it is not known; ``names`` are of now, by what subjects were called then.
    """
    if old is None and new:
        yield Change("budgets", "unknown", "; ".join(map(_allowed, new)))
    for budget in old or ():
        members = {names[name] for name in budget.subjects if name in names}
        kept = not members or any(
            each.limit.implies(budget.limit) and members <= set(each.subjects) for each in new
        )
        after = next((_allowed(each) for each in new if each.name == budget.name), "none")
        if not kept or after != _allowed(budget):
            direction = Direction.NEUTRAL if kept else Direction.WORSE
            yield Change(f"budget {budget.name!r}", _allowed(budget), after, direction)


def _allowed(budget: BudgetEntry) -> str:
    return f"{in_full(budget.limit)} of {', '.join(budget.subjects)}"


def in_sequence(plans: Mapping[str, Plan]) -> Plan:
    """One plan of all that several plans release about the same units.

    Within a plan its groups of units are disjoint, and compose in parallel. Nothing is known of how
    the groups of two plans overlap, so every group of one may meet every group of the other: a unit
    may be in any combination of them, and each combination composes sequentially.

    Args:
        plans: by name; the labels of their invocations get it as a prefix.

    Raises:
        InputError: if units or relations differ, or there are too many combinations of groups.
    """
    grouped = {name: _groups(plan) for name, plan in plans.items() if _groups(plan)}
    if len(grouped) < 2:  # the groups of a single plan stay what they are
        return Plan(tuple(each for name, plan in plans.items() for each in _prefixed(name, plan)))
    combinations = list(product(*_require_feasible(grouped).values()))
    places = {name: place for place, name in enumerate(grouped)}
    invocations: list[Invocation] = []
    for name, plan in plans.items():
        for each in _prefixed(name, plan):
            if each.group is None:
                invocations.append(each)
            else:
                invocations += _in_combinations(each, places[name], combinations)
    return Plan(tuple(invocations))


def _groups(plan: Plan) -> tuple[Group, ...]:
    return tuple(dict.fromkeys(i.group for i in plan.invocations if i.group is not None))


def _prefixed(name: str, plan: Plan) -> Iterator[Invocation]:
    for number, invocation in enumerate(plan.invocations, start=1):
        yield replace(invocation, at=f"{name}: {invocation.at or f'invocation {number}'}")


def _require_feasible(grouped: dict[str, tuple[Group, ...]]) -> dict[str, tuple[Group, ...]]:
    combinations = math.prod(map(len, grouped.values()))
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"the groups of {', '.join(grouped)} meet in {combinations} combinations; at most "
            f"{MOST_COMBINATIONS} can be accounted, so give the subjects budgets of their own."
        )
    return grouped


def _in_combinations(
    invocation: Invocation, place: int, combinations: Sequence[tuple[Group, ...]]
) -> Iterator[Invocation]:
    """The invocation in every combination of groups that holds its own."""
    for number, combination in enumerate(combinations, start=1):
        if combination[place] == invocation.group:
            label = f"{invocation.at} ({number})"
            name = f"{number}: {' × '.join(map(str, combination))}"
            by_value = any(each.membership is Membership.VALUE for each in combination)
            membership = Membership.VALUE if by_value else Membership.POSITION
            yield replace(invocation, group=Group(name, membership), at=label)
