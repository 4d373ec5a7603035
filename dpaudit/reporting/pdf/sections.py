"""The sections of a report in a PDF, after its first page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from reportlab.platypus import Spacer

from dpaudit.certificate import Finding, Severity
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.pdf.page import paragraph
from dpaudit.reporting.pdf.parts import (
    HALF,
    boxed,
    code,
    figure,
    figures,
    side_by_side,
    table,
    terms,
)
from dpaudit.reporting.text import compact, down, plain, up
from dpaudit.reporting.view import AuditView, View, answered
from dpaudit.reporting.wording import words
from dpaudit.reporting.wording.headline import confidence
from dpaudit.reporting.wording.tables import InvocationRow

__all__ = ["sections"]

_STATUS_COLOURS = {
    Status.MET: "certified",
    Status.NOT_MET: "refuted",
    Status.NOT_APPLICABLE: "muted",
    Status.UNKNOWN: "unproven",
}
_ACCENTS = {Severity.ERROR: "refuted", Severity.WARNING: "unproven", Severity.NOTE: "muted"}


def sections(shown: View) -> Iterator[tuple[str, Iterator[Any]]]:
    """Title and content of each, in the order of the HTML page."""
    yield "What is proved", _proof(shown)
    yield "Composition over time", _growth(shown)
    yield "Invocations", _invocations(shown)
    yield "Audits", _audits(shown)
    yield "Findings", _findings(shown)
    yield "What is not covered", _open_ends(shown)
    yield "Checklists", _checklists(shown)
    yield "Run", _run(shown)
    yield "Reproduction", _reproduction(shown)
    yield "Signature", _signature()


def _proof(shown: View) -> Iterator[Any]:
    proved, stated = shown.certificate.guarantee, shown.statement
    yield paragraph(stated.promise)
    yield from map(paragraph, stated.setting)
    if stated.assumptions and proved is not None:
        yield paragraph("What it rests on, and what is left without it", "part")
        heads = ("assumed", "if instead", f"then, at δ = {plain(proved.delta)}")
        yield table(heads, ((a.holds, a.fails, a.left) for a in stated.assumptions), (40, 35, 25))
    yield from figures(shown.curves)
    if proved is None:
        return
    yield paragraph("Accountants compared", "part")
    rows = (
        (f"{row.name}{' (chosen)' if row.chosen else ''}", row.theorem, row.epsilon)
        for row in shown.compared
    )
    yield table(("accountant", "theorem", f"ε at δ = {plain(proved.delta)}"), rows, (25, 50, 25))
    yield paragraph("The number in detail", "part")
    bound = "none given: the true ε may be smaller"
    if proved.error_bound is not None:
        bound = f"the tightest ε of this composition is at most {up(proved.error_bound)} smaller"
    digits = "∞" if proved.epsilon == math.inf else proved.epsilon
    yield terms(
        (
            ("ε, all digits", digits),
            ("δ, all digits", proved.delta),
            ("Error bound", bound),
            *shown.native,
        )
    )


def _growth(shown: View) -> Iterator[Any]:
    grown, drawn = shown.growth, shown.growth_figure
    if grown is None or drawn is None:
        return
    yield paragraph(
        "Every further use of the data costs more. A use is one invocation, each time that it "
        f"counts for one {shown.certificate.plan.unit}; the order is that of the plan."
    )
    rows = ((str(s.uses), s.part, up(s.epsilon)) for s in (*grown.within, *grown.beyond))
    heads = ("uses", "of the plan", f"ε at δ = {plain(grown.delta)}")
    yield side_by_side(figure(drawn), [table(heads, rows, (26, 30, 44), HALF)])


def _invocations(shown: View) -> Iterator[Any]:
    number = len(shown.certificate.plan.invocations)
    yield paragraph(f"{number} declared; those that differ in their label alone share a row.")
    heads = ("label", "mechanism", "sensitivity", "per unit", "total", "sampling, group, trust")
    yield table(heads, map(_invocation, shown.rows), (20, 28, 18, 8, 9, 17))


def _invocation(row: InvocationRow) -> tuple[str, ...]:
    mechanism = f"{row.mechanism} ({row.parameters})" if row.parameters else row.mechanism
    rest = f"{row.sampling}; {row.group}; {row.trust}"
    labels = ", ".join(row.labels) or "–"
    return (labels, mechanism, row.sensitivity, str(row.count), str(row.total), rest)


def _audits(shown: View) -> Iterator[Any]:
    if not shown.audits:
        yield paragraph(
            "None: nothing was attacked. That no attack is reported says nothing for or against "
            "the claim."
        )
    for number, audit in enumerate(shown.audits, 1):
        yield from _audit(number, audit)


def _audit(number: int, audit: AuditView) -> Iterator[Any]:
    record = audit.record
    said = f"what is under test is {'' if record.refuted else 'not '}refuted"
    accent = "refuted" if record.refuted else "muted"
    yield boxed([paragraph(f"Audit {number}: {said}", "label")], accent)
    lower = "none" if record.epsilon_lower is None else down(record.epsilon_lower)
    sure = "computed exactly"
    if record.confidence is not None:
        sure = f"with confidence {confidence(record.confidence)}"
    yield terms(
        (
            ("Verdict", record.verdict),
            ("Method", record.method),
            ("Under test", f"ε = {plain(record.claim_epsilon)} at δ = {plain(record.delta)}"),
            ("Lower bound on ε", f"{lower} at δ = {plain(record.delta)}, {sure}"),
            ("Runs on each side", record.runs),
            ("Neighbours", compact(record.pair)),
            ("Event", "none" if record.event is None else record.event),
            ("Power", record.power or "not stated"),
            ("Seed", "none" if record.seed is None else record.seed),
        )
    )
    if audit.facts:
        yield paragraph("Details of the method", "part")
        yield table(("fact", "value"), audit.facts, (45, 55))
    if audit.figure is not None:
        yield side_by_side(figure(audit.figure))
    if audit.command is not None:
        yield paragraph("To repeat it:")
        yield code(audit.command)


def _findings(shown: View) -> Iterator[Any]:
    if not shown.findings:
        yield paragraph("None.")
    for finding in shown.findings:
        yield boxed(list(_finding(finding)), _ACCENTS[finding.severity])


def _finding(finding: Finding) -> Iterator[Any]:
    accent = _ACCENTS[finding.severity]
    yield paragraph(f"{finding.severity}: {finding.rule}", "label", accent)
    yield paragraph(finding.message)
    if finding.remedy:
        yield paragraph(f"Remedy: {finding.remedy}")
    if finding.at:
        yield paragraph(f"At: {finding.at}")
    severity = str(finding.severity).capitalize()
    yield paragraph(f"{severity}: {words.SEVERITIES[finding.severity]}.", "muted")


def _open_ends(shown: View) -> Iterator[Any]:
    lines = shown.certificate.not_covered
    if not lines:
        yield paragraph(
            "The certificate names nothing. What is not named in this report is not thereby "
            "covered."
        )
    yield from (paragraph(text, "bullet", bullet=True) for text in lines)


def _checklists(shown: View) -> Iterator[Any]:
    if not shown.checklists:
        return
    yield paragraph(
        "Filled from the certificate alone. Unknown means that the certificate does not say; it "
        "is not met."
    )
    for checklist in shown.checklists:
        yield paragraph(checklist.title, "part")
        yield paragraph(f"{answered(checklist)} Source: {checklist.source}", "source")
        rows = (
            (f"{i.title} ({i.rule})", i.group, _status(i.status), i.reason) for i in checklist.items
        )
        yield table(("item", "group", "status", "reason"), rows, (34, 14, 14, 38))


def _status(status: Status) -> Any:
    return paragraph(status, "strong", _STATUS_COLOURS[status])


def _run(shown: View) -> Iterator[Any]:
    if shown.certificate.run is None:
        yield paragraph("None is recorded: the certificate follows from the plan alone.")
        return
    yield paragraph("What a run recorded for its owner. It is no part of what is proved.")
    yield terms(shown.summary)
    yield from figures(shown.series)
    if shown.series_rows:
        heads = ("curve", "rounds", "first", "last", "least", "most")
        rows = (
            (r.name, str(r.rounds), r.first, r.last, r.least, r.most) for r in shown.series_rows
        )
        yield table(heads, rows, (30, 10, 15, 15, 15, 15))


def _reproduction(shown: View) -> Iterator[Any]:
    certificate, subject = shown.certificate, shown.certificate.subject
    yield from map(code, shown.commands)
    yield Spacer(0, 4)
    yield terms(
        (
            ("Subject", subject.name),
            ("Code", subject.location or "none"),
            ("Code hash", code(subject.code_hash or "none: a plan without code")),
            ("Plan hash", code(certificate.plan.hash)),
            ("Certificate digest", code(shown.digest)),
            ("Schema", shown.schema),
            ("Seed of the run", "none" if certificate.seed is None else certificate.seed),
        )
    )
    if shown.configuration:
        yield paragraph("Configuration", "part")
        yield terms(shown.configuration)
    if shown.versions:
        yield paragraph("Versions", "part")
        yield terms(shown.versions)
    yield paragraph(
        "Upper bounds are rounded up and lower bounds down, to six digits; the certificate holds "
        "them all.",
        "muted",
    )


def _signature() -> Iterator[Any]:
    yield paragraph("Whoever signs has read the findings and what is not covered.")
    blank = "_" * 38
    yield terms((("Name", blank), ("Place and date", blank), ("Signature", blank)))
