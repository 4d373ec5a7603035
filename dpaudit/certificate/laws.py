"""What a proof takes from outside of this package: laws and accountants of others.

A class counts as this package's own by where it is defined, not by what it calls itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from dpaudit.accounting import Accountant, Guarantee
from dpaudit.accounting.proved import FILTER
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Kinded, Record
from dpaudit.base.validate import shown
from dpaudit.certificate.premises import Standing
from dpaudit.plan import Plan

_OWN = __name__.partition(".")[0] + "."


@dataclass(frozen=True)
class ForeignLaw(Record):
    """A mechanism of others, or a part of an invocation that decides what a mechanism costs.

    Attributes:
        kind: as it is written in a plan.
        defined_in: module of its class.
        labels: of the invocations that it is in.
    """

    kind: str
    defined_in: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Foreign(Record):
    """All that a proof takes from others.

    Attributes:
        mechanisms: these, and samplings, relations and factorisations.
        accountants: by name.
    """

    mechanisms: tuple[ForeignLaw, ...] = ()
    accountants: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.mechanisms or self.accountants)

    @property
    def names(self) -> tuple[str, ...]:
        """Every kind and accountant, once."""
        return tuple(dict.fromkeys((*(each.kind for each in self.mechanisms), *self.accountants)))

    def __str__(self) -> str:
        laws = [f"{shown(each.kind)} of {shown(each.defined_in)}" for each in self.mechanisms]
        return ", ".join((*laws, *(f"the accountant {shown(each)}" for each in self.accountants)))


def foreign_of(plan: Plan, proved: Guarantee | None) -> Foreign:
    """List what the proof of a plan takes from outside of this package."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for invocation in plan.invocations:
        for part in _parts(invocation):
            if not is_defined_here(type(part)):
                key = part.kind or type(part).__name__, type(part).__module__
                found.setdefault(key, {})[invocation.at] = None
    laws = tuple(ForeignLaw(*key, tuple(labels)) for key, labels in found.items())
    names = () if proved is None else (str(proved.accountant),)
    return Foreign(laws, tuple(each for each in names if not _is_own_accountant(each)))


def _is_own_accountant(name: str) -> bool:
    try:
        return is_defined_here(Accountant.named(name))
    except InputError:  # a file may name one that is not installed
        return name == FILTER


def is_defined_here(kind: type) -> bool:
    """Tell whether a module of this package defines a class.

    >>> is_defined_here(Foreign), is_defined_here(type("Foreign", (Foreign,), {}))
    (True, False)
    """
    module = kind.__module__
    own = module.startswith(_OWN) and getattr(sys.modules.get(module), kind.__name__, None)
    return own is kind


def stated_kinds(plan: Plan) -> tuple[str, ...]:
    """Mechanisms whose law its author states and nothing derives: black boxes, by kind."""
    boxes = (each.mechanism for each in plan.invocations)
    return tuple(dict.fromkeys(each.kind for each in boxes if each.is_black_box))


def laws_standing(
    plan: Plan, proved: Guarantee | None, tested: Mapping[str, int]
) -> tuple[Standing, str]:
    """Judge how it is known that each mechanism costs what it states, and why.

    Args:
        plan: what is proved.
        proved: by whom.
        tested: draws of foreign mechanisms by label, by which no attack on the stated curve
            succeeded.
    """
    foreign, boxes = foreign_of(plan, proved), stated_kinds(plan)
    if not foreign and not boxes:
        return Standing.ENFORCED, "The law of every mechanism is derived in this package."
    said = [f"{', '.join(map(shown, boxes))} states what it costs"] if boxes else []
    said += [f"the proof takes from others {foreign}"] if foreign else []
    why = f"{'; '.join(said)[0].upper()}{'; '.join(said)[1:]}"
    mechanisms = {each.at: each.mechanism for each in plan.invocations}
    drawn = [
        tested.get(at, 0) * (not is_defined_here(type(mechanisms[at])))
        for each in foreign.mechanisms
        for at in each.labels
    ]
    if boxes or foreign.accountants or not all(drawn):
        return Standing.ASSUMED, f"{why}: on its author's word."
    return Standing.TESTED, (
        f"{why}. An attack on {sum(drawn)} draws of it did not contradict the stated curve."
    )


def _parts(value: object) -> Iterator[Kinded]:
    """Everything of a kind in a dataclass, at any depth."""
    if isinstance(value, Kinded):
        yield value
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from _parts(one)
