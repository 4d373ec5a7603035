"""The rows of a checked project as short texts, for the terminal and the index alike."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.accounting import Guarantee
from dpaudit.base.numbers import down, plain, up
from dpaudit.certificate import Certificate, Claim, Severity, Standing
from dpaudit.workflow.outcomes import BudgetRow, ProjectOutcome, Status, SubjectRow
from dpaudit.workflow.sealing import NOT_SEALED

NO_AUDIT = "No audit was made: "
"""How a certificate begins to say why nobody attacked it."""

SUBJECT_HEADS = ("subject", "verdict", "claimed ε", "proved ε", "at δ", "attacked: ε ≥")
BUDGET_HEADS = ("budget", "verdict", "allowed ε", "proved ε", "at δ", "of")
NOTHING = "–"


def subject_cells(row: SubjectRow) -> tuple[str, ...]:
    """One text for each of :data:`SUBJECT_HEADS`. Guarantees are rounded up, attacks down."""
    known = row.certificate
    if known is None:
        return (row.name, str(row.status), NOTHING, NOTHING, NOTHING, NOTHING)
    return (
        row.name,
        str(row.status),
        _claimed(known.claim, known.guarantee),
        *_proved(known.guarantee),
        _attacked(known),
    )


def budget_cells(row: BudgetRow) -> tuple[str, ...]:
    """One text for each of :data:`BUDGET_HEADS`."""
    verdict = "kept" if row.status is Status.CERTIFIED else str(row.status)
    proved, _ = _proved(row.guarantee)
    allowed, delta = plain(row.limit.epsilon), plain(row.limit.delta)
    return (row.name, verdict, allowed, proved, delta, ", ".join(row.subjects))


def _claimed(claim: Claim | None, proved: Guarantee | None) -> str:
    if claim is None:
        return NOTHING
    if claim.risk is not None:
        return str(claim)
    same = proved is not None and proved.delta == claim.delta
    return plain(claim.epsilon) if same else f"{plain(claim.epsilon)} (δ {plain(claim.delta)})"


def _proved(proved: Guarantee | None) -> tuple[str, str]:
    if proved is None:
        return NOTHING, NOTHING
    return (NOTHING if proved.epsilon == math.inf else up(proved.epsilon)), plain(proved.delta)


def _attacked(certificate: Certificate) -> str:
    if not certificate.audits:
        return NOTHING
    return down(max(audit.epsilon_lower or 0.0 for audit in certificate.audits))


def remarks(outcome: ProjectOutcome) -> Iterator[tuple[str, str]]:
    """Name and text of what no cell holds: errors, what is not tested, refused budgets, changes."""
    comparing = bool(outcome.gone) or any(row.since for row in outcome.subjects)
    for row in outcome.subjects:
        if row.error:
            yield row.name, row.error
        if row.unrehearsed:
            yield row.name, row.unrehearsed
        for finding in () if row.certificate is None else row.certificate.findings:
            if finding.severity is Severity.ERROR:  # it takes the ground from the proof
                yield row.name, f"{finding.rule}: {finding.message} {finding.remedy}".rstrip()
        for text in () if row.certificate is None else _untried(row.certificate):
            yield row.name, text
        for change in row.changes:
            yield row.name, str(change)
        if comparing and row.certificate is not None and not row.changes:
            yield row.name, "nothing changed." if row.since else "there is no older certificate."
    for budget in outcome.budgets:
        if budget.note:
            yield budget.name, budget.note
    for change in outcome.changes:
        yield "project", str(change)
    for name in outcome.gone:
        yield name, "there is an older certificate, and no such subject now."


def _untried(certificate: Certificate) -> Iterator[str]:
    """Return how it was sealed, what is only assumed, and why no attack was made."""
    if certificate.seal is not None:
        yield (
            f"sealed: its code ran on made-up rows ({certificate.seal.made_up}), in a process that "
            "has no way to its table."
        )
    for finding in certificate.findings:
        if finding.rule == NOT_SEALED:
            yield f"{finding.severity}, not sealed: {finding.message} {finding.remedy}"
    why: dict[str, list[str]] = {}
    for each in certificate.assumptions:
        if each.alone.rank == Standing.ASSUMED.rank:
            why.setdefault(each.evidence, []).append(str(each.premise))
    for evidence, premises in why.items():
        yield f"warning, only assumed: {'; '.join(premises)}. {evidence}"
    if not certificate.audits and certificate.release is None and certificate.seal is None:
        said = (text for text in certificate.not_covered if text.startswith(NO_AUDIT))
        yield next(said, f"{NO_AUDIT}{_lacking(certificate)}")


def _lacking(certificate: Certificate) -> str:
    if certificate.subject.code_hash is None:
        return (
            'a plan file has no code; list a [[subject.audit]] with code = "FILE.py:function" and '
            "a pair, or with exact = true where outputs are few."
        )
    if certificate.claim is None and _proved(certificate.guarantee)[0] == NOTHING:
        return "nothing is claimed or proved that could be attacked; state a claim."
    return "the project file lists none; take audit = [] away."


def headline(outcome: ProjectOutcome) -> str:
    """The whole outcome in one sentence."""
    counts = {
        status: sum(row.status is status for row in outcome.subjects) for status in reversed(Status)
    }
    names = {Status.ERROR: "in error"}
    found = ", ".join(f"{n} {names.get(status, status)}" for status, n in counts.items() if n)
    over = sum(row.status is not Status.CERTIFIED for row in outcome.budgets)
    budgets = f"; {len(outcome.budgets) - over} of {len(outcome.budgets)} budgets kept"
    worse = "; worse than before" if outcome.is_worse else ""
    return f"{found}{budgets if outcome.budgets else ''}{worse}"
