"""Curves of a report: privacy, trade-off, and how the proved loss grows.

Curves are drawn between the points that are proved; the loss grows over the uses of a plan, and
where the plan is run again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpaudit.accounting import AccountantName, CurvePoint, Guarantee, compose, epsilon_after_rounds
from dpaudit.accounting.accountant import FILTER
from dpaudit.base import files
from dpaudit.base.errors import UnsupportedError
from dpaudit.certificate import Certificate
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation, Plan

_LARGEST_EXPONENT = 700.0


def proved_points(guarantee: Guarantee) -> tuple[CurvePoint, ...]:
    """Every finite (ε, δ) that the guarantee states, by increasing ε."""
    own = CurvePoint(guarantee.epsilon, guarantee.delta)
    points = {(p.epsilon, p.delta) for p in (*guarantee.curve, own) if p.epsilon < math.inf}
    return tuple(CurvePoint(*point) for point in sorted(points, key=lambda p: (p[0], -p[1])))


def probability(epsilon: float, delta: float) -> float:
    """Success that (ε, δ) leaves to the best guess between two equally likely data sets.

    The sum of the two error rates of any test is at least 2(1 − δ)/(1 + e^ε) (Kairouz, Oh and
    Viswanath 2015, Theorem 2.1), so a guess is right with probability at most
    (e^ε + δ)/(1 + e^ε).

    >>> round(probability(1, 0), 4), probability(0, 0), probability(float("inf"), 0)
    (0.7311, 0.5, 1.0)
    """
    shrunk = math.exp(-epsilon)
    return (1 + delta * shrunk) / (1 + shrunk)


def best_odds(points: Sequence[CurvePoint]) -> float:
    """Success of the best guess at even odds, by all points together; 1 where there are none."""
    return min((probability(point.epsilon, point.delta) for point in points), default=1.0)


def densify(points: Sequence[CurvePoint]) -> tuple[Floats, Floats]:
    """The curve through proved points, never below what they prove.

    δ is a convex function of e^ε (a supremum of lines P(S) − e^ε Q(S)), so the chord in (e^ε, δ)
    between two points that hold, holds as well.

    Args:
        points: by increasing ε, at least one.

    Returns:
        ε and δ, each of shape (1 + 7 (len(points) − 1),): six more points on each chord.
    """
    epsilons, deltas = [points[0].epsilon], [points[0].delta]
    shares = np.linspace(0, 1, 8)[1:]
    for left, right in pairwise(points):
        gap = min(right.epsilon - left.epsilon, _LARGEST_EXPONENT)
        drawn = left.epsilon + (right.epsilon - left.epsilon) * shares
        width = math.expm1(gap)
        weight = shares if width == 0 else np.expm1(gap * shares) / width
        epsilons.extend(drawn.tolist())
        deltas.extend((left.delta + (right.delta - left.delta) * weight).tolist())
    return np.array(epsilons), np.array(deltas)


def trade_off(points: Sequence[CurvePoint], false_alarms: Floats) -> Floats:
    """The least rate of misses that any test can have, given its rate of false alarms.

    Each (ε, δ) that holds in both directions bounds it from below by
    max(0, 1 − δ − e^ε α, e^−ε (1 − δ − α)) (Dong, Roth and Su 2022, Proposition 3); all of them
    hold together.

    Args:
        points: (ε, δ) that hold; none prove nothing.
        false_alarms: rates α in [0, 1], any shape.
    """
    misses = np.zeros_like(false_alarms)
    for point in points:
        grown = math.exp(min(point.epsilon, _LARGEST_EXPONENT))
        direct = 1 - point.delta - grown * false_alarms
        swapped = (1 - point.delta - false_alarms) / grown
        misses = np.maximum(misses, np.maximum(direct, swapped))
    return misses


def thin_series(values: Sequence[float], most: int = 400) -> tuple[Floats, Floats]:
    """Rounds (from 1) and values of a long series; each stretch keeps its extremes and the ends.

    >>> rounds, kept = thin_series([0.0] * 5000 + [9.0] + [0.0] * 5000, most=100)
    >>> len(kept) <= 100, float(kept.max())
    (True, 9.0)
    """
    series = np.asarray(values, dtype=np.float64)
    if len(series) <= most:
        return np.arange(1, len(series) + 1, dtype=np.float64), series
    edges = np.linspace(0, len(series), (most - 2) // 2 + 1).astype(int)
    kept = {0, len(series) - 1}
    for start, stop in pairwise(edges):
        part = series[start:stop]
        kept |= {start + int(part.argmin()), start + int(part.argmax())}
    chosen = np.array(sorted(kept))
    return (chosen + 1).astype(np.float64), series[chosen]


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
