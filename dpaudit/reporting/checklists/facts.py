"""What a certificate says, in the terms that checklists ask for."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from importlib import resources

from dpaudit.accounting import Guarantee
from dpaudit.certificate import Certificate
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import FixedSizeSampling, MetricBall, Plan, TrustModel
from dpaudit.reporting.wording.headline import headline

_VOCABULARY = tomllib.loads(
    resources.files("dpaudit.reporting.checklists").joinpath("vocabulary.toml").read_text("utf-8")
)
_PERSONS, _EVENTS = (frozenset(_VOCABULARY["units"][kind]) for kind in ("person", "event"))
_QUALIFIER = re.compile(
    r"\b(?:an?|and|as|at|based|by|during|each|every|for|from|in|into|like|of|on|or|over|per|to|when"
    r"|who|whose|with|within)\b"
)
_NARROWING = re.compile(
    r"\b(?:daily|(?:day|hour|minute|month|quarter|session|week|year)(?:s|ly)?)\b"
)


class Level(Enum):
    """The meaning of a unit of privacy, as far as its name tells."""

    PERSON = auto()
    EVENT = auto()
    OTHER = auto()


class Rules:
    """Names of findings by what they say about a system; ``vocabulary.toml`` lists them."""

    SOUNDNESS = frozenset(_VOCABULARY["rules"]["soundness"])
    IMPLEMENTATION = SOUNDNESS | set(_VOCABULARY["rules"]["code"])
    SIDE_CHANNELS = frozenset(_VOCABULARY["rules"]["side_channels"])
    CONTRIBUTIONS = frozenset(_VOCABULARY["rules"]["contributions"])
    UNCOUNTED = frozenset(_VOCABULARY["rules"]["uncounted"])


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
    def proved(self) -> Guarantee | None:
        """The finite guarantee that nothing in the certificate contradicts or disputes."""
        return None if self.unproved else self.certificate.guarantee

    @cached_property
    def unproved(self) -> str:
        """Why :attr:`proved` is None, as the start of a sentence; empty where it is not."""
        guarantee = self.certificate.guarantee
        if guarantee is None:
            return "No accountant has a theorem for the plan"
        if guarantee.epsilon == math.inf:
            return "No finite ε is proved"
        if self.contradicted:
            return "An audit shows more than is proved: the proof is not one of this code"
        if disputed := self.certificate.disputed:
            return f"The declaration that the proof rests on is disputed ({listed(disputed)})"
        return ""

    def found(self, rules: Collection[str]) -> tuple[str, ...]:
        """Tell which of these rules the certificate has a finding of."""
        return tuple(dict.fromkeys(f.rule for f in self.certificate.findings if f.rule in rules))

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
    def trust_models(self) -> tuple[TrustModel, ...]:
        """The trust models of the plan, each once."""
        return tuple(dict.fromkeys(i.trust for i in self.plan.invocations))

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
