"""The fields of a registry record, from what a certificate tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dpaudit.accounting import AccountantName
from dpaudit.numbers import confidence, down, plain, up
from dpaudit.plan import TrustModel
from dpaudit.reporting.checklists.facts import Facts, Rules
from dpaudit.reporting.text import escaped
from dpaudit.reporting.wording import tables, words
from dpaudit.reporting.wording.headline import headline

if TYPE_CHECKING:
    from dpaudit.certificate import AuditRecord, Finding

__all__ = ["UNKNOWN", "basic", "deployment_model", "dp_variant", "implementation", "privacy_loss"]

UNKNOWN = "Unknown"
"""What stands in a text field that a certificate does not fill."""

_PLACEHOLDERS = {
    "data_curator_type": "Industry",
    "data_product_type": "Summary statistics",
    "publication_date": "1900-01-01",
}
"""Required fields in which the schema allows no text; the registry's own template does the same."""


def basic(facts: Facts) -> dict[str, Any]:
    """What the data product is: hardly anything that a certificate knows."""
    said = headline(facts.certificate)
    curator = {
        "data_curator_name": UNKNOWN,
        "data_curator_type": _PLACEHOLDERS["data_curator_type"],
    }
    return {
        "name": escaped(facts.certificate.subject.name),
        "data_curators": [curator],
        "description": escaped(f"{said.label}: {said.sentence}"),
        "intended_use": UNKNOWN,
        "data_product_type": _PLACEHOLDERS["data_product_type"],
        "data_product_region": UNKNOWN,
        "publication_date": _PLACEHOLDERS["publication_date"],
    }


def dp_variant(facts: Facts) -> dict[str, Any]:
    """Which definition the proof is of."""
    not_covered = facts.certificate.not_covered
    uncounted = [f.message for f in facts.certificate.findings if f.rule in Rules.UNCOUNTED]
    named = {} if facts.proved is None else {"variant_name": _variant(facts)}
    return named | {
        "data_domain": UNKNOWN,
        "unprotected_quantities": _bullets(map(escaped, (*uncounted, *not_covered))),
    }


def _variant(facts: Facts) -> str:
    if facts.ball is not None or facts.proved is None:
        return "Custom"
    if facts.proved.delta == 0:
        return "Pure DP"
    return "Zero-concentrated DP" if _rho(facts) is not None else "Approximate DP"


def _rho(facts: Facts) -> float | None:
    if facts.proved is None or facts.proved.accountant is not AccountantName.ZCDP:
        return None
    rho = facts.proved.native.get("rho")
    return rho if isinstance(rho, float) and math.isfinite(rho) else None


def privacy_loss(facts: Facts) -> dict[str, Any]:
    """Unit and parameters; parameters only where they can be relied on."""
    plan = facts.plan
    near = f"{words.neighbours(plan.relation, plan.unit)} The relation is {plan.relation}."
    loss: dict[str, Any] = {
        "privacy_unit": escaped(plan.unit),
        "privacy_unit_details": escaped(near),
    }
    if facts.population is not None:
        loss["number_of_privacy_units"] = facts.population
    if facts.proved is not None:
        loss["privacy_parameters"] = _parameters(facts)
    return loss | {"privacy_parameters_details": _bullets(_parameter_details(facts))}


def _parameters(facts: Facts) -> dict[str, float]:
    if facts.proved is None:
        return {}
    stated = {"epsilon": facts.proved.epsilon}
    if facts.proved.delta > 0:
        stated["delta"] = facts.proved.delta
    rho = _rho(facts)
    return stated if rho is None else stated | {"rho": rho}


def _parameter_details(facts: Facts) -> Iterator[str]:
    claim, guarantee = facts.certificate.claim, facts.certificate.guarantee
    if claim is not None:
        source = f" ({escaped(claim.source)})" if claim.source else ""
        yield f"Claimed: {words.stated(claim)}{source}."
    if facts.proved is None:
        yield f"No parameters are stated: {escaped(facts.unproved)}."
    if guarantee is None:
        return
    yield (
        f"The accountant {guarantee.accountant} proves ε = {up(guarantee.epsilon)} at "
        f"δ = {plain(guarantee.delta)} of the declared plan."
    )
    for row in tables.compared_rows(facts.certificate):
        if not row.chosen:
            yield f"The accountant {escaped(row.name)} proves ε = {row.epsilon}."


