"""Certificates: what was claimed, what is proved, what was attacked, what is left open."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from dpaudit import files
from dpaudit.accounting import Accountant, AccountantName, Guarantee, compose, guarantee
from dpaudit.certificate.assumptions import Rehearsal, assumptions_of, scope_of
from dpaudit.certificate.claim import USUAL_DELTA, Claim, Finding, Verdict
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.certificate.findings import delta_findings, plan_findings
from dpaudit.certificate.laws import Foreign, foreign_of
from dpaudit.certificate.premises import Assumption, Scope
from dpaudit.certificate.records import AuditRecord, SubjectRecord
from dpaudit.certificate.schema import SCHEMA_VERSION, upgraded, validate_certificate, written_as
from dpaudit.certificate.verdicts import (
    CLAIM_EXCEEDED,
    NOT_DECLARED,
    OF_EQUALS,
    UNPROVEN,
    audit_findings,
    beyond_proof,
    contradicting,
    decided,
    disputes,
)
from dpaudit.errors import InputError, TamperedError, UnsupportedError
from dpaudit.finding_table import FindingTable
from dpaudit.mechanisms import Opaque, StableHistogram
from dpaudit.numbers import holds
from dpaudit.plan import Plan
from dpaudit.validate import shown

_Part = TypeVar("_Part", Claim, Guarantee, Rehearsal, FilterRecord)

_found = FindingTable(__name__)

RESERVED = frozenset({CLAIM_EXCEEDED, UNPROVEN, NOT_DECLARED, OF_EQUALS})
"""Rules of findings that only the proof and the audits make."""


@dataclass(frozen=True)
class Certificate:
    """Everything known of one claim. Written as JSON, and valid against the shipped schema.

    Attributes:
        subject: what it speaks of.
        claim: what was stated, if anything.
        verdict: what is known of it.
        plan: the declared invocations.
        guarantee: what the accountant proves; None where no accountant can.
        audits: what was attacked.
        findings: what a reader must know.
        not_covered: what is left open, one sentence each.
        run: results of a run, if there was one.
        seed: seed of the run, if it was seeded.
        versions: of dpaudit and what it computes with.
        rehearsal: what was tested of the code that runs; None where nothing was.
        assumptions: what the proof rests on, each with how it is known to hold; empty in
            certificates of the first schema, which speak of the plan alone.
        witness: what lets a checker prove a number of its own, as JSON values; None without one.
        checked: what a checker proved, as JSON values; None where none did.
        filtered: the privacy filter that all releases passed; None where there was none.
        schema: that it is written by; what changes a certificate brings it to the newest.
        owner: results of the run that the owner of the data alone may see, for a report; they are
            no part of the certificate, and are never written with it.
    """

    subject: SubjectRecord
    claim: Claim | None
    verdict: Verdict
    plan: Plan
    guarantee: Guarantee | None
    audits: tuple[AuditRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_covered: tuple[str, ...] = ()
    run: Mapping[str, Any] | None = None
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    rehearsal: Rehearsal | None = None
    assumptions: tuple[Assumption, ...] = ()
    witness: Mapping[str, Any] | None = None
    checked: Mapping[str, Any] | None = None
    filtered: FilterRecord | None = None
    owner: Mapping[str, Any] | None = None
    schema: str = SCHEMA_VERSION

    @property
    def foreign(self) -> Foreign:
        """What the proof takes from outside of this package."""
        return foreign_of(self.plan, self.guarantee)

    @property
    def scope(self) -> Scope:
        """Whether it speaks of the plan alone, or of the code too."""
        return scope_of(self.rehearsal)

    @property
    def claim_exceeded(self) -> bool:
        """Whether the proved ε is above the claimed one."""
        return any(finding.rule == CLAIM_EXCEEDED for finding in self.findings)

    @property
    def disputed(self) -> tuple[str, ...]:
        """Rules of the errors that concern the declaration, on which every proof rests."""
        return disputes(self.findings)

    def is_contradicted_by(self, audit: AuditRecord) -> bool:
        """Whether an audit contradicts what is claimed or proved; of a stronger statement none."""
        against = contradicting(self.claim, self.guarantee, (audit,))
        return bool(against) or beyond_proof(self.guarantee, audit) is not None

    def with_audits(self, audits: Sequence[AuditRecord]) -> Certificate:
        """The certificate after further audits, judged by the rules of ``verdicts``.

        An audit that shows more than is proved becomes a finding.
        """
        every = (*self.audits, *audits)
        kept = (
            finding for finding in self.findings if finding.rule not in (NOT_DECLARED, OF_EQUALS)
        )
        findings = (*audit_findings(self.guarantee, every), *kept)
        verdict = decided(
            proved=self.verdict is Verdict.CERTIFIED,
            claim=self.claim,
            guarantee=self.guarantee,
            audits=every,
            findings=findings,
        )
        if self.verdict is Verdict.REFUTED:
            verdict = self.verdict
        return replace(self, audits=every, findings=findings, verdict=verdict)._restated()

    def with_rehearsal(self, rehearsal: Rehearsal, findings: Sequence[Finding] = ()) -> Certificate:
        """The certificate after a rehearsal of the code: its errors leave nothing proved."""
        _refuse_reserved(findings)
        every = (*self.findings, *findings)
        return replace(self, rehearsal=rehearsal, findings=every).with_audits(())

    def with_run(self, run: Mapping[str, Any], seed: int | None) -> Certificate:
        """The certificate with the published results of a run."""
        return replace(self, run=run, seed=seed)._restated()

    def _restated(self) -> Certificate:
        return replace(self, assumptions=self.known_assumptions(), schema=SCHEMA_VERSION)

    def known_assumptions(self) -> tuple[Assumption, ...]:
        """What the proof rests on, from plan, rehearsal, findings and run."""
        return assumptions_of(
            self.plan,
            code=self.subject.code_hash is not None,
            rehearsal=self.rehearsal,
            findings=self.findings,
            run=self.run,
            proved=self.guarantee,
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON record, with the digest of all the rest."""
        record = {
            "schema": self.schema,
            "scope": str(self.scope),
            "subject": vars(self.subject) | {"configuration": dict(self.subject.configuration)},
            "claim": None if self.claim is None else self.claim.to_dict(),
            "verdict": str(self.verdict),
            "plan": self.plan.to_dict(),
            "plan_hash": self.plan.hash,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "audits": [audit.to_dict() for audit in self.audits],
            "findings": [finding.to_dict() for finding in self.findings],
            "not_covered": list(self.not_covered),
            "assumptions": [assumption.to_dict() for assumption in self.assumptions],
            "foreign": self.foreign.to_dict(),
            "rehearsal": None if self.rehearsal is None else self.rehearsal.to_dict(),
            "witness": self.witness,
            "checked": self.checked,
            "run": self.run,
            "seed": self.seed,
            "versions": dict(self.versions),
        }
        if self.filtered is not None:
            record["filtered"] = self.filtered.to_dict()
        record = written_as(self.schema, record)
        return record | {"digest": files.digest(record)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Certificate:
        """The certificate that :meth:`to_dict` wrote. Runs no code of the subject.

        Raises:
            InputError: if it does not follow the schema.
            TamperedError: if a hash does not match, or scope or foreign laws do not follow.
        """
        validate_certificate(record)
        _check_hashes(record)
        stated, record = record, upgraded(record)
        made = cls(
            subject=SubjectRecord(**record["subject"]),
            claim=_read(Claim, record["claim"]),
            verdict=Verdict(record["verdict"]),
            plan=Plan.from_dict(record["plan"]),
            guarantee=_read(Guarantee, record["guarantee"]),
            audits=tuple(AuditRecord.from_dict(audit) for audit in record["audits"]),
            findings=tuple(Finding.from_dict(finding) for finding in record["findings"]),
            not_covered=tuple(record["not_covered"]),
            run=record["run"],
            seed=record["seed"],
            versions=record["versions"],
            rehearsal=_read(Rehearsal, record["rehearsal"]),
            assumptions=tuple(map(Assumption.from_dict, record["assumptions"])),
            witness=record["witness"],
            checked=record["checked"],
            filtered=_read(FilterRecord, record.get("filtered")),
            schema=record["schema"],
        )
        _check_derived(stated, made.to_dict())
        return made

    def save(self, path: Path | str) -> Path:
        """Write the JSON file, whole or not at all."""
        text = files.pretty_json(self.to_dict())
        return files.write(path, text)


def _read(kind: type[_Part], record: Mapping[str, Any] | None) -> _Part | None:
    return None if record is None else kind.from_dict(record)


def _check_hashes(record: Mapping[str, Any]) -> None:
    rest = {name: value for name, value in record.items() if name != "digest"}
    if files.digest(rest) != record["digest"]:
        raise TamperedError("certificate was edited: its digest does not match its content.")
    if Plan.from_dict(record["plan"]).hash != record["plan_hash"]:
        raise TamperedError("certificate was edited: plan_hash does not match the plan.")


def _check_derived(stated: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """What is written for readers and follows from the rest."""
    for name in stated.keys() & {"scope", "foreign"}:
        if stated[name] != known[name]:
            raise TamperedError(
                f"{name} is {shown(stated[name])}; plan, guarantee and rehearsal make it "
                f"{shown(known[name])}."
            )


def certify(
    plan: Plan,
    *,
    subject: SubjectRecord,
    claim: Claim | None = None,
    delta: float | None = None,
    accountant: str = AccountantName.BEST,
    findings: Sequence[Finding] = (),
    not_covered: Sequence[str] = (),
    filtered: FilterRecord | None = None,
) -> Certificate:
    """Prove what can be proved of a plan.

    A finding of the author that is an error says that the plan or the claim does not hold, so the
    verdict is then at best *unproven*.

    Args:
        plan: the declared invocations.
        subject: what the plan belongs to.
        claim: what is stated; without it the certificate states the guarantee alone.
        delta: δ of the guarantee; the claim's where not given, else 0 where a pure ε exists, and
            1e-5 beside a claim that has none.
        accountant: whose proof is wanted.
        findings: known to the subject's author.
        not_covered: known to the subject's author.
        filtered: the privacy filter that all releases of a run passed. What is proved is the
            lesser of its ε and that of the plan; claims of other kinds than (ε, δ) are judged by
            the plan alone.

    Raises:
        InputError: if δ is missing where there is no pure guarantee, or is invalid, or the filter
            does not admit what is said to have passed.
    """
    accountant = Accountant.named(accountant).kind
    _refuse_reserved(findings)
    delta = _chosen_delta(plan, claim, delta)
    reasons: list[Finding] = []

    def known(delta: float) -> Guarantee | None:
        """What is proved at a δ."""
        found: Guarantee | None = None
        try:
            found = guarantee(plan, delta, accountant)
        except UnsupportedError as error:
            reasons.append(_found("no-theorem", reason=error))
        if filtered is None or (claim is not None and claim.risk is not None):
            return found
        found = filtered.bounded(plan, found, delta)
        if found is not None:
            reasons.clear()
        return found

    proved = known(delta)
    notes: list[Finding] = []
    if proved is not None and claim is not None and claim.risk is not None:
        beyond = claim.excess(compose(plan, accountant))
        reasons += [] if beyond is None else [_found(CLAIM_EXCEEDED, claim=claim, proved=beyond)]
        notes += [_unbounded(plan, proved)] if proved.epsilon == math.inf else []
    elif proved is not None:
        # A claim is judged at its own δ, whatever δ the guarantee is wanted at.
        same = claim is None or claim.delta == proved.delta
        judged = (None if same or claim is None else known(claim.delta)) or proved
        if judged.epsilon == math.inf:
            reasons.append(_unbounded(plan, judged))
        elif claim is not None and not holds(judged.epsilon, claim.epsilon):
            shown = f"ε = {_shown(judged.epsilon, claim.epsilon)} at δ = {judged.delta:g}"
            reasons.append(_found(CLAIM_EXCEEDED, claim=claim, proved=shown))
        if judged is not proved and proved.epsilon == math.inf:
            notes.append(_unbounded(plan, proved))
    every = (
        *reasons,
        *notes,
        *delta_findings(claim, delta),
        *plan_findings(plan),
        *findings,
    )
    made = Certificate(
        subject=subject,
        claim=claim,
        verdict=decided(
            proved=not reasons, claim=claim, guarantee=proved, audits=(), findings=every
        ),
        plan=plan,
        guarantee=proved,
        findings=every,
        not_covered=tuple(not_covered),
        versions=versions(),
        filtered=filtered,
    )
    return made._restated()


def _refuse_reserved(findings: Sequence[Finding]) -> None:
    """Rules that decide the verdict belong to the proof, not to the subject's author."""
    for finding in findings:
        if finding.rule in RESERVED:
            raise InputError(
                f"finding has the rule {shown(finding.rule)}, which is reserved; rename it."
            )


def _chosen_delta(plan: Plan, claim: Claim | None, delta: float | None) -> float:
    if delta is not None:
        return Claim(0.0, delta).delta
    risk = None if claim is None else claim.risk
    if claim is not None and risk is None:
        return claim.delta
    if risk is not None and risk.delta_wanted is not None:
        return risk.delta_wanted
    try:
        pure = guarantee(plan, 0.0, AccountantName.PURE)
    except UnsupportedError as error:
        if any(isinstance(each.mechanism, Opaque) for each in plan.invocations):
            return 0.0  # no δ could help: there is no proof at any
        missing = str(error)
    else:
        if pure.epsilon < math.inf:
            return 0.0
        missing = "the plan has no pure guarantee."
    if risk is not None:
        return USUAL_DELTA
    such = "a delta above 0, such as 1e-5: by --delta, or in [claim] of a plan file"
    raise InputError(f"delta is missing, and {missing} Give {such}.")


def _unbounded(plan: Plan, proved: Guarantee) -> Finding:
    reason = proved.native.get("reason", f"no finite ε is proved at δ = {proved.delta:g}")
    found, keys = _found("no-finite-epsilon", reason=reason), StableHistogram
    known = [each for each in plan.invocations if isinstance(each.mechanism, keys)]
    told = max((i.mechanism.pair_and_failure(i.sensitivity)[1] for i in known), default=0.0)
    low = f"Raise the threshold of {keys.kind}: a key that one alone has is told with probability"
    return replace(found, remedy=f"{low} {told:.3g}.") if told > proved.delta else found


def _shown(epsilon: float, beside: float) -> str:
    """Enough digits to tell two numbers apart."""
    short = f"{epsilon:.6g}"
    return repr(epsilon) if short == f"{beside:.6g}" else short


def versions() -> dict[str, str]:
    """Versions of what a certificate is computed with."""
    libraries = ("dpaudit", "numpy", "scipy", "dp-accounting")
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in libraries
    }


def load_certificate(path: Path | str) -> Certificate:
    """Read a certificate file; reading imports and runs nothing of the subject.

    Raises:
        InputError: if it is missing or does not follow the schema.
        TamperedError: if a hash does not match.
    """
    if Path(path).suffix in (".html", ".md", ".pdf"):
        raise InputError(f"{files.shown(path)} is a report; give its certificate, which is JSON.")
    record = files.load_json(path, what="certificate")
    if not isinstance(record, dict):
        raise InputError(f"certificate {files.shown(path)} must be a JSON object.")
    return Certificate.from_dict(record)
