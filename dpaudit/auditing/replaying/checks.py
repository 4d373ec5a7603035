"""What must hold of every release when two neighbours are replayed with equal noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpaudit.auditing.replaying.recording import Step
from dpaudit.certificate import Finding, Severity

__all__ = ["groups_overlap", "too_far", "too_often"]

TOLERANCE = 1e-9
"""Relative slack for rounding: of the sensitivity, and of the values themselves."""


def _slack(one: Step, two: Step) -> float:
    size = max((float(np.abs(s.value).max(initial=0.0)) for s in (one, two)), default=0.0)
    return TOLERANCE * (one.invocation.sensitivity + size)


def too_far(compared: Sequence[tuple[Step, Step]]) -> list[Finding]:
    """Pre-noise values further apart than declared; the first of each invocation."""
    found: dict[str, Finding] = {}
    for one, two in compared:
        call = one.invocation
        observed = call.mechanism.distance(one.value, two.value)
        if observed > call.sensitivity + _slack(one, two) and call.at not in found:
            found[call.at] = Finding(
                "sensitivity-understated",
                Severity.ERROR,
                f"The pre-noise values of the neighbours at {one.place} are {observed:.6g} apart "
                f"in {call.mechanism.norm.value}; declared is a sensitivity of "
                f"{call.sensitivity:.6g}.",
                "Declare the true sensitivity, or clip the value in the mechanism.",
                call.at,
            )
    return list(found.values())


def _differing(compared: Sequence[tuple[Step, Step]]) -> list[Step]:
    return [
        one
        for one, two in compared
        if one.invocation.mechanism.distance(one.value, two.value) > _slack(one, two)
    ]


def too_often(compared: Sequence[tuple[Step, Step]]) -> list[Finding]:
    """One unit that moves more releases of an invocation than ``count``."""
    seen: Counter[str] = Counter()
    found: list[Finding] = []
    for one in _differing(compared):
        call = one.invocation
        seen[call.at] += 1
        if seen[call.at] == call.count + 1:
            found.append(
                Finding(
                    "touched-too-often",
                    Severity.ERROR,
                    f"The neighbours differ in one {call.unit}, which moves release number "
                    f"{seen[call.at]} of {call.at!r} at {one.place}; declared is that one "
                    f"{call.unit} touches {call.count}.",
                    "Raise the count, or make sure that every unit enters no more often.",
                    call.at,
                )
            )
    totals = {at: seen[at] for at in seen}
    return [replace(f, message=f"{f.message} In all it moves {totals[f.at]}.") for f in found]


def groups_overlap(compared: Sequence[tuple[Step, Step]]) -> list[Finding]:
    """One unit that moves releases of two groups, which compose in parallel only if disjoint."""
    groups: dict[str, Step] = {}
    for one in _differing(compared):
        group = one.invocation.group
        if group is None or group.name in groups:
            continue
        groups[group.name] = one
        if len(groups) == 2:
            (name, earlier), _ = groups.items()
            return [
                Finding(
                    "groups-overlap",
                    Severity.ERROR,
                    f"One {one.invocation.unit} moves releases of the groups {name!r} "
                    f"({earlier.place}) and {group.name!r} ({one.place}), which are declared "
                    "disjoint.",
                    "Declare the invocations without groups, so that they add up.",
                    one.invocation.at,
                )
            ]
    return []
