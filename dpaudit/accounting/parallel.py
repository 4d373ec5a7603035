"""Disjoint groups of units: which of them can be the worst."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from dpaudit.accounting.terms import use_of
from dpaudit.mechanisms import (
    ExponentialMechanism,
    Gaussian,
    GaussianPair,
    Laplace,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import Invocation

__all__ = ["undominated"]

_COMPARED = 32
"""Each group is compared with that many of the strongest, so that time stays linear."""

Strength = Fraction | float
Use = tuple[Hashable, Strength]


def undominated(groups: Sequence[Sequence[Invocation]]) -> list[Sequence[Invocation]]:
    """The groups without those that cost no more than another one, whatever the accountant.

    Two groups are compared where their uses correspond: the same mechanisms, equally sampled,
    equally often. Gaussian, Laplace and (ε, 0) pairs and k-ary randomised response are families
    ordered by one parameter: the weaker pair is a post-processing of the stronger, hence also after
    sampling and in composition (Blackwell 1953, *Equivalent comparisons*). What is valid for
    the stronger group is therefore valid for the weaker.
    """
    alike: dict[Hashable, dict[tuple[Strength, ...], int]] = {}
    for position, group in enumerate(groups):
        signature, strengths = _uses(group)
        alike.setdefault(signature, {}).setdefault(strengths, position)
    kept = [position for candidates in alike.values() for position in _front(candidates)]
    return [groups[position] for position in sorted(kept)]


def _front(candidates: Mapping[tuple[Strength, ...], int]) -> list[int]:
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
    """What the uses of a group are but for their strengths, and these, in the same order."""
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
    """A family of pairs, each a post-processing of all stronger ones, and the strength in it."""
    mechanism, sampled = invocation.mechanism, (invocation.sampling, invocation.relation)
    if isinstance(mechanism, RandomizedResponse):
        changed = invocation.sensitivity
        return ("randomised response", mechanism.k, changed, *sampled), -mechanism.p
    if isinstance(mechanism, Gaussian | Laplace | PureBlackBox | ExponentialMechanism):
        pair = mechanism.pair(invocation.sensitivity)
        strength = pair.mu if isinstance(pair, GaussianPair) else pair.pure_epsilon
        return (type(mechanism), type(pair), *sampled), strength
    return use_of(invocation), 0.0
