"""The guarantee as a formal statement in words, and what is left of it without each assumption."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpaudit.accounting import (
    AccountantName,
    Composition,
    Guarantee,
    at_radius,
    compose,
    for_group,
    swapped,
)
from dpaudit.accounting.accountant import FILTER
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.numbers import plain, up
from dpaudit.certificate import Certificate
from dpaudit.certificate.assumptions import clips
from dpaudit.certificate.findings import is_drawn_exactly
from dpaudit.mechanisms import Norm
from dpaudit.plan import AddRemove, Invocation, MetricBall, Plan, ReplaceOne, ZeroOut
from dpaudit.reporting.curves import quick_accountant
from dpaudit.reporting.wording import words

_NOTHING = "Nothing is proved."
_NO_THEOREM = "Not computed: no theorem here covers it."


@dataclass(frozen=True)
class Assumption:
    """An assumption that the number rests on.

    Attributes:
        holds: the assumption.
        fails: the case in which it does not hold.
        left: what is still proved in that case.
    """

    holds: str
    fails: str
    left: str


@dataclass(frozen=True)
class Statement:
    """The guarantee in words.

    Attributes:
        setting: who and what it speaks of, one sentence each.
        promise: the inequality; says so where nothing is proved.
        assumptions: what it rests on; empty where nothing is proved.
    """

    setting: tuple[str, ...]
    promise: str
    assumptions: tuple[Assumption, ...]


def statement(certificate: Certificate) -> Statement:
    """Return what is proved, of what, and under which assumptions."""
    plan, proved = certificate.plan, certificate.guarantee
    finite = proved is not None and proved.epsilon < math.inf
    exact = is_drawn_exactly(certificate.run)
    return Statement(
        tuple(_setting(plan)) if finite or words.is_named(plan.unit) else (),
        _promise(certificate),
        assumptions(plan, proved.delta, _accountant(proved), exact) if proved and finite else (),
    )


def _accountant(proved: Guarantee) -> str:
    """Whose proof is repeated of changed plans; of what a filter ended, that of the whole plan."""
    return AccountantName.BEST if proved.accountant == FILTER else proved.accountant


def _setting(plan: Plan) -> Iterator[str]:
    number, said = len(plan.invocations), words.STATEMENT
    declared = f"{number} declared {'invocation' if number == 1 else 'invocations'}"
    most = max(sum(each.count for each in group) for group in plan.by_unit())
    times = "once" if most == 1 else f"{most} times"
    yield said["setting"].format(declared=declared, unit=plan.unit, times=times)
    yield said["known"].format(unit=plan.unit)
    if len({each.trust for each in plan.invocations}) > 1:
        yield from words.trusted(plan)


def _promise(certificate: Certificate) -> str:
    plan, proved, said = certificate.plan, certificate.guarantee, words.STATEMENT
    if proved is None:
        return said["no-theorem"]
    facts = {"delta": plain(proved.delta), "unit": plan.unit, "relation": plan.relation}
    if proved.epsilon == math.inf:
        return said["unbounded"].format(**facts)
    kind = "pure" if proved.delta == 0 else "approximate"
    return said[kind].format(epsilon=up(proved.epsilon), **facts)


@lru_cache(maxsize=16)  # one certificate is often rendered in several formats
def assumptions(plan: Plan, delta: float, accountant: str, exact: bool) -> tuple[Assumption, ...]:
    """Every assumption of a proof, with what is proved at that δ where it fails.

    Args:
        plan: that is proved.
        delta: of the guarantee.
        accountant: that proved it.
        exact: whether exact samplers drew all noise, so that none of it is assumed to be real.
    """
    return tuple(_assumptions(plan, _ChangedPlan(delta, accountant), exact))


def _assumptions(plan: Plan, left: _ChangedPlan, exact: bool) -> Iterator[Assumption]:
    unit = plan.unit
    yield from _sensitivity(plan, left)
    twice = left.of_each(plan, lambda each: replace(each, count=2 * each.count, total=None))
    yield _assumed("touched", twice, unit=unit)
    if any(each.sampling is not None for each in plan.invocations):
        yield _assumed("sampled", left.of_each(plan, lambda each: replace(each, sampling=None)))
    if any(each.group is not None for each in plan.invocations):
        yield _assumed(
            "grouped", left.of_each(plan, lambda each: replace(each, group=None)), unit=unit
        )
    yield _relation(plan, left)
    yield _assumed("alone", left.of(lambda: for_group(plan, 2)), unit=unit)
    yield _assumed("fresh", _NOTHING)
    for trust in dict.fromkeys(each.trust for each in plan.invocations):
        if trust in words.TRUSTED:
            yield _assumed("trusted", _NOTHING, duty=words.TRUSTED[trust])
    if not exact and any(each.mechanism.real_valued for each in plan.invocations):
        yield _assumed("real", "Nothing is proved of the floats.")


def _assumed(name: str, left: str, **facts: Any) -> Assumption:
    said = words.ASSUMPTIONS[name]
    return Assumption(said["holds"].format_map(facts), said["fails"], left)


@dataclass(frozen=True)
class _ChangedPlan:
    """The proof of a changed plan, at the δ of the guarantee."""

    delta: float
    accountant: str

    def of(self, change: Callable[[], Plan]) -> str:
        """Return what is proved of it, in words."""
        try:
            least = self._composition(change()).epsilon(self.delta).upper
        except (UnsupportedError, InputError):
            return _NO_THEOREM
        return f"ε = {up(least)} is proved." if least < math.inf else _NOTHING

    def of_each(self, plan: Plan, change: Callable[[Invocation], Invocation]) -> str:
        """Return what is proved of the plan with every invocation changed."""
        return self.of(lambda: Plan(tuple(map(change, plan.invocations))))

    def _composition(self, plan: Plan) -> Composition:
        """By the accountant of the guarantee; where it has no theorem, or is slow, by another."""
        quick = quick_accountant(plan, self.accountant)
        for name in dict.fromkeys((quick, AccountantName.RDP)):
            try:
                return compose(plan, name)
            except UnsupportedError:
                continue
        return compose(plan, AccountantName.ZCDP)


def _sensitivity(plan: Plan, left: _ChangedPlan) -> Iterator[Assumption]:
    measured = [each for each in plan.invocations if each.mechanism.norm is not Norm.CHANGE]
    if not measured:
        return
    clipped = [each for each in measured if clips(each.mechanism)]
    if clipped:
        some = "" if len(clipped) == len(plan.invocations) else " wherever the plan declares a clip"
        yield _assumed("clipped", _NOTHING, some=some)
    yield _assumed("sensitivity", left.of_each(plan, _with_double_sensitivity))


def _with_double_sensitivity(invocation: Invocation) -> Invocation:
    if invocation.mechanism.norm is Norm.CHANGE:
        return invocation
    return replace(invocation, sensitivity=2 * invocation.sensitivity)


def _relation(plan: Plan, left: _ChangedPlan) -> Assumption:
    """The same plan against another change of the data.

    Replacing data is removing them and adding others: two steps of add-remove, or of zero-out.
    """
    match plan.relation:
        case AddRemove() | ZeroOut() as relation:
            return _assumed(relation.kind, left.of(lambda: swapped(plan)), unit=plan.unit)
        case MetricBall(radius) as relation:
            wider = left.of(lambda: at_radius(plan, 2 * radius))
            return _assumed(relation.kind, wider, unit=plan.unit, radius=plain(radius))
        case ReplaceOne() as relation:
            return _assumed(relation.kind, "Nothing is proved of that.", unit=plan.unit)
        case other:
            return _assumed("other", _NOTHING, relation=other)
