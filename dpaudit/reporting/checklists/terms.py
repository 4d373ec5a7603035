"""The terms of the tables: what an answer depends on, and what it quotes.

A term is a text, a number or a truth value. Where it does not apply it is empty, zero or false, so
that it serves as a condition as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate.assumptions import clips
from dpaudit.mechanisms import Mechanism, StableHistogram, TruncatedLaplace
from dpaudit.plan import TrustModel
from dpaudit.reporting.checklists.facts import Facts, Level, Rules, listed
from dpaudit.reporting.curves import best_odds, proved_points
from dpaudit.reporting.wording import words

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
    """What is proved, and how far it can be relied on."""
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
    """What is declared: who is protected, against whom, and by what."""
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


def _fails(mechanism: Mechanism) -> bool:
    """Whether its loss may be infinite, as far as its fields tell."""
    telling = isinstance(mechanism, TruncatedLaplace | StableHistogram)
    return telling or getattr(mechanism, "delta", 0.0) > 0


def _kinds(mechanisms: Iterable[Mechanism]) -> str:
    return listed(dict.fromkeys(mechanism.kind for mechanism in mechanisms))


def _of_record(facts: Facts) -> dict[str, Any]:
    """What else the certificate records: findings, code, configuration, and a run."""
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
        "code": certificate.subject.code_hash is not None,
        "configuration": listed(sorted(certificate.subject.configuration)),
        "run": run is not None,
        "accuracies": listed([name for name in results if _UTILITY.search(name)]),
    }
