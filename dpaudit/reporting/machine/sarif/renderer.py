"""SARIF 2.1.0: what a code host shows beside the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

from dpaudit.base import files
from dpaudit.base.numbers import down, plain
from dpaudit.certificate import AuditRecord, Certificate, Finding, Severity, Verdict
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.machine.sarif.places import location
from dpaudit.reporting.machine.sarif.rules import AUDIT, CLAIM, message, rule_id, rules
from dpaudit.reporting.wording.headline import headline

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


class SarifRenderer(Renderer):
    """One run for each certificate: what is wrong with its claim, and its findings.

    Code hosts refuse two runs of one identifier, so further certificates of a subject are numbered.

    A certified claim and an audit that finds nothing make no result, since code hosts raise an
    alert for every result, whatever its kind; they stand in the certificate, which is a property of
    the run. Every result has a fingerprint that stays the same while its numbers change. There are
    no times: a certificate has none.
    """

    name: ClassVar[str] = "sarif"
    suffix: ClassVar[str] = ".sarif.json"

    def render(self, *certificates: Certificate) -> str:
        """Sorted keys, two spaces, one line break at the end."""
        runs = [_run(certificate) for certificate in certificates]
        seen: Counter[str] = Counter()
        for run in runs:
            details = run["automationDetails"]
            seen[details["id"]] += 1
            if (number := seen[details["id"]]) > 1:
                details["id"] += f"{number}/"
        return files.pretty_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs})


class ShortSarifRenderer(SarifRenderer):
    """The same by its shorter ending, which some tools look for."""

    suffix: ClassVar[str] = ".sarif"


def _run(certificate: Certificate) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "dpaudit", "rules": rules(certificate.findings)}
    if version := certificate.versions.get("dpaudit"):
        driver["version"] = version
    places = {rule["id"]: place for place, rule in enumerate(driver["rules"])}
    results = list(_results(certificate))
    for result, fingerprint in zip(results, _fingerprints(certificate, results), strict=True):
        result["ruleIndex"] = places[result["ruleId"]]
        result["partialFingerprints"] = {"dpaudit/v1": fingerprint}
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"dpaudit/{certificate.subject.name}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"certificate": certificate.to_dict()},
    }


def _results(certificate: Certificate) -> Iterator[dict[str, Any]]:
    """The verdict, unless it is good; the audits that refute; every finding."""
    if certificate.verdict is not Verdict.CERTIFIED:
        yield _verdict(certificate)
    for audit in certificate.audits:
        if audit.refuted or certificate.is_contradicted_by(audit):
            yield _refutation(certificate, audit)
    for finding in certificate.findings:
        yield _finding(certificate, finding)


def _verdict(certificate: Certificate) -> dict[str, Any]:
    wrong = certificate.verdict is Verdict.REFUTED or certificate.claim_exceeded
    said = headline(certificate)
    level = "error" if wrong else "warning"
    return _result(certificate, CLAIM, f"{said.label}: {said.sentence}", level)


def _refutation(certificate: Certificate, audit: AuditRecord) -> dict[str, Any]:
    lower = audit.epsilon_lower
    found = "" if lower is None else f"ε ≥ {down(lower)} "
    event = f" Event: {audit.event}." if audit.event else ""
    text = (
        f"{audit.method}: {audit.verdict}; {found}at δ = {plain(audit.delta)}, where at most "
        f"{plain(audit.claim_epsilon)} is under test.{event}"
    )
    # To refute a stronger statement than what is claimed and proved is worth knowing, no more.
    level = "error" if certificate.is_contradicted_by(audit) else "note"
    attacked, _, _ = str(audit.details.get("code", "")).rpartition(".py:")
    return _result(certificate, AUDIT, text, level, f"{attacked}.py:1" if attacked else "")


def _finding(certificate: Certificate, finding: Finding) -> dict[str, Any]:
    text = " ".join(part for part in (finding.message, finding.remedy) if part)
    level = _LEVELS[finding.severity]
    return _result(certificate, rule_id(finding.rule), text, level, finding.at)


def _result(
    certificate: Certificate, rule: str, text: str, level: str, at: str = ""
) -> dict[str, Any]:
    result = {"ruleId": rule, "level": level, "message": message(text)}
    place = location(certificate.subject, at)
    return result if place is None else result | {"locations": [place]}


def _fingerprints(certificate: Certificate, results: list[dict[str, Any]]) -> Iterator[str]:
    """Digest what stays when a number or a line changes: subject, rule, place, and which of them.

    Two results that agree in all of this are told apart by their order.
    """
    seen: Counter[str] = Counter()
    for result in results:
        places = [_lasting(place) for place in result.get("locations", ())]
        same = files.digest([certificate.subject.name, result["ruleId"], places])
        yield files.digest([same, seen[same]])
        seen[same] += 1


def _lasting(place: dict[str, Any]) -> list[Any]:
    physical = place.get("physicalLocation", {}).get("artifactLocation")
    return [physical, place.get("logicalLocations")]
