"""SARIF 2.1.0: findings with their rules and places, which a code host shows beside the source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from os.path import isfile
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from dpaudit.base import files
from dpaudit.base.finding_table import explained_at
from dpaudit.base.numbers import down, plain
from dpaudit.certificate import AuditRecord, Certificate, Finding, Severity, SubjectRecord, Verdict
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.wording.headline import headline
from dpaudit.reporting.wording.words import RULES, SEVERITIES

CLAIM = "claim"
"""Rule of the verdict."""
AUDIT = "audit"
"""Rule of every audit."""

_MOST_REMEDIES = 5
_MEANS_SOMETHING = re.compile(r"[\[\]\\]|[{}]")


def rules(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The verdict's rule, the audits' rule, and one for each kind of finding, by first appearance.

    The help of a finding's rule is what the findings themselves advise.
    """
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        alike.setdefault(finding.rule, []).append(finding)
    own = [_rule(name, said["short"], said["help"], "error") for name, said in RULES.items()]
    return own + [_finding_rule(rule, found) for rule, found in alike.items()]


def _finding_rule(rule: str, found: list[Finding]) -> dict[str, Any]:
    worst = min(found, key=lambda finding: list(Severity).index(finding.severity)).severity
    remedies = dict.fromkeys(finding.remedy for finding in found if finding.remedy)
    advice = " ".join(list(remedies)[:_MOST_REMEDIES])
    meaning = f"{SEVERITIES[worst][0].upper()}{SEVERITIES[worst][1:]}."
    page = explained_at(rule)
    told = _rule(rule_id(rule), meaning, advice or meaning, str(worst))
    return told | ({"helpUri": page} if page else {})


def rule_id(rule: str) -> str:
    """A finding may not pose as a rule of ours, and a rule needs a name."""
    return f"finding/{rule or 'unnamed'}"


def _rule(name: str, short: str, text: str, level: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": message(short),
        "help": message(text),
        "defaultConfiguration": {"level": level},
    }


def message(text: str) -> dict[str, str]:
    r"""A message object in which no character makes a link or a placeholder.

    SARIF 2.1.0 doubles braces (section 3.11.5) and puts a backslash before brackets and backslashes
    (section 3.11.6). An empty message, which viewers refuse, becomes a dash.

    >>> message("see [a](http://b) and {0}")["text"]
    'see \\[a\\](http://b) and {{0}}'
    """
    return {"text": _MEANS_SOMETHING.sub(_escaped, text) or "–"}


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return character * 2 if character in "{}" else f"\\{character}"


_FILE_AND_LINE = re.compile(r"(?P<file>[^\n]+\.\w{1,8})(?::(?P<line>\d{1,9}))?")
_PLAN_FILES = (".toml", ".json", ".yaml", ".yml")


def location(subject: SubjectRecord, at: str = "") -> dict[str, Any] | None:
    """The place that a finding names, or else the subject's own.

    Args:
        subject: of the certificate.
        at: a place in the code as ``file:line``, or the label of an invocation.

    Returns:
        A location object; None where nothing is known.
    """
    named = _FILE_AND_LINE.fullmatch(at)
    own = None if named is None or named["line"] is None else _physical(at)
    place: dict[str, Any] = {}
    if physical := own or _physical(subject.location) or _plan_file(subject):
        place["physicalLocation"] = physical
    if at and own is None:
        place["logicalLocations"] = [
            {"name": at, "fullyQualifiedName": f"{subject.name}:{at}", "kind": "member"}
        ]
    return place or None


def _plan_file(subject: SubjectRecord) -> dict[str, Any] | None:
    return _physical(subject.name) if subject.name.lower().endswith(_PLAN_FILES) else None


def _physical(place: str) -> dict[str, Any] | None:
    """``file`` or ``file:line``, as a path below the root of the source."""
    found = _FILE_AND_LINE.fullmatch(place)
    if found is None:
        return None
    path = found["file"].replace("\\", "/").lstrip("/")
    if ".." in path.split("/"):
        return None
    # A foreign name must stay a path below the root: no scheme, no host, no way up.
    uri = quote(_in_repository(path), safe="/")
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
    if found["line"] is not None and int(found["line"]) > 0:
        physical["region"] = {"startLine": int(found["line"])}
    return physical


def _in_repository(path: str) -> str:
    """A file that is seen from here as its repository sees it, which a code host goes by."""
    file = Path.cwd() / path
    roots = [folder for folder in file.parents if (folder / ".git").exists()]
    return file.relative_to(roots[0]).as_posix() if roots and isfile(file) else path  # noqa: PTH113 - of any length


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
