"""Numbers of a plan and of code: where a rule about values changes, it names one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any

from dpaudit.plan import Plan

MOST = 12
_USUAL = (0.0, 1.0)
_BASES = {"abc", "builtins", "dpaudit.project.subject", "dpaudit.base.fields"}


def constants_of(subject: Any, plan: Plan) -> tuple[float, ...]:
    """Numbers that the fields of a subject, its plan and the code of its run name, each once.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Code:
        ...     limit: float = 3.0
        ...     def run(self, rows):
        ...         return [row for row in rows if row > 0.25]
        >>> from dpaudit import AddRemove, Invocation, Laplace, PrivacyUnit, TrustModel
        >>> plan = Plan.of(Invocation(Laplace(2.0, clip=(0.0, 5.0)), 5.0, PrivacyUnit("row"),
        ...                           AddRemove(), TrustModel.CENTRAL))
        >>> constants_of(Code(), plan)
        (0.0, 1.0, 3.0, 5.0, 0.25)
    """
    found = dict.fromkeys(_USUAL)
    for number in (*_of_fields(subject), *_of_plan(plan), *_of_code(type(subject))):
        if math.isfinite(number) and abs(number) < 1e15:
            found.setdefault(float(number))
    return tuple(found)[:MOST]


def _of_fields(subject: Any) -> Iterator[float]:
    if is_dataclass(subject):
        for each in fields(subject):
            yield from _numbers(getattr(subject, each.name))


def _of_plan(plan: Plan) -> Iterator[float]:
    for each in plan.invocations:
        if each.contribution is not None:
            yield each.contribution.bound
        for name in ("clip", "clip_norm"):
            yield from _numbers(getattr(each.mechanism, name, None))


def _of_code(kind: type) -> Iterator[float]:
    """Literals of methods, own and inherited, and of functions in them, those of ``run`` first."""
    bases = [base for base in kind.__mro__ if base.__module__ not in _BASES]
    own = [each for base in bases for each in vars(base).values() if hasattr(each, "__code__")]
    for member in sorted(own, key=lambda each: each.__name__ != "run"):
        yield from literals(member.__code__)


def literals(code: CodeType | None) -> Iterator[float]:
    """Numbers that some code names, and functions within it; none of no code."""
    for constant in () if code is None else code.co_consts:
        if isinstance(constant, CodeType):
            yield from literals(constant)
        else:
            yield from _numbers(constant)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
