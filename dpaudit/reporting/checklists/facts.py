"""What a certificate says, in the terms that checklists ask for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING

from dpaudit.certificate import Severity
from dpaudit.mechanisms import Mechanism, Opaque
from dpaudit.plan import FixedSizeSampling, MetricBall, TrustModel
from dpaudit.reporting.wording.headline import headline

if TYPE_CHECKING:
    from dpaudit.accounting import Guarantee
    from dpaudit.certificate import Certificate
    from dpaudit.plan import Plan

__all__ = ["Facts", "Level", "Rules", "listed"]

_PERSONS = frozenset(
    {
        "agent",
        "applicant",
        "citizen",
        "client",
        "customer",
        "device",
        "employee",
        "family",
        "firm",
        "household",
        "individual",
        "member",
        "owner",
        "participant",
        "party",
        "patient",
        "person",
        "respondent",
        "seller",
        "student",
        "subscriber",
        "user",
        "voter",
        "worker",
    }
)
_EVENTS = frozenset(
    {
        "answer",
        "click",
        "entry",
        "event",
        "example",
        "image",
        "item",
        "measurement",
        "message",
        "observation",
        "purchase",
        "query",
        "reading",
        "record",
        "report",
        "response",
        "row",
        "sale",
        "sample",
        "sentence",
        "sequence",
        "token",
        "transaction",
        "trip",
        "visit",
    }
)
_QUALIFIER = re.compile(
    r"\b(?:an?|and|as|at|based|by|during|each|every|for|from|in|into|like|of|on|or|over|per|to|when"
    r"|who|whose|with|within)\b"
)
_NARROWING = re.compile(
    r"\b(?:daily|(?:day|hour|minute|month|quarter|session|week|year)(?:s|ly)?)\b"
)
_CLAIM_ONLY = frozenset({"claim-exceeded"})


class Level(Enum):
    """What a unit of privacy stands for, as far as its name tells."""

    PERSON = auto()
    EVENT = auto()
    OTHER = auto()


class Rules:
    """Findings by what they say about a system.

    Whoever writes findings under these names is understood by the checklists; a finding under any
    other name counts by its severity alone.
    """

    SOUNDNESS = frozenset(
        {
            "assumed-sensitivity",
            "float-lsb",
            "groups-overlap",
            "hidden-randomness",
            "integer-overflow",
            "noise-not-calibrated",
            "noise-reuse",
            "noise-reused",
            "not-the-declared-noise",
            "private-control-flow",
            "seed-reuse",
            "seed-reused",
            "sensitivity-miscounted",
            "sensitivity-understated",
            "touched-too-often",
        }
    )
    """An assumption of the proof is found not to hold, or is not declared."""
    IMPLEMENTATION = SOUNDNESS - {"assumed-sensitivity"} | {
        "input-not-refused",
        "private-use-of-randomness",
        "seeded-noise",
    }
    """The code is not what the mathematics speaks of."""
    SIDE_CHANNELS = frozenset(
        {
            "data-dependent-branch",
            "float-lsb",
            "float-noise",
            "integer-overflow",
            "private-control-flow",
        }
    )
    """Something beside the released values can reveal the data."""
    CONTRIBUTIONS = frozenset(
        {
            "assumed-sensitivity",
            "groups-overlap",
            "sensitivity-miscounted",
            "sensitivity-understated",
            "touched-too-often",
        }
    )
    """A unit contributes more than is counted."""
    UNCOUNTED = frozenset(
        {
            "data-dependent-bound",
            "data-dependent-branch",
            "data-dependent-clip",
            "data-dependent-scale",
            "outside-the-claim",
            "private-use-of-randomness",
            "result-not-from-releases",
        }
    )
    """Something that depends on the data leaves the system and is not counted."""


@dataclass(frozen=True, eq=False)
class Facts:
    """A certificate, seen from a checklist.

    Attributes:
        certificate: what is judged.
    """

    certificate: Certificate

    @property
    def plan(self) -> Plan:
        """The declared invocations."""
        return self.certificate.plan

    @cached_property
    def contradicted(self) -> bool:
        """Whether an audit shows more than is proved: the proof is not one of this code."""
        return headline(self.certificate).odds.contradicted

    @cached_property
    def disputed(self) -> tuple[str, ...]:
        """Errors that concern the declaration, not the claim alone."""
        return tuple(
            dict.fromkeys(
                finding.rule
                for finding in self.certificate.findings
                if finding.severity is Severity.ERROR and finding.rule not in _CLAIM_ONLY
            )
        )

    @cached_property
    def proved(self) -> Guarantee | None:
        """The finite guarantee that nothing in the certificate contradicts or disputes."""
        guarantee = self.certificate.guarantee
        if guarantee is None or guarantee.epsilon == math.inf:
            return None
        return None if self.contradicted or self.disputed else guarantee

    @property
    def unproved(self) -> str:
        """Why :attr:`proved` is None, as the start of a sentence."""
        guarantee = self.certificate.guarantee
        if guarantee is None:
            return "No accountant has a theorem for the plan"
        if guarantee.epsilon == math.inf:
            return "No finite ε is proved"
        if self.contradicted:
            return "An audit shows more than is proved: the proof is not one of this code"
        return f"The declaration that the proof rests on is disputed ({listed(self.disputed)})"

    def found(self, rules: Collection[str]) -> tuple[str, ...]:
        """Which of these rules the certificate has a finding of."""
        return tuple(dict.fromkeys(f.rule for f in self.certificate.findings if f.rule in rules))

    @property
    def statements(self) -> int:
        """How many statements of (ε, δ) there are: claim, guarantee, and one of each audit."""
        certificate = self.certificate
        stated = (certificate.claim is not None) + (certificate.guarantee is not None)
        return stated + len(certificate.audits)

    @cached_property
    def level(self) -> Level:
        """What the unit stands for: the noun before any "of a …", "per …" or "in …" decides.

        A click of a user is a click. A user per day, or a daily user, is less than a user: whatever
        narrows a person leaves it open.
        """
        name = str(self.plan.unit).casefold().replace("_", " ")
        head, *qualified = _QUALIFIER.split(name, maxsplit=1)
        words = re.findall(r"\w+", head)
        if not words:
            return Level.OTHER
        if words[-1] in _EVENTS:
            return Level.EVENT
        narrowed = qualified or _NARROWING.search(name) or _EVENTS.intersection(words)
        return Level.PERSON if words[-1] in _PERSONS and not narrowed else Level.OTHER

    @property
    def ball(self) -> MetricBall | None:
        """The relation, if it covers small changes only."""
        return self.plan.relation if isinstance(self.plan.relation, MetricBall) else None

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Each mechanism of the plan once."""
        return tuple(dict.fromkeys(i.mechanism for i in self.plan.invocations))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the mechanisms, each once."""
        return tuple(dict.fromkeys(mechanism.kind for mechanism in self.mechanisms))

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Mechanisms of which only the privacy is stated, not how they work."""
        return tuple(
            dict.fromkeys(
                m.kind
                for m in self.mechanisms
                if isinstance(m, Opaque) or m.kind.endswith("black-box")
            )
        )

    @property
    def failing(self) -> tuple[str, ...]:
        """Mechanisms that may reveal everything with a small probability."""
        return tuple(dict.fromkeys(m.kind for m in self.mechanisms if getattr(m, "delta", 0.0) > 0))

    @property
    def local(self) -> bool:
        """Whether raw data never leave their owner."""
        return all(i.trust is TrustModel.LOCAL for i in self.plan.invocations)

    @property
    def releases(self) -> str:
        """How many releases there are at most, with the noun."""
        number = sum(invocation.releases for invocation in self.plan.invocations)
        return f"{number} release" if number == 1 else f"{number} releases"

    @cached_property
    def population(self) -> int | None:
        """How many units there are, where a sampling scheme tells."""
        known = [
            i.sampling.population
            for i in self.plan.invocations
            if isinstance(i.sampling, FixedSizeSampling)
        ]
        return min(known, default=None)


def listed(names: Collection[str], most: int = 3) -> str:
    """A few names; the rest is counted.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    shown = [name if len(name) <= 60 else f"{name[:59]}…" for name in list(names)[:most]]
    more = len(names) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more > 0 else ", ".join(shown)
