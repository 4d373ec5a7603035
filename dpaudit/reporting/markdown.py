"""The report as Markdown, for pull requests and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dpaudit.numbers import confidence, down, percent, plain, up
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.comparison import comparison, tally
from dpaudit.reporting.text import compact, escaped, markdown_table, visible
from dpaudit.reporting.view import View, views
from dpaudit.reporting.wording.tables import InvocationRow
from dpaudit.reporting.wording.words import STANDINGS

if TYPE_CHECKING:
    from dpaudit.certificate import AuditRecord, Certificate, Claim, Finding

__all__ = ["MarkdownRenderer"]


class MarkdownRenderer(Renderer):
    """The facts of the report without its figures."""

    name: ClassVar[str] = "markdown"
    suffix: ClassVar[str] = ".md"
    shows_opinions: ClassVar[bool] = True

    def render(self, *certificates: Certificate) -> str:
        """Headings, lists and tables, one line break at the end."""
        shown = views(certificates, self.opinions)
        lines = list(_report(shown[0])) if len(shown) == 1 else list(_reports(shown))
        return "\n".join(lines).rstrip() + "\n"


def _reports(several: Sequence[View]) -> Iterator[str]:
    """The table of verdicts, then each report one level of headings deeper."""
    yield "# Privacy reports"
    yield ""
    yield f"{tally(several)} Each speaks of its own subject."
    yield ""
    heads = ("", "subject", "verdict", "claimed", "proved", "attacked", "best guess", "protects")
    rows = (
        (r.number, r.name, r.verdict, r.claimed, r.proved, r.attacked, r.guess, r.protects)
        for r in comparison(several)
    )
    yield from _table(heads, rows)
    for shown in several:
        yield from (f"#{line}" if line.startswith("#") else line for line in _report(shown))


def _report(shown: View) -> Iterator[str]:
    yield from _verdict(shown)
    yield from _statement(shown)
    yield from _assumptions(shown)
    yield from _growth(shown)
    yield from _invocations(shown)
    yield from _accountants(shown)
    yield from _audits(shown)
    yield from _findings(shown)
    yield from _open_ends(shown)
    yield from _checklists(shown)
    yield from _run(shown)
    yield from _reproduction(shown)


def _command(line: str) -> str:
    """A line of code to copy; one that could end the code, or looks like HTML, is escaped."""
    return f"- {escaped(line)}" if re.search(r"[`<>&\n]", visible(line)) else f"- `{visible(line)}`"


def _table(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    return markdown_table(heads, (map(escaped, row) for row in rows))


def _terms(entries: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for name, value in entries:
        yield f"- {escaped(name)}: {escaped(value)}"
    yield ""


def _verdict(shown: View) -> Iterator[str]:
    certificate, head = shown.certificate, shown.headline
    claim, proved, plan = certificate.claim, certificate.guarantee, certificate.plan
    yield f"# Privacy report of {escaped(certificate.subject.name)}"
    yield ""
    yield f"**{head.sign} {head.label}.** {escaped(head.sentence)}"
    yield ""
    yield from (f"{escaped(detail)}\n" for detail in head.details)
    if head.open_points:
        yield f"{escaped(head.open_points)}\n"
    odds = head.odds
    yield from _table(
        ("", "ε", "δ", "best guess, at most"),
        (
            ("claimed", "–", "–", "–")
            if claim is None
            else (*_claimed(claim), percent(odds.claimed or 1.0)),
            ("proved", "nothing", "–", "–")
            if proved is None
            else (
                f"proved ({proved.accountant})",
                up(proved.epsilon),
                plain(proved.delta),
                "–" if odds.proved is None else percent(odds.proved),
            ),
        ),
    )
    yield from _terms(
        [("Privacy unit", plan.unit), ("Relation", f"{plan.relation}. {shown.neighbours}")]
        + [("Trust model", line) for line in shown.trust]
        + [("Published", "; ".join(shown.published))]
    )


def _claimed(claim: Claim) -> tuple[str, str, str]:
    """What is claimed, and its ε and δ where these are what is stated."""
    source = f" ({claim.source})" if claim.source else ""
    if claim.risk is not None:
        return f"claimed: {claim}{source}", "–", "–"
    return f"claimed{source}", plain(claim.epsilon), plain(claim.delta)


def _statement(shown: View) -> Iterator[str]:
    yield "## What is proved"
    yield ""
    yield f"{escaped(shown.statement.promise)}\n"
    yield from (f"{escaped(line)}\n" for line in shown.statement.setting)
    if shown.opinion is not None:
        yield from _terms([("Second opinion", shown.opinion)])
    proved = shown.certificate.guarantee
    if shown.statement.assumptions and proved is not None:
        heads = ("assumed", "if instead", f"then, at δ = {plain(proved.delta)}")
        yield from _table(heads, ((a.holds, a.fails, a.left) for a in shown.statement.assumptions))


def _assumptions(shown: View) -> Iterator[str]:
    if not shown.assumptions:
        return
    yield "## What it rests on"
    yield ""
    yield f"{STANDINGS}\n"
    rows = ((each.premise, each.standing, each.evidence) for each in shown.assumptions)
    yield from _table(("assumption", "status", "evidence"), rows)
    yield from _terms(shown.rehearsal)


def _growth(shown: View) -> Iterator[str]:
    grown = shown.growth
    if grown is None:
        return
    yield "## Composition over time"
    yield ""
    yield f"Proved at δ = {plain(grown.delta)}, by the accountant {grown.accountant}.\n"
    steps = (*grown.within, *grown.beyond)
    yield from _table(
        ("uses", "of the plan", "ε"), ((s.uses, s.part, up(s.epsilon)) for s in steps)
    )


def _invocations(shown: View) -> Iterator[str]:
    yield "## Invocations"
    yield ""
    heads = ("label", "mechanism", "sensitivity", "per unit", "total", "sampling", "group", "trust")
    yield from _table(heads, map(_invocation, shown.rows))


def _invocation(row: InvocationRow) -> tuple[Any, ...]:
    mechanism = f"{row.mechanism} ({row.parameters})" if row.parameters else row.mechanism
    labels = ", ".join(row.labels)
    return (
        labels,
        mechanism,
        row.sensitivity,
        row.count,
        row.total,
        row.sampling,
        row.group,
        row.trust,
    )


def _accountants(shown: View) -> Iterator[str]:
    proved = shown.certificate.guarantee
    if proved is None:
        return
    yield "## Accountants"
    yield ""
    rows = ((f"{r.name}{' (chosen)' if r.chosen else ''}", r.epsilon) for r in shown.compared)
    yield from _table(("accountant", f"ε at δ = {escaped(plain(proved.delta))}"), rows)
    bound = "none given" if proved.error_bound is None else up(proved.error_bound)
    yield from _terms((("Error bound", bound), *shown.native))


def _audits(shown: View) -> Iterator[str]:
    yield "## Audits"
    yield ""
    if not shown.audits:
        yield "None: nothing was attacked.\n"
    for number, audit in enumerate(shown.audits, 1):
        yield f"### Audit {number}: {audit.record.verdict}"
        yield ""
        yield from _terms((*_audit(audit.record), *audit.facts))
        if audit.figure is not None:
            yield f"{escaped(audit.figure.description)}\n"
        if audit.command is not None:
            yield f"To repeat it:\n\n{_command(audit.command)}\n"


def _audit(audit: AuditRecord) -> Iterator[tuple[str, Any]]:
    lower = "none" if audit.epsilon_lower is None else down(audit.epsilon_lower)
    sure = "computed exactly" if audit.confidence is None else confidence(audit.confidence)
    yield "Method", audit.method
    yield "Under test", f"ε = {plain(audit.claim_epsilon)} at δ = {plain(audit.delta)}"
    yield "Lower bound on ε", f"{lower} (confidence: {sure})"
    yield "Runs on each side", audit.runs
    yield "Neighbours", compact(audit.pair)
    yield "Event", audit.event or "none"
    yield "Power", audit.power or "not stated"
    yield "Seed", "none" if audit.seed is None else audit.seed


def _findings(shown: View) -> Iterator[str]:
    yield "## Findings"
    yield ""
    if not shown.findings:
        yield "None."
    yield from map(_finding, shown.findings)
    yield ""


def _finding(finding: Finding) -> str:
    place = f" At: {escaped(finding.at)}." if finding.at else ""
    remedy = f" *Remedy:* {escaped(finding.remedy)}" if finding.remedy else ""
    said = f"{escaped(finding.rule)}: {escaped(finding.message)}"
    return f"- **{finding.severity}**, {said}{remedy}{place}"


def _open_ends(shown: View) -> Iterator[str]:
    certificate = shown.certificate
    yield "## What is not covered"
    yield ""
    if not certificate.not_covered:
        yield "The certificate names nothing. What is not named is not thereby covered."
    yield from (f"- {escaped(line)}" for line in certificate.not_covered)
    yield ""


def _checklists(shown: View) -> Iterator[str]:
    if not shown.checklists:
        return
    yield "## Checklists"
    yield ""
    yield "Filled from the certificate alone. Unknown is not met.\n"
    for checklist in shown.checklists:
        yield f"### {escaped(checklist.title)}"
        yield ""
        yield f"{checklist.tally} Source: {escaped(checklist.source)}\n"
        rows = ((i.title, i.rule, i.group, i.status, i.reason) for i in checklist.items)
        yield from _table(("item", "rule", "group", "status", "reason"), rows)


def _run(shown: View) -> Iterator[str]:
    if shown.certificate.run is None:
        return
    yield "## Run"
    yield ""
    yield from _terms(shown.summary)
    if shown.series_rows:
        rows = ((r.name, r.rounds, r.first, r.last, r.least, r.most) for r in shown.series_rows)
        yield from _table(("curve", "rounds", "first", "last", "least", "most"), rows)


def _reproduction(shown: View) -> Iterator[str]:
    certificate = shown.certificate
    subject = certificate.subject
    yield "## Reproduction"
    yield ""
    yield from (_command(line) for line in shown.commands)
    yield ""
    yield from _terms(
        (
            ("Code", subject.location),
            ("Code hash", subject.code_hash or "none"),
            ("Plan hash", certificate.plan.hash),
            ("Certificate digest", shown.digest),
            ("Schema", shown.schema),
            ("Seed of the run", "none" if certificate.seed is None else certificate.seed),
            *((f"Configuration, {name}", value) for name, value in shown.configuration),
            *((f"Version of {name}", value) for name, value in shown.versions),
        )
    )
