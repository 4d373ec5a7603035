"""The premises of a proof, how each may be known to hold, and what one of them rests on.

A certificate lists all of them. That a standing is never better than those of the premises that it
rests on stands here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dpaudit.base.fields import Record


class Scope(StrEnum):
    """What a certificate speaks of."""

    PLAN = "plan"
    CODE = "plan and code"
    RELEASE = "release"
    """Declared queries over a table, of which no code of an author has seen a row."""
    SEALED = "sealed"
    """Code that holds handles alone; no code makes such a certificate yet."""

    def keeps(self, wanted: Scope) -> bool:
        """Whether a certificate of this scope will do where that one is wanted."""
        return self is wanted or (self is Scope.RELEASE and wanted is Scope.SEALED)


class Standing(StrEnum):
    """How a premise is known to hold, from best to worst."""

    NOT_APPLICABLE = "not applicable"
    ENFORCED = "enforced"
    """By construction: the ledger lets nothing else through."""
    TESTED = "tested"
    """On the code that runs, with stated data; it may fail on other data."""
    NOT_EXERCISED = "not exercised"
    """It was looked for, and nothing that was tried could have shown it: no better than assumed."""
    ASSUMED = "assumed"
    """By nobody but the author."""
    VIOLATED = "violated"
    """A test has found that it does not hold."""

    @property
    def rank(self) -> int:
        """Larger is worse; what was not exercised ranks with what is assumed."""
        same = Standing.ASSUMED if self is Standing.NOT_EXERCISED else self
        return list(Standing).index(same)


class Premise(StrEnum):
    """An assumption that the proof of every plan rests on."""

    SENSITIVITY = "values within the sensitivity"
    OWN_VALUES = "each value from its own unit's data alone"
    TOUCHES = "touches of one unit as declared"
    UNITS = "units and groups as named"
    PERSONS = "a unit's name is a person"
    CONTROL_FLOW = "control flow from public facts and releases"
    RESULTS = "results from releases"
    NOISE = "noise of the declared law, fresh and secret"
    SAMPLING = "sampling as declared and secret"
    ONE_DOOR = "no other way out than the ledger"
    LAWS = "each mechanism costs what it states"
    PUBLIC_FACTS = "plan and public facts without these data"


THIRD = frozenset({Premise.PERSONS, Premise.LAWS, Premise.PUBLIC_FACTS})
"""What certificates of the first two schemas do not list."""


@dataclass(frozen=True)
class Assumption(Record):
    """One premise of a proof.

    Attributes:
        premise: what is assumed.
        standing: how it is known to hold, with all that it rests on.
        alone: how it would be known if all that it rests on held.
        rests_on: premises without which it says nothing.
        evidence: why it stands ``alone`` as it does, in one sentence.
    """

    premise: Premise
    standing: Standing
    alone: Standing
    rests_on: tuple[Premise, ...]
    evidence: str

    @property
    def reason(self) -> str:
        """Why it stands as it does: the evidence, and what else it rests on."""
        if not self.rests_on:
            return self.evidence
        below = " and ".join(f"“{each}”" for each in self.rests_on)
        limit = ", and stands no better" if self.standing is not self.alone else ""
        return f"{self.evidence} It rests on {below}{limit}."


Known = dict[Premise, tuple[Standing, str]]
"""How each premise stands alone, and why."""


def limited(
    known: Known, rests_on: Mapping[Premise, tuple[Premise, ...]]
) -> tuple[Assumption, ...]:
    """Every premise, none with a better standing than those that it rests on.

    Args:
        known: how each of them stands alone, and why.
        rests_on: what a premise rests on. What is not applicable limits nothing.
    """

    def standing(premise: Premise) -> Standing:
        own = known[premise][0]
        return max((own, *map(standing, below(premise))), key=lambda each: each.rank)

    def below(premise: Premise) -> tuple[Premise, ...]:
        own = known[premise][0]
        return () if own is Standing.NOT_APPLICABLE else rests_on.get(premise, ())

    return tuple(
        Assumption(each, standing(each), known[each][0], below(each), known[each][1])
        for each in Premise
    )
