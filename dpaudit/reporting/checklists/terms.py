"""The terms of checklists: what a certificate says, in the words that their tables ask for.

A term is a text, a number or a truth value. Where it does not apply it is empty, zero or false, so
that it serves as a condition as well.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from importlib import resources
from typing import Any

from dpaudit.accounting import Guarantee
from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate import Certificate
from dpaudit.certificate.assumptions import clips
from dpaudit.mechanisms import (
    Mechanism,
    StableHistogram,
    TruncatedDiscreteGaussian,
    TruncatedLaplace,
)
from dpaudit.plan import FixedSizeSampling, MetricBall, Plan, TrustModel
from dpaudit.reporting.curves import best_odds, proved_points
from dpaudit.reporting.wording import words
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
            return (
                "An audit shows a larger ε than is proved: the code does not follow the plan of "
                "the proof"
            )
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


STRONG = 1.0
"""ε of at most this is commonly taken as strong (NIST SP 800-226, The Privacy Parameter ε)."""
DOUBTFUL = 10.0
"""ε of at least this may mean nothing in practice (as before, in the final edition)."""
COMMON_DELTA = 1e-5
"""δ of at most this is commonly used when a guarantee is converted (the same, Variants)."""

_TUNING = re.compile(r"\b(hyper-?parameters?|tun(e|ed|ing)|model selection)\b", re.IGNORECASE)
_UTILITY = re.compile(r"\b(accura|error|regret|utility|rmse|mae\b|mse\b|auc\b|loss)", re.IGNORECASE)


def terms(facts: Facts) -> Mapping[str, Any]:
    """Every term that a table may name, for one certificate."""
    return _of_proof(facts) | _of_statements(facts) | _of_plan(facts) | _of_record(facts)


def _of_proof(facts: Facts) -> dict[str, Any]:
    """Return what is proved, and how far it can be relied on."""
    proved, guarantee = facts.proved, facts.certificate.guarantee
    delta = 0.0 if guarantee is None else guarantee.delta
    theorem = "" if guarantee is None else words.ACCOUNTANTS.get(guarantee.accountant, "")
    accountant = "" if guarantee is None else str(guarantee.accountant)
    return {
        "unproved": facts.unproved,
        "contradicted": facts.contradicted,
        "epsilon": proved and up(proved.epsilon),
        "strong_epsilon": proved is not None and proved.epsilon <= STRONG,
        "doubtful_epsilon": proved is not None and proved.epsilon >= DOUBTFUL,
        "best_guess": proved and percent(best_odds(proved_points(proved))),
        "delta": plain(delta),
        "pure": delta == 0,
        "uncommon_delta": delta > COMMON_DELTA,
        "delta_of_one_unit": facts.population is not None and delta * facts.population >= 1,
        "population": facts.population,
        "native_parameters": guarantee is not None and bool(guarantee.native),
        "accountant": f"{accountant} ({theorem})" if theorem else accountant,
        "recomputable": guarantee is not None and bool(facts.certificate.versions),
    }


def _of_statements(facts: Facts) -> dict[str, Any]:
    """The statements of (ε, δ): claim, guarantee, and one of each audit."""
    claim, guarantee = facts.certificate.claim, facts.certificate.guarantee
    audits = facts.certificate.audits
    stated = [each.delta for each in (claim, guarantee, *audits) if each is not None]
    bounds = [audit.epsilon_lower for audit in audits if audit.epsilon_lower is not None]
    attacks = "One attack is" if len(audits) == 1 else f"{len(audits)} attacks are"
    return {
        "single_statement": len(stated) < 2,
        "several_deltas": len(set(stated)) > 1,
        "deltas": listed([plain(delta) for delta in sorted(set(stated))]),
        "attacks": attacks if audits else "",
        "lower_bound": down(max(bounds)) if bounds else "",
    }


def _of_plan(facts: Facts) -> dict[str, Any]:
    """Return what is declared: who is protected, against whom, and by what."""
    plan, trusted = facts.plan, facts.trust_models
    adversary = words.adversary(plan.trust)
    return {
        "unit": plan.unit,
        "person_level": facts.level is Level.PERSON,
        "event_level": facts.level is Level.EVENT,
        "relation": plan.relation,
        "radius": facts.ball and plain(facts.ball.radius),
        "trust": plan.trust,
        "trust_models": listed(trusted),
        "several_trust_models": len(trusted) > 1,
        "trusting": "" if set(trusted) == {TrustModel.LOCAL} else listed(trusted),
        "deployment": words.TRUST[trusted[0]].split(".")[0],
        "adversary": f"{adversary[0].lower()}{adversary[1:]}",
        "mechanisms": _kinds(facts.mechanisms),
        "unexplained": _kinds(each for each in facts.mechanisms if each.is_black_box),
        "failing": _kinds(filter(_fails, facts.mechanisms)),
        "clipping": _kinds(filter(clips, facts.mechanisms)),
        "sampling": any(each.sampling is not None for each in plan.invocations),
        "releases": facts.releases,
        "touches": max(sum(each.count for each in group) for group in plan.by_unit()),
    }


_TELLING = TruncatedLaplace | TruncatedDiscreteGaussian | StableHistogram


def _fails(mechanism: Mechanism) -> bool:
    """Tell whether its loss may be infinite, as far as its fields tell."""
    telling = isinstance(mechanism, _TELLING)
    return telling or getattr(mechanism, "delta", 0.0) > 0


def _kinds(mechanisms: Iterable[Mechanism]) -> str:
    return listed(dict.fromkeys(mechanism.kind for mechanism in mechanisms))


def _of_record(facts: Facts) -> dict[str, Any]:
    """Return what else the certificate records: findings, code, configuration, and a run."""
    certificate, run = facts.certificate, facts.certificate.run
    results = [] if run is None else sorted({*run["summary"], *run["series"]})
    return {
        "unsound": listed(facts.found(Rules.SOUNDNESS)),
        "implementation_defects": listed(facts.found(Rules.IMPLEMENTATION)),
        "side_channels": listed(facts.found(Rules.SIDE_CHANNELS)),
        "miscounted": listed(facts.found(Rules.CONTRIBUTIONS)),
        "uncounted": listed(facts.found(Rules.UNCOUNTED)),
        "not_covered": len(certificate.not_covered),
        "tuning": any(map(_TUNING.search, certificate.not_covered)),
        "release": certificate.release is not None,
        "sealed": certificate.seal is not None,
        "code": certificate.subject.code_hash is not None,
        "configuration": listed(sorted(certificate.subject.configuration)),
        "run": run is not None,
        "accuracies": listed([name for name in results if _UTILITY.search(name)]),
    }
