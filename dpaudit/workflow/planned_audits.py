"""The attacks that a project file plans for a subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpaudit.auditing import (
    BlackBox,
    audit_release,
    audit_subject,
    candidate_pairs,
    progress_bar,
)
from dpaudit.auditing.distinguishing.feasibility import TooFewRunsError
from dpaudit.auditing.subjects.declared import claimed_curve, null
from dpaudit.auditing.subjects.exact import audit_exact
from dpaudit.base import toml_tables
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import AuditRecord, Certificate, Claim
from dpaudit.plan import Plan
from dpaudit.project import AuditPair, Subject
from dpaudit.project.entries import AuditEntry, SubjectEntry
from dpaudit.project.targets import Target, load_function
from dpaudit.workflow.through_run import audit_run

NO_AUDIT = "No audit was made: "
"""How a certificate begins to say why nobody attacked it."""
_HOW = "define it, or list a [[subject.audit]] with through_run = true."


def with_planned_audits(
    certificate: Certificate, target: Target, entry: SubjectEntry
) -> Certificate:
    """The certificate after the attacks that the project file plans.

    Where the file lists none, code is attacked once by the defaults; if no auditor can do that, the
    certificate says so among what is not covered.

    Raises:
        InputError: if a planned attack cannot be made.
    """
    claim = _tested(certificate)
    if entry.audits is None:
        if target.subject is None or claim is None:
            return certificate
        try:
            _refuse_several(target.subject)
            return certificate.with_audits(_records(target, claim, entry.default_audit, entry.name))
        except (UnsupportedError, TooFewRunsError) as error:
            missing = (*certificate.not_covered, f"{NO_AUDIT}{error}")
            return replace(certificate, not_covered=missing)
    records: list[AuditRecord] = []
    for number, audit in enumerate(entry.audits, start=1):
        with toml_tables.within(f"audit {number}"):
            if claim is None:
                raise InputError(
                    "there is neither a claim nor a guarantee to attack; state a claim."
                )
            records += _records(target, claim, audit, f"{entry.name}, audit {number}")
    return certificate.with_audits(records)


def _refuse_several(subject: Subject) -> None:
    """Several invocations, or samples, are attacked only if the subject says how."""
    count = len(subject.plan().invocations)
    if count > 1 and type(subject).audit_release is Subject.audit_release:
        raise UnsupportedError(
            f"{count} invocations, and the subject does not define audit_release; {_HOW}"
        )
    if any(each.sampling for each in subject.plan().invocations) and (
        type(subject).audit_release is Subject.audit_release
    ):
        raise UnsupportedError(
            f"the plan samples units; the subject does not define audit_release; {_HOW}"
        )


def _tested(certificate: Certificate) -> Claim | None:
    """What is attacked: the claim, or what is proved where nothing is claimed."""
    proved = certificate.guarantee
    if certificate.claim is not None:
        return certificate.claim
    if proved is None or proved.epsilon == float("inf"):
        return None
    return Claim(proved.epsilon, proved.delta, "the guarantee")


def _records(target: Target, claim: Claim, audit: AuditEntry, label: str) -> Sequence[AuditRecord]:
    tested = audit.tested(claim)
    if audit.exact:
        return [_exact(target, tested, audit)]
    if audit.code is not None:
        return [_code(target.plan, tested, audit, label)]
    if target.subject is None:
        raise InputError(
            'a plan file has no code to attack; give code = "FILE.py:function" and a pair, or '
            "exact = true."
        )
    if audit.through_run:
        return [audit_run(target.subject, label, tested, audit.execution)]
    pairs: Sequence[AuditPair | None] = (audit.pair,)
    if audit.every_pair:
        pairs = target.subject.audit_pairs()
        if not pairs:
            raise InputError("every_pair is true, and the subject names no pair; give a pair.")
    records = []
    for pair in pairs:
        with progress_bar(label) as progress:
            execution = audit.execution.updated({"progress": progress})
            records.append(audit_subject(target.subject, pair, claim=tested, execution=execution))
    return records


def _code(plan: Plan, claim: Claim, audit: AuditEntry, label: str) -> AuditRecord:
    """Attack a function that is stated to be what the plan declares."""
    function = BlackBox(load_function(audit.code or ""), arguments=audit.arguments)
    curve, looser = claimed_curve(plan, claim)
    with progress_bar(label) as progress:
        record = audit_release(
            function,
            audit.pair or AuditPair(None, None),
            epsilon=claim.epsilon,
            delta=claim.delta,
            curve=curve,
            execution=audit.execution,
            progress=progress,
        )
    details = {"code": audit.code, "null": null(claim, curve), "claim_looser_than_plan": looser}
    return replace(record, details={**record.details, **details})


def _exact(target: Target, claim: Claim, audit: AuditEntry) -> AuditRecord:
    """Enumerate the outputs on each pair; the worst pair counts."""
    invocations = target.plan.invocations
    if len(invocations) > 1:
        raise UnsupportedError(
            f"the plan has {len(invocations)} invocations; exact mode enumerates one mechanism."
        )
    own = () if target.subject is None else target.subject.audit_pairs()
    pairs = (audit.pair,) if audit.pair is not None else own or candidate_pairs(target.plan)
    records = [
        audit_exact(invocations[0].mechanism, pair, epsilon=claim.epsilon, delta=claim.delta)
        for pair in pairs
    ]
    return max(records, key=lambda record: record.epsilon_lower or 0.0)
