"""From a plan to its guarantee: disjoint groups of units, the accountant, the curve.

Of units whose invocations compose in parallel only those count that can be the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.accountant import (
    Accountant,
    AccountantName,
    Composition,
    CurvePoint,
    Guarantee,
    Interval,
    accountant_of,
    upper_ends,
)
from dpaudit.accounting.best import BestComposition
from dpaudit.accounting.pld.accountant import PLDComposition
from dpaudit.accounting.terms import use_of
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation, Plan

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


_MUCH = 150_000
"""Up to so many grid points of all distinct mechanisms each decade of a curve has its own law."""


@dataclass(frozen=True, eq=False)
class ParallelComposition(Composition):
    """The worst of several disjoint groups of units (McSherry 2009, Theorem 4).

    Attributes:
        groups: the composition of each group.
    """

    groups: tuple[Composition, ...]

    def epsilon(self, delta: float) -> Interval:
        """The largest of the groups."""
        return _largest([group.epsilon(delta) for group in self.groups])

    def delta(self, epsilon: float) -> Interval:
        """The largest of the groups."""
        return _largest([group.delta(epsilon) for group in self.groups])

    def epsilons(self, deltas: ArrayLike) -> Floats:
        """The largest of the groups, at each δ."""
        worst: Floats = np.maximum.reduce([group.epsilons(deltas) for group in self.groups])
        return worst

    def deltas(self, epsilons: ArrayLike) -> Floats:
        """The largest of the groups, at each ε."""
        worst: Floats = np.maximum.reduce([group.deltas(epsilons) for group in self.groups])
        return worst

    def worst(self, delta: float) -> Composition:
        """The group whose ε is the largest at δ."""
        return max(self.groups, key=lambda group: group.epsilon(delta).upper)

    @property
    def native(self) -> Mapping[str, Any]:
        """The parameters of each group."""
        return {"groups": [dict(group.native) for group in self.groups]}


def compose(plan: Plan, accountant: str = AccountantName.BEST) -> Composition:
    """The composition of a plan: sequential for one unit, the maximum over disjoint groups.

    Raises:
        InputError: if there is no such accountant.
        UnsupportedError: if the accountant has no theorem for an invocation; it names which.
    """
    chosen = accountant_of(accountant)
    composed = tuple(chosen.compose(group) for group in undominated(plan.by_unit()))
    return composed[0] if len(composed) == 1 else ParallelComposition(composed)


def guarantee(plan: Plan, delta: float = 0.0, accountant: str = AccountantName.BEST) -> Guarantee:
    """Prove the least ε that an accountant finds of a plan.

    Args:
        plan: the declared invocations.
        delta: δ in [0, 1) of the guarantee.
        accountant: the name of one, such as ``AccountantName.PLD`` or ``"pld"``; ``best`` takes the
            least ε of all that apply.

    Returns:
        The guarantee, its ε rounded up. Where ε is infinite, ``native["reason"]`` says why.

    Raises:
        InputError: if δ is outside [0, 1) or there is no such accountant.
        UnsupportedError: if the accountant has no theorem for an invocation; it names which.
    """
    delta = validate.probability(delta=delta)
    name = Accountant.named(accountant).kind
    whole = compose(plan, name)
    worst = whole.worst(delta) if isinstance(whole, ParallelComposition) else whole
    interval = whole.epsilon(delta)
    compared: dict[str, float] = {str(name): interval.upper}
    if isinstance(worst, BestComposition):
        name = worst.winner(delta)
        compared = {str(key): each.upper for key, each in worst.compared(delta).items()}
        native = dict(worst.compositions[name].native)
    else:
        native = dict(worst.native)
    if interval.upper == math.inf:
        native["reason"] = _reason(plan, delta)
    return Guarantee(
        epsilon=interval.upper,
        delta=delta,
        accountant=name,
        error_bound=None if interval.upper == math.inf else interval.width,
        native=native,
        curve=_curve(whole, delta),
        compared=compared,
    )


def privacy_curve(
    plan: Plan, accountant: str = AccountantName.BEST
) -> Callable[[ArrayLike], Floats]:
    """A valid upper bound δ(ε) of a plan for all ε >= 0, as a function of arrays.

    Raises:
        UnsupportedError: if the accountant has no theorem for an invocation; it names which.
    """
    whole = compose(plan, accountant)

    def curve(epsilon: ArrayLike) -> Floats:
        asked = validate.real_array(epsilon=epsilon)
        if (asked < 0).any():
            raise InputError(f"epsilon has the value {asked.min()}; it must be at least 0.")
        return np.minimum(upper_ends(whole.deltas(asked)), 1.0)

    return curve


def epsilon_after_rounds(
    plan: Plan,
    delta: float,
    rounds: ArrayLike,
    accountant: str = AccountantName.RDP,
) -> Floats:
    """ε after each number of rounds, where one round is the whole plan.

    Args:
        plan: one round.
        delta: δ in [0, 1) of every guarantee.
        rounds: whole numbers of rounds, at least 1, of any shape.
        accountant: which one; ``rdp`` answers thousands of rounds at once.

    Returns:
        ε, rounded up, in the shape of ``rounds``.

    Raises:
        InputError: if a number of rounds is not a whole number of at least 1, or there is no such
            accountant.
        UnsupportedError: if the accountant has no theorem for an invocation.
    """
    delta = validate.probability(delta=delta)
    asked = validate.real_array(rounds=rounds)
    if (asked < 1).any() or (asked != np.floor(asked)).any():
        raise InputError("rounds has a value that is not a whole number of at least 1.")
    chosen = accountant_of(accountant)
    results = [chosen.epsilon_after_rounds(group, delta, asked.ravel()) for group in plan.by_unit()]
    return upper_ends(np.maximum.reduce(results)).reshape(asked.shape)


def _curve(whole: Composition, delta: float) -> tuple[CurvePoint, ...]:
    """Some thirty points of δ(ε), by increasing ε, and the pure one where there is one."""
    wanted = np.unique(np.append(np.geomspace(1e-12, 0.1, 31), [0.0, delta]))
    points: dict[float, float] = {}
    for epsilon, at in zip(_epsilons(whole, wanted, delta), wanted, strict=True):
        if math.isfinite(epsilon):
            points[float(epsilon)] = min(float(at), points.get(float(epsilon), 1.0))
    if points and min(points) > 0:
        points[0.0] = _delta_at_zero(whole, delta)
    return tuple(CurvePoint(epsilon, points[epsilon]) for epsilon in sorted(points))


def _epsilons(whole: Composition, deltas: Floats, delta: float) -> Floats:
    """Upper ends of ε at each δ; where a law takes much work, all from the one for ``delta``.

    A law for each decade would take far longer than the guarantee itself.
    """
    if isinstance(whole, ParallelComposition):
        groups = [_epsilons(group, deltas, delta) for group in whole.groups]
        return np.asarray(np.maximum.reduce(groups), dtype=np.float64)
    numerical, closed = _numerical(whole, delta)
    if numerical is None:
        return whole.epsilons(deltas)
    found = [numerical.epsilons_near(delta, deltas), *(each.epsilons(deltas) for each in closed)]
    return np.asarray(np.minimum.reduce([upper_ends(each) for each in found]), dtype=np.float64)


def _delta_at_zero(whole: Composition, delta: float) -> float:
    """The upper end of δ at ε = 0, from the same law."""
    if isinstance(whole, ParallelComposition):
        return max(_delta_at_zero(group, delta) for group in whole.groups)
    numerical, closed = _numerical(whole, delta)
    if numerical is None:
        return float(whole.deltas([0.0])[0])
    found = [numerical.delta_near(delta, 0.0), *(each.delta(0.0).upper for each in closed), 1.0]
    return float(upper_ends(found).min())


def _numerical(whole: Composition, delta: float) -> tuple[PLDComposition | None, list[Composition]]:
    """The PLD, if there is one whose laws take much work, and the closed forms beside it."""
    together = list(whole.compositions.values()) if isinstance(whole, BestComposition) else [whole]
    closed = [one for one in together if not isinstance(one, PLDComposition)]
    for one in together:
        if isinstance(one, PLDComposition) and one.work(delta) > _MUCH:
            return one, closed
    return None, closed


def _reason(plan: Plan, delta: float) -> str:
    """Why there is no finite ε."""
    if delta == 0:
        for invocation in plan.invocations:
            if invocation.sensitivity > 0 and not _is_pure(invocation):
                kind = invocation.mechanism.kind
                return f"no pure guarantee: {kind} has unbounded loss"
    return (
        f"no finite guarantee below δ={delta!r}: the noise is so small, or the δ of a black box so "
        "large, that every ε overflows"
    )


def _is_pure(invocation: Invocation) -> bool:
    return invocation.mechanism.pair(invocation.sensitivity).pure_epsilon < math.inf


def _largest(intervals: Sequence[Interval]) -> Interval:
    lowers = [each.lower for each in intervals if each.lower is not None]
    return Interval(max(lowers) if lowers else None, max(each.upper for each in intervals))
