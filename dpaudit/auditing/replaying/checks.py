"""What must hold of every release when two neighbours are replayed with equal noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.replaying.recording import Step
from dpaudit.certificate import Finding, Severity

__all__ = ["Telling", "groups_overlap", "too_far", "too_often"]

OF_SENSITIVITY = 1e-9
"""Slack for rounding, relative to the sensitivity."""
OF_VALUES = 2.0**-40
"""Slack for rounding, relative to the values: sums of thousands of numbers are off by less. It is
small, as a large public constant in a value must not hide a large distance."""
OF_SINGLE = 2.0**-20
"""Slack for the rounding of other libraries, which compute in 32-bit floats, relative to both."""


def _slack(one: Step, two: Step) -> float:
    size = max(float(np.abs(each.value).max(initial=0.0)) for each in (one, two))
    if one.external:
        return OF_SINGLE * (one.invocation.sensitivity + size)
    return OF_SENSITIVITY * one.invocation.sensitivity + OF_VALUES * size


@dataclass(frozen=True)
class Telling:
    """How much findings tell of the data that show them.

    Attributes:
        values: whether names of units and distances of values are told. Both are private; without
            them a place is told by label and line, and a distance by its order of magnitude.
    """

    values: bool = True

    def place(self, step: Step) -> str:
        """Where a release was asked for."""
        return step.place if self.values else f"{step.invocation.at!r} ({step.source})"

    def apart(self, observed: float, declared: float) -> str:
        """How far two values are apart."""
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
    for one, two in compared:
        call = one.invocation
        observed = one.distance(two)
        if observed > hops * call.sensitivity + _slack(one, two) and call.at not in found:
            found[call.at] = Finding(
                "sensitivity-understated",
                Severity.ERROR,
                f"The pre-noise values of the neighbours at {telling.place(one)} are "
                f"{telling.apart(observed, hops * call.sensitivity)} in "
                f"{call.mechanism.norm.value}{_steps(hops)}; "
                f"declared is a sensitivity of {call.sensitivity:.6g}.",
                "Declare the true sensitivity, or clip the value in the mechanism.",
                call.at,
            )
    return list(found.values())


def _steps(hops: float) -> str:
    return "" if hops == 1 else f", {hops:g} steps from each other"


def _differing(compared: Sequence[tuple[Step, Step]]) -> list[Step]:
    return [one for one, two in compared if one.distance(two) > _slack(one, two)]


def too_often(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """One unit that moves more releases of an invocation than ``count``."""
    seen: Counter[str] = Counter()
    found: list[Finding] = []
    for one in _differing(compared):
        call = one.invocation
        seen[call.at] += 1
        if seen[call.at] == hops * one.touches + 1:
            found.append(
                Finding(
                    "touched-too-often",
                    Severity.ERROR,
                    f"The neighbours differ in one {call.unit}{_steps(hops)}, which moves release "
                    f"number {seen[call.at]} of {call.at!r} at {telling.place(one)}; declared is "
                    f"that one {call.unit} touches {one.touches}.",
                    "Raise the count, or make sure that every unit enters no more often.",
                    call.at,
                )
            )
    totals = {at: seen[at] for at in seen}
    return [replace(f, message=f"{f.message} In all it moves {totals[f.at]}.") for f in found]


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
        allowed = 2 if one.invocation.relation.moves_between(group.membership) else 1
        if len(groups) > hops * allowed:
            name, earlier = next(iter(groups.items()))
            return [
                Finding(
                    "groups-overlap",
                    Severity.ERROR,
                    f"One {one.invocation.unit} moves releases of the groups {name!r} "
                    f"({telling.place(earlier)}) and {group.name!r} ({telling.place(one)}), which "
                    "are declared disjoint.",
                    "Declare the invocations without groups, so that they add up.",
                    one.invocation.at,
                )
            ]
    return []
