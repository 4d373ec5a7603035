"""The one rule of verdicts: what a claim, a proof, audits and findings together say.

Certificates ask it whenever one of the four changes. An error in a finding takes the ground from
a proof, and only an audit refutes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dpaudit.accounting import CurvePoint, Guarantee
from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import holds, not_above, not_below
from dpaudit.base.validate import shown
from dpaudit.certificate.claim import Claim, Finding, Severity, Verdict
from dpaudit.certificate.records import AuditRecord

_found = FindingTable(__name__)

CLAIM_EXCEEDED = "claim-exceeded"
"""Rule of the finding that the proved ε is above the claimed one."""
UNPROVEN = "unproven"
"""Rule of the finding that no accountant proves anything finite."""
NOT_DECLARED = "not-the-declared-mechanism"
"""Rule of the finding that an audit shows more than is proved of the declared plan."""

OF_EQUALS = "attack-on-equals"
"""Rule of the finding that both sides of an attacked pair are alike."""

REFUSED = "checker-refuses"
"""Rule of the finding that the independent checker refuses the witness of a proof."""

RESERVED = frozenset({CLAIM_EXCEEDED, UNPROVEN, NOT_DECLARED, OF_EQUALS})
"""Rules of findings that only the proof and the audits make."""

_ROUNDING = 1e-9
"""Exact audits enumerate in floats, so their ε may be off by this much of it."""


def decided(
    *,
    proved: bool,
    claim: Claim | None,
    guarantee: Guarantee | None,
    audits: Sequence[AuditRecord],
    findings: Iterable[Finding],
) -> Verdict:
    """The verdict.

    Refuted if an audit contradicts what is stated. Else certified if an accountant proves it and no
    finding is an error: a proof speaks of the declaration, and an error says that the declaration
    or the claim does not hold. Else unproven.

    Args:
        proved: whether an accountant proves what is stated of the declared plan.
        claim: what is stated; where it is None, the guarantee is.
        guarantee: what is proved.
        audits: all of them.
        findings: all of them, :func:`audit_findings` among them.
    """
    if contradicting(claim, guarantee, audits):
        return Verdict.REFUTED
    wrong = any(finding.severity is Severity.ERROR for finding in findings)
    return Verdict.CERTIFIED if proved and not wrong else Verdict.UNPROVEN


def contradicting(
    claim: Claim | None, guarantee: Guarantee | None, audits: Sequence[AuditRecord]
) -> tuple[AuditRecord, ...]:
    """The audits that contradict what is stated: the claim, or the guarantee without one.

    Where nothing finite is stated, these are the audits that refute what they tested.
    """
    if claim is None and guarantee is not None and guarantee.epsilon < math.inf:
        claim = Claim(guarantee.epsilon, guarantee.delta)
    if claim is None:
        return tuple(audit for audit in audits if audit.refuted)
    return tuple(audit for audit in audits if contradicts(audit, claim))


def contradicts(audit: AuditRecord, claim: Claim) -> bool:
    """Tell whether an audit contradicts a claim.

    It does if it refutes a statement that follows from the claim, with an ε and a δ that are not
    smaller, or if its lower bound is above the ε that follows at its δ. The refutation of a
    stronger statement than the claim says nothing of the claim.
    """
    follows = audit.delta >= claim.delta and audit.claim_epsilon >= claim.epsilon
    if audit.refuted and follows:
        return True
    return _above(audit.epsilon_lower, claim.implied.epsilon(audit.delta).upper)


def beyond_proof(guarantee: Guarantee | None, audit: AuditRecord) -> CurvePoint | None:
    """A proved (ε, δ) that an audit contradicts: what it attacked is not what the plan declares."""
    if guarantee is None:
        return None
    own = CurvePoint(guarantee.epsilon, guarantee.delta)
    points = [p for p in (own, *guarantee.curve) if p.epsilon < math.inf and p.delta <= audit.delta]
    least = min(points, key=lambda point: point.epsilon, default=None)
    if least is not None and _above(audit.epsilon_lower, least.epsilon):
        return least
    # An exact audit knows the true ε, and may refute by another measure of the same loss.
    sampled = audit.epsilon_lower is None or audit.confidence is not None
    refuted = audit.refuted and sampled
    if least is not None and refuted and holds(least.epsilon, audit.claim_epsilon):
        return least
    return own if own.epsilon < math.inf and _rejects_the_curve(audit) else None


def _above(lower: float | None, epsilon: float) -> bool:
    return lower is not None and lower > epsilon * (1 + _ROUNDING) + 1e-12


def _rejects_the_curve(audit: AuditRecord) -> bool:
    """Tell whether the audit says that it rejects the plan's whole curve δ(ε)."""
    rejected, null = audit.details.get("rejected_by"), audit.details.get("null")
    by_curve = isinstance(rejected, list | tuple) and "curve" in rejected
    return by_curve and isinstance(null, str) and "plan" in null


def audit_findings(
    guarantee: Guarantee | None, audits: Sequence[AuditRecord]
) -> tuple[Finding, ...]:
    """An error if an audit shows more than is proved; of several, the one with the largest ε.

    A warning if there are audits of a pair whose sides are alike, which no leak tells apart.
    """
    alike = [audit.method for audit in audits if audit.is_of_equals]
    noted = (_found(OF_EQUALS, method=alike[0], number=len(alike)),) if alike else ()
    found = [(audit, point) for audit in audits if (point := beyond_proof(guarantee, audit))]
    if not found:
        return noted
    audit, point = max(found, key=lambda one: one[0].epsilon_lower or 0.0)
    facts = {"method": audit.method, "shown": _shown(audit)}
    least = not_below(point.epsilon)
    return (_found(NOT_DECLARED, **facts, epsilon=least, delta=point.delta), *noted)


def _shown(audit: AuditRecord) -> str:
    sure = "" if audit.confidence is None else f" (confidence {audit.confidence:g})"
    if audit.epsilon_lower is None or audit.epsilon_lower <= audit.claim_epsilon:
        return f"rejects ε = {audit.claim_epsilon:.6g} at δ = {audit.delta:g}{sure}"
    return f"shows ε ≥ {not_above(audit.epsilon_lower)} at δ = {audit.delta:g}{sure}"


def disputes(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Rules of the errors that concern the declaration, not the claim alone: no proof rests on it.

    >>> disputes([Finding("no-noise", Severity.ERROR, ""), Finding("x", Severity.NOTE, "")])
    ('no-noise',)
    """
    wrong = (f for f in findings if f.severity is Severity.ERROR and f.rule != CLAIM_EXCEEDED)
    return tuple(dict.fromkeys(finding.rule for finding in wrong))


def refuse_reserved(findings: Sequence[Finding]) -> None:
    """Rules that decide the verdict belong to the proof, not to the subject's author.

    Raises:
        InputError: naming one.
    """
    for finding in findings:
        if finding.rule in RESERVED:
            raise InputError(
                f"finding has the rule {shown(finding.rule)}, which is reserved; rename it."
            )