def deployment_model(facts: Facts) -> dict[str, Any]:
    """Who is trusted, and how often something is published."""
    trusted = list(dict.fromkeys(i.trust for i in facts.plan.invocations))
    local = [trust is TrustModel.LOCAL for trust in trusted]
    name = "Local" if all(local) else "Varies" if any(local) else "Central"
    single = facts.releases == "1 release"
    release = {"release_type": "One release"} if single else {}
    return {
        "model_name": name,
        "model_name_details": _bullets(escaped(words.TRUST[trust]) for trust in trusted),
        "trust_assumptions": _bullets(escaped(words.adversary(t)) + "." for t in trusted),
        "actors": UNKNOWN,
        **release,
        "release_type_details": f"At most {facts.releases} by the mechanisms; how they are "
        "published, and whether the data are used again, is unknown.",
        "data_source_type_details": UNKNOWN,
        "access_type_details": UNKNOWN,
    }


def implementation(facts: Facts) -> dict[str, Any]:
    """How noise is added and counted, and what was found."""
    certificate = facts.certificate
    run = certificate.run or {"summary": {}, "series": {}}
    results = sorted({*run["summary"], *run["series"]})
    return {
        "preprocessing_and_hyperparameter_tuning": UNKNOWN,
        "mechanisms": _bullets(map(_mechanism, tables.invocation_rows(facts.plan))),
        "composition": _bullets(_composition(facts)),
        "post_processing": UNKNOWN,
        "justification": _bullets(
            [*map(_audit, certificate.audits), *map(_finding, certificate.findings)]
        ),
        "utility": _bullets(f"A run reports {escaped(name)}." for name in results),
        "additional_information": _bullets(_additional(facts)),
    }


def _mechanism(row: tables.InvocationRow) -> str:
    places = ", ".join(escaped(label) for label in row.labels if label)
    return (
        f"{places}{': ' if places else ''}{escaped(row.mechanism)}, {escaped(row.parameters)}; "
        f"sensitivity {escaped(row.sensitivity)}; touches one unit at most {row.count} times, "
        f"{row.total} in all; units: {escaped(row.group)}; sampling: {escaped(row.sampling)}"
    )


def _composition(facts: Facts) -> Iterator[str]:
    if (guarantee := facts.certificate.guarantee) is None:
        return
    theorem = words.ACCOUNTANTS.get(guarantee.accountant, "")
    yield f"Accountant: {guarantee.accountant}" + (f" ({escaped(theorem)})" if theorem else "")
    if len(facts.plan.by_unit()) > 1:
        yield "Parallel over disjoint groups of units, sequential within each"
    else:
        yield "Sequential over all releases that touch one unit"


def _audit(audit: AuditRecord) -> str:
    lower = "none" if audit.epsilon_lower is None else down(audit.epsilon_lower)
    sure = "exact" if audit.confidence is None else f"confidence {confidence(audit.confidence)}"
    said = (
        f"Audit: {escaped(audit.method)}; {audit.verdict}; lower bound on ε {lower} ({sure}) at "
        f"δ = {plain(audit.delta)}, {audit.runs} runs"
    )
    event = f"; event {escaped(audit.event)}" if audit.event else ""
    return said + event + (f"; {escaped(audit.power)}" if audit.power else "")


def _finding(finding: Finding) -> str:
    at = f" at {escaped(finding.at)}" if finding.at else ""
    remedy = f" {escaped(finding.remedy)}" if finding.remedy else ""
    return f"{finding.severity} {escaped(finding.rule)}{at}: {escaped(finding.message)}{remedy}"


def _additional(facts: Facts) -> Iterator[str]:
    certificate, record = facts.certificate, facts.certificate.to_dict()
    yield f"Placeholders, to be replaced: {', '.join(map(escaped, _PLACEHOLDERS))}"
    yield f"Verdict: {certificate.verdict}"
    yield f"Certificate {record['digest']}, plan {record['plan_hash']}"
    for each in certificate.assumptions:
        yield f"Assumption: {each.premise}: {each.standing}. {escaped(each.evidence)}"
    for name, value in tables.rehearsal_facts(certificate):
        yield f"{name}: {escaped(value)}"
    if certificate.subject.code_hash is not None:
        yield f"Code {certificate.subject.code_hash}"
    if certificate.subject.location:
        yield f"Location {escaped(certificate.subject.location)}"
    for name, value in tables.facts(certificate.subject.configuration):
        yield f"Configuration: {escaped(name)} = {escaped(value)}"
    for name, version in sorted(certificate.versions.items()):
        yield f"Version: {escaped(name)} {escaped(version)}"


def _bullets(lines: Iterable[str]) -> str:
    """A Markdown list; unknown where there is nothing to list."""
    return "\n".join(f"- {line}" for line in lines) or UNKNOWN
