"""JUnit XML: a certificate as tests, which a build server shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

from dpaudit.base import files
from dpaudit.certificate import AuditRecord, Certificate, Finding, Severity, Verdict
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.text import visible


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a record with its path, mappings in alphabetical order.

    Lists of numbers alone, and what is empty, count as one value.

    >>> list(leaves({"b": [{"c": None}], "a": [1, 2.5], "d": {}}))
    [('a', '[1,2.5]'), ('b[0].c', 'null'), ('d', '{}')]
    """
    if isinstance(value, Mapping) and value:
        for name, item in sorted(value.items()):
            yield from leaves(item, f"{path}.{name}" if path else str(name))
    elif _is_nested(value):
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}[{place}]")
    else:
        yield path, scalar(value)


def scalar(value: Any) -> str:
    """A text as it is, everything else as JSON."""
    return value if isinstance(value, str) else files.canonical_json(value)


def _is_nested(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return any(isinstance(item, bool) or not isinstance(item, int | float) for item in value)


_NO_CHARACTER = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 (section 2.2) excludes, and the carriage return, which a parser would change."""


class JUnitRenderer(Renderer):
    """One suite for each certificate; one test for its claim, each audit and each finding.

    A refuted claim, a refuting audit and a finding that is an error fail; a claim that no
    accountant can prove is an error of its test; a warning is a skipped test; a note passes. All
    else that the certificate states stands in the properties of the suite, under its path in the
    JSON record.
    There is no time stamp and no duration: a certificate has neither.
    """

    name: ClassVar[str] = "junit"
    suffix: ClassVar[str] = ".xml"

    def render(self, *certificates: Certificate) -> str:
        """An XML document of the Jenkins dialect of the format."""
        root = ET.Element("testsuites", name="dpaudit")
        root.extend(_suite(certificate) for certificate in certificates)
        for counted in ("tests", "failures", "errors"):
            root.set(counted, str(sum(int(suite.get(counted, "0")) for suite in root)))
        ET.indent(root)
        body = ET.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(certificate: Certificate) -> ET.Element:
    record = certificate.to_dict()
    name = certificate.subject.name
    tests = [
        _claim(certificate, record["claim"]),
        *(_audit(certificate, n, audit) for n, audit in enumerate(certificate.audits, start=1)),
        *(_finding(name, n, finding) for n, finding in enumerate(certificate.findings, start=1)),
    ]
    suite = ET.Element("testsuite", name=_xml(name), tests=str(len(tests)))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(test.find(tag) is not None for test in tests)))
    rest = {k: v for k, v in record.items() if k not in ("audits", "findings")}
    suite.append(_properties(rest))
    suite.extend(tests)
    return suite


def _properties(record: Mapping[str, Any]) -> ET.Element:
    properties = ET.Element("properties")
    for path, value in leaves(record):
        ET.SubElement(properties, "property", name=_xml(path), value=_xml(value))
    return properties


def _claim(certificate: Certificate, claim: Mapping[str, Any] | None) -> ET.Element:
    """The claim; without one, whether anything is proved."""
    what = "guarantee" if certificate.claim is None else f"claim {certificate.claim}"
    test = _test(certificate.subject.name, what)
    if certificate.verdict is Verdict.REFUTED:
        _outcome(test, "failure", "refuted", "An audit refutes the claim.")
    elif certificate.claim_exceeded:
        _outcome(test, "failure", "claim-exceeded", "What is proved is above the claim.")
    elif certificate.verdict is Verdict.UNPROVEN:
        _outcome(test, "error", "unproven", "No accountant proves it.")
    _output(test, {"verdict": str(certificate.verdict), "claim": claim})
    return test


def _audit(certificate: Certificate, number: int, audit: AuditRecord) -> ET.Element:
    """One audit; the refutation of a stronger statement than the claim is no failure."""
    test = _test(certificate.subject.name, f"audit {number}: {audit.method}")
    if certificate.is_contradicted_by(audit):
        shown = audit.event or "The claim is exceeded."
        _outcome(test, "failure", audit.verdict, shown)
    _output(test, audit.to_dict())
    return test


def _finding(subject: str, number: int, finding: Finding) -> ET.Element:
    test = _test(subject, f"finding {number}: {finding.rule}")
    outcomes = {Severity.ERROR: "failure", Severity.WARNING: "skipped"}
    if finding.severity in outcomes:
        _outcome(test, outcomes[finding.severity], str(finding.severity), finding.message)
    _output(test, finding.to_dict())
    return test


def _test(subject: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=_xml(subject), name=_xml(name))


def _outcome(test: ET.Element, tag: str, kind: str, message: str) -> None:
    ET.SubElement(test, tag, type=_xml(kind), message=_xml(message))


def _output(test: ET.Element, record: Mapping[str, Any]) -> None:
    """Everything known, one line each."""
    lines: Sequence[str] = [f"{path}: {value}" for path, value in leaves(record)]
    ET.SubElement(test, "system-out").text = _xml("\n".join(lines))


def _xml(text: str) -> str:
    """Foreign text with every character that XML excludes, or nobody sees, written out."""
    return _NO_CHARACTER.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", visible(text))
