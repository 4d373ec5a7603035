"""What must hold of every release when two neighbours are replayed with equal noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from dpaudit.auditing.replaying.recording import Step
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import AddRemove

_found = FindingTable(__name__)

OF_SENSITIVITY = 1e-9
"""Slack for rounding, relative to the sensitivity."""
OF_VALUES = 2.0**-40
"""Slack for rounding, relative to the values: sums of thousands of numbers are off by less. It is
small, as a large public constant in a value must not hide a large distance."""
OF_SINGLE = 2.0**-20
"""Slack for the rounding of other libraries, which compute in 32-bit floats, relative to both."""

OF_PARTS = 1e-3
"""Slack of a unit's part, relative to its bound: who computes for all rows at once may round one of
them in another way where there are more rows."""


def _slack(one: Step, two: Step) -> float:
    size = max(float(np.abs(each.value).max(initial=0.0)) for each in (one, two))
    if one.single:
        return OF_SINGLE * (one.invocation.sensitivity + size)
    return OF_SENSITIVITY * one.invocation.sensitivity + OF_VALUES * size


@dataclass(frozen=True)
class Telling:
    """The measure of what findings tell of the data that show them.

    Attributes:
        values: whether names of units and distances of values are told. Both are private; without
            them a place is told by label and line, and a distance by its order of magnitude.
    """

    values: bool = True

    def place(self, step: Step) -> str:
        """Tell where a release was asked for."""
        return step.place if self.values else f"{step.invocation.at!r} ({step.source})"

    def apart(self, observed: float, declared: float) -> str:
        """Tell how far two values are apart."""
        if self.values:
            return f"{observed:.6g} apart"
        if not 0 < declared < observed < math.inf:
            return "too far apart"
        times = 10 ** math.floor(math.log10(observed / declared))
        return "too far apart" if times == 1 else f"more than {times} times too far apart"


EVERYTHING = Telling()


def too_far(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Pre-noise values further apart than declared; the first of each invocation."""
    found: dict[str, Finding] = {}
    reached: dict[str, float] = {}
    for one, two in compared:
        call = one.invocation
        observed = one.distance(two)
        if one.adds_up:
            earlier = reached.get(call.at, 0.0) if one.turn else 0.0
            reached[call.at] = observed = math.hypot(earlier, observed)
        if observed > hops * call.sensitivity + _slack(one, two) and call.at not in found:
            found[call.at] = _found(
                "sensitivity-understated",
                call.at,
                place=telling.place(one),
                apart=telling.apart(observed, hops * call.sensitivity),
                norm=call.mechanism.norm.value,
                steps=_steps(hops),
                declared=call.sensitivity,
            )
    return list(found.values())


def _steps(hops: float) -> str:
    return "" if hops == 1 else f", {hops:g} steps from each other"


def differ(one: Step, two: Step) -> bool:
    """Tell whether pre-noise values differ by more than rounding."""
    return one.distance(two) > _slack(one, two)


def _differing(compared: Sequence[tuple[Step, Step]]) -> list[Step]:
    return [one for one, two in compared if differ(one, two)]


def too_often(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """One unit that moves more releases of an invocation than ``count``."""
    differing, found = _differing(compared), []
    moved, seen = Counter(one.invocation.at for one in differing), Counter[str]()
    for one in differing:
        call = one.invocation
        seen[call.at] += 1
        if seen[call.at] == hops * one.touches + 1:
            facts = {"unit": call.unit, "label": call.at, "touches": one.touches}
            facts |= {"steps": _steps(hops), "number": seen[call.at], "moved": moved[call.at]}
            found.append(_found("touched-too-often", call.at, place=telling.place(one), **facts))
    return found


def groups_overlap(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """One unit that moves releases of two groups, which compose in parallel only if disjoint."""
    groups: dict[str, Step] = {}
    for one in _differing(compared):
        group = one.invocation.group
        if group is None or group.name in groups:
            continue
        groups[group.name] = one
        allowed = 2 if all(each.invocation.moves_unit for each in groups.values()) else 1
        if len(groups) > hops * allowed:
            name, earlier = next(iter(groups.items()))
            facts = {"unit": one.invocation.unit, "one": name, "two": group.name}
            places = {"earlier": telling.place(earlier), "place": telling.place(one)}
            return [_found("groups-overlap", one.invocation.at, **facts, **places)]
    return []


def parts_of_others(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Bounded sums in which more parts differ than one unit's, however little the sum moves.

    Parts are compared whoever they are of, as names may be numbers of places.
    """
    found: dict[str, Finding] = {}
    for one, two in compared:
        call = one.invocation
        if one.parts is None or two.parts is None or np.array_equal(one.parts, two.parts):
            continue
        assert call.contribution is not None
        relation, bound = call.relation, call.contribution.bound
        gone, come = (_without(*each, OF_PARTS * bound) for each in _both(one.parts, two.parts))
        moved = gone + come if isinstance(relation, AddRemove) else max(gone, come)
        units = math.floor(call.sensitivity / (relation.contribution_factor * bound))
        if moved > hops * units and call.at not in found:
            facts = {"unit": call.unit, "place": telling.place(one), "steps": _steps(hops)}
            found[call.at] = _found("parts-of-others", call.at, **facts)
    return list(found.values())


def _both(one: Floats, two: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield what the first has more often beside what the second has, and the other way round."""
    kinds = Counter(map(bytes, one)), Counter(map(bytes, two))
    gone, come = (
        np.frombuffer(b"".join(more.elements())).reshape(-1, one.shape[1])
        for more in (kinds[0] - kinds[1], kinds[1] - kinds[0])
    )
    yield gone, come
    yield come, gone


def _without(parts: Floats, others: Floats, near: float) -> int:
    """Tell how many parts have none of the others near."""
    if not len(others):
        return len(parts)
    distances, _ = KDTree(others).query(parts, distance_upper_bound=near)
    return int(np.isinf(distances).sum())


def facts_differ(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Numbers that a library draws by as if they were public, though they follow from the data."""
    found: dict[str, Finding] = {}
    for one, two in compared:
        both = one.facts.keys() | two.facts.keys()
        names = [name for name in sorted(both) if one.facts.get(name) != two.facts.get(name)]
        if names and one.invocation.at not in found:
            facts = {"place": telling.place(one), "names": ", ".join(names)}
            found[one.invocation.at] = _found("private-parameters", one.invocation.at, **facts)
    return list(found.values())
