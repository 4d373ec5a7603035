"""Hazards of the guarantee: NIST SP 800-226, section 2."""

from __future__ import annotations

from dpaudit.reporting.checklists.facts import Facts, Level, Rules, listed
from dpaudit.reporting.checklists.model import Status, Template
from dpaudit.reporting.text import plain, up

__all__ = ["TEMPLATES"]

_GROUP = "Guarantee"

STRONG = 1.0
"""ε of at most this is commonly taken as strong (section 2.2)."""
DOUBTFUL = 10.0
"""ε of at least this may mean nothing in practice (section 2.2, as the final edition has it)."""
COMMON_DELTA = 1e-5
"""δ of at most this is commonly used when a guarantee is converted (section 2.3)."""


def _large_epsilon(facts: Facts) -> tuple[Status, str]:
    proved = facts.proved
    if proved is None:
        return Status.NOT_MET, f"{facts.unproved}."
    shown = up(proved.epsilon)
    if proved.epsilon <= STRONG:
        return Status.MET, f"The proved ε = {shown} is at most 1."
    if proved.epsilon >= DOUBTFUL:
        return Status.NOT_MET, f"The proved ε = {shown} is 10 or more, which may protect little."
    return Status.UNKNOWN, (
        f"The proved ε = {shown} lies between 1 and 10, where protection depends on the situation."
    )


def _catastrophic_failure(facts: Facts) -> tuple[Status, str]:
    if facts.failing:
        return Status.NOT_MET, (
            f"{listed(facts.failing)} may reveal everything with a small probability δ."
        )
    if facts.proved is None:
        return Status.UNKNOWN, f"{facts.unproved}."
    return Status.MET, (
        f"No mechanism of the plan ({listed(facts.kinds)}) has an event that reveals everything."
    )


def _unit_captures_harm(facts: Facts) -> tuple[Status, str]:
    unit = facts.plan.unit
    if facts.proved is None:
        return Status.UNKNOWN, f"{facts.unproved}, so no change of the data is covered."
    if facts.ball is not None:
        return Status.NOT_MET, (
            f"Only changes of one {unit} by at most {plain(facts.ball.radius)} are covered; an "
            "adversary may tell larger ones apart."
        )
    if facts.level is Level.PERSON:
        return Status.MET, f"Every change of the data of one {unit} is covered."
    return Status.UNKNOWN, (
        f"The guarantee covers one {unit}; whether that is all that could harm a person is not "
        "recorded."
    )


def _event_level(facts: Facts) -> tuple[Status, str]:
    unit = facts.plan.unit
    if facts.proved is None:
        return Status.UNKNOWN, f"{facts.unproved}, so neither persons nor events are protected."
    if facts.level is Level.PERSON:
        return Status.MET, f"The unit is one {unit}, not one event."
    if facts.level is Level.EVENT:
        return Status.NOT_MET, (
            f"The unit is one {unit}, so a person who stands behind several is protected less."
        )
    return Status.UNKNOWN, f"Whether one {unit} is all that a person contributes is not recorded."


def _different_delta(facts: Facts) -> tuple[Status, str]:
    certificate = facts.certificate
    claim, guarantee = certificate.claim, certificate.guarantee
    deltas = {audit.delta for audit in certificate.audits}
    deltas |= set() if claim is None else {claim.delta}
    deltas |= set() if guarantee is None else {guarantee.delta}
    if facts.statements < 2:
        return Status.NOT_APPLICABLE, "Nothing is compared: there is only one statement."
    if len(deltas) == 1:
        return Status.MET, f"All that is compared is stated at δ = {plain(deltas.pop())}."
    return Status.NOT_MET, (
        "Claim, guarantee and audits speak of different δ "
        f"({listed([plain(delta) for delta in sorted(deltas)])}); only the curve compares them."
    )


def _different_unit(facts: Facts) -> tuple[Status, str]:
    if facts.statements < 2:
        return Status.NOT_APPLICABLE, "Nothing is compared: there is only one statement."
    return Status.MET, (
        f"Claim, guarantee and audits are all read for one {facts.plan.unit} under the relation "
        f"{facts.plan.relation}, and the plan has no other."
    )


def _large_delta(facts: Facts) -> tuple[Status, str]:
    guarantee = facts.certificate.guarantee
    if guarantee is None:
        return Status.UNKNOWN, f"{facts.unproved}."
    delta, population = guarantee.delta, facts.population
    if delta > COMMON_DELTA:
        return Status.NOT_MET, f"δ = {plain(delta)} is above the common 1e-05."
    if population is not None and delta * population >= 1:
        return Status.NOT_MET, (
            f"δ = {plain(delta)} is at least one over the {population} units, so one of them "
            "could be published whole."
        )
    if facts.proved is None:
        return Status.UNKNOWN, f"{facts.unproved}."
    if delta == 0:
        return Status.MET, "The guarantee has δ = 0."
    if not guarantee.native:
        return (
            Status.UNKNOWN,
            "The accountant’s own parameters, which allow another δ, are missing.",
        )
    return Status.MET, (
        f"δ = {plain(delta)} is at most 1e-05, and the accountant’s own parameters are stated."
    )


def _other_releases(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.UNCOUNTED):
        return Status.NOT_MET, f"Something leaves the system uncounted ({listed(found)})."
    stated = len(facts.certificate.not_covered)
    aside = f"; {stated} points are stated as not covered" if stated else ""
    return Status.UNKNOWN, (
        f"Whether other results from the same data are published is not recorded{aside}."
    )


TEMPLATES = (
    Template(
        "nist-large-epsilon", _GROUP, "ε is small enough to mean something (2.2)", _large_epsilon
    ),
    Template(
        "nist-catastrophic-failure",
        _GROUP,
        "No rare event reveals everything, as (ε, δ) alone would allow (2.3)",
        _catastrophic_failure,
    ),
    Template(
        "nist-unit-of-privacy",
        _GROUP,
        "The unit of privacy captures what could harm a person (2.4)",
        _unit_captures_harm,
    ),
    Template(
        "nist-event-level",
        _GROUP,
        "Persons are protected, not only single events (2.4)",
        _event_level,
    ),
    Template(
        "nist-different-delta",
        _GROUP,
        "Only guarantees at the same δ are compared (2.5)",
        _different_delta,
    ),
    Template(
        "nist-different-unit",
        _GROUP,
        "Only guarantees with the same unit of privacy are compared (2.5)",
        _different_unit,
    ),
    Template(
        "nist-large-delta",
        _GROUP,
        "δ is small enough that ε does not mislead (2.5)",
        _large_delta,
    ),
    Template(
        "nist-other-releases",
        _GROUP,
        "No release without differential privacy is made from the same data (2.6)",
        _other_releases,
    ),
)
"""In the order of the publication."""
