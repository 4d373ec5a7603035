"""What a ledger makes of its releases: the checks of one, and the sum of all as a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.errors import InputError
from dpaudit.plan import Invocation, Plan, TrustModel

__all__ = ["charged", "require_covered"]


def require_covered(invocation: Invocation, value: ArrayLike) -> None:
    """Refuse an array whose every entry its owner may change, if one entry's worth is declared."""
    if np.size(value) == 0:
        raise InputError("value is empty; a release needs at least one number.")
    if invocation.trust is not TrustModel.LOCAL:
        return
    factor = invocation.relation.contribution_factor
    moved = invocation.mechanism.implied_sensitivity(factor, np.size(value))
    if moved is not None and moved > invocation.sensitivity * (1 + 1e-9):
        raise InputError(
            f"value has {np.size(value)} entries, which can move by {moved:g} in "
            f"{invocation.mechanism.norm}; {invocation.describe()} declares a sensitivity of "
            f"{invocation.sensitivity:g}, so declare what is released."
        )


def charged(declared: dict[str, Invocation], charges: dict[str, Counter[Hashable]]) -> Plan:
    """Merge units that were charged alike, so that the plan stays small for a million units."""
    by_unit: dict[Hashable, list[tuple[str, int]]] = {}
    for at, counter in charges.items():
        for unit, count in counter.items():
            by_unit.setdefault(unit, []).append((at, count))
    everyone = by_unit.pop(None, [])
    alike = Counter(tuple(uses) for uses in by_unit.values())
    invocations = [
        replace(declared[at], count=count, total=count, group=None) for at, count in everyone
    ]
    for number, (uses, units) in enumerate(sorted(alike.items()), start=1):
        invocations += [
            replace(
                declared[at],
                count=count,
                total=count * units,
                group=f"{units} units charged alike ({number})",
                at=f"{at} ({number})",
            )
            for at, count in uses
        ]
    return Plan.of(*invocations)
