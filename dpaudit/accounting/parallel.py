"""Disjoint groups of units: which of them can be the worst."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from dpaudit.accounting.terms import use_of
from dpaudit.plan import Invocation

_COMPARED = 32
"""Each group is compared with that many of the strongest, so that time stays linear."""

Strength = Fraction | float
Use = tuple[Hashable, Strength]


def undominated(groups: Sequence[Sequence[Invocation]]) -> list[Sequence[Invocation]]:
    """The groups without those that cost no more than another one, whatever the accountant.

    Two groups are compared where their uses correspond: the same mechanisms, equally sampled,
    equally often, but for a strength (:meth:`dpaudit.mechanisms.Mechanism.strength`): the weaker is
    a post-processing of the stronger, hence also after sampling and in composition. What is valid
    for the stronger group is therefore valid for the weaker.
    """
    alike: dict[Hashable, dict[tuple[Strength, ...], int]] = {}
    for position, group in enumerate(groups):
        signature, strengths = _uses(group)
        alike.setdefault(signature, {}).setdefault(strengths, position)
    kept = [position for candidates in alike.values() for position in _pareto_front(candidates)]
    return [groups[position] for position in sorted(kept)]


def _pareto_front(candidates: Mapping[tuple[Strength, ...], int]) -> list[int]:
    """Positions of those whose strengths are not all at most those of another."""
    ordered = sorted(candidates.items(), reverse=True)
    front: list[tuple[tuple[Strength, ...], int]] = []
    for strengths, position in ordered:
        if not any(
            all(mine <= theirs for mine, theirs in zip(strengths, other, strict=True))
            for other, _ in front[:_COMPARED]
        ):
            front.append((strengths, position))
    return [position for _, position in front]


def _uses(group: Sequence[Invocation]) -> tuple[Hashable, tuple[Strength, ...]]:
    """Tell the uses of a group but for their strengths, and these, in the same order."""
    counts: dict[Hashable, int] = {}
    uses: dict[Hashable, Use] = {}
    for invocation in group:
        key = use_of(invocation)
        counts[key] = counts.get(key, 0) + invocation.count
        if key not in uses:
            uses[key] = _family(invocation)
    ordered = sorted(
        ((family, counts[key], strength) for key, (family, strength) in uses.items()),
        key=lambda one: (repr(one[0]), one[1], one[2]),
    )
    return tuple(one[:2] for one in ordered), tuple(one[2] for one in ordered)


def _family(invocation: Invocation) -> Use:
    """A family of uses, each a post-processing of all stronger ones, and the strength in it."""
    mechanism = invocation.mechanism
    found = mechanism.strength(invocation.sensitivity)
    if found is None:
        return use_of(invocation), 0.0
    alike, strength = found
    return (type(mechanism), alike, invocation.sampling, invocation.relation), strength
