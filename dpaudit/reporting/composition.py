"""How the proved loss grows: over the uses of a plan, and where the plan is run again."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpaudit.accounting import AccountantName, compose, epsilon_after_rounds
from dpaudit.accounting.proved import FILTER
from dpaudit.base import files
from dpaudit.base.errors import UnsupportedError
from dpaudit.certificate import Certificate
from dpaudit.plan import Invocation, Plan

_RUNS = (2, 3, 5, 10)
_POINTS = 16
_POINTS_OF_MANY = 8
_MANY = 64
"""With more distinct invocations than this, fewer points are computed."""
_FEW = 4
"""Up to so many distinct invocations a privacy loss distribution is quick."""


@dataclass(frozen=True)
class Step:
    """The loss at one time.

    Attributes:
        uses: mechanisms used until then, each time that one counts.
        runs: complete runs of the plan until then.
        epsilon: proved ε, rounded up.
    """

    uses: int
    runs: int
    epsilon: float

    @property
    def part(self) -> str:
        """Which part of the plan, or how many runs of it."""
        if self.runs == 0:
            return "a part"
        return "all of it" if self.runs == 1 else f"{self.runs} runs"


@dataclass(frozen=True)
class Growth:
    """ε over time, all of it at one δ and by one accountant.

    Attributes:
        delta: the δ of every step.
        accountant: who proves them.
        within: after a growing part of the plan, in its order; the last is the whole.
        beyond: after further runs of the whole plan.
    """

    delta: float
    accountant: str
    within: tuple[Step, ...]
    beyond: tuple[Step, ...]


def quick_accountant(plan: Plan, name: str) -> str:
    """That accountant, or the Rényi one where its loss distribution would take long."""
    slow = name in (AccountantName.PLD, AccountantName.BEST) and _distinct(plan) > _FEW
    return AccountantName.RDP if slow else name


def _distinct(plan: Plan) -> int:
    alike = {"at": "", "count": 1, "total": 1}
    return len({files.canonical_json(each.to_dict() | alike) for each in plan.invocations})


def growth(certificate: Certificate) -> Growth | None:
    """ε after a growing number of uses; None where no accountant's is proved of the whole."""
    proved = certificate.guarantee
    if proved is None or proved.epsilon == math.inf or proved.accountant == FILTER:
        return None
    return _growth(certificate.plan, proved.epsilon, proved.delta, proved.accountant)


@lru_cache(maxsize=16)  # one certificate is often rendered in several formats
def _growth(plan: Plan, epsilon: float, delta: float, accountant: AccountantName) -> Growth | None:
    name = quick_accountant(plan, accountant)
    uses = sum(each.count for each in plan.invocations)
    try:
        parts = [
            Step(number, 0, compose(_first_uses(plan, number), name).epsilon(delta).upper)
            for number in _checkpoints(uses, len(plan.invocations))
        ]
        again = epsilon_after_rounds(plan, delta, np.array(_RUNS), name)
    except UnsupportedError:
        return None
    beyond = tuple(
        Step(uses * runs, runs, float(later))
        for runs, later in zip(_RUNS, again, strict=True)
        if later < math.inf
    )
    whole = Step(uses, 1, epsilon if name is accountant else parts[-1].epsilon)
    return Growth(delta, name, (*parts[:-1], whole), beyond)


def _checkpoints(uses: int, invocations: int) -> list[int]:
    """At which numbers of uses the loss is computed; always at the last."""
    points = _POINTS if invocations <= _MANY else _POINTS_OF_MANY
    return sorted({round(part) for part in np.linspace(1, uses, min(points, uses))})


def _first_uses(plan: Plan, left: int) -> Plan:
    """The part of a plan that holds its first so many uses."""
    part: list[Invocation] = []
    for each in plan.invocations:
        if left < each.count:
            part += [replace(each, count=left, total=None)] if left else []
            break
        part.append(each)
        left -= each.count
    return Plan(tuple(part))
