"""Certificates: what was claimed, proved and attacked, and what is left open.

Every certificate is validated against its JSON Schema before anything in it is believed. Older
schemas are read as what they said, and nothing is added to it. Commands make it, store it and read
it; renderers show it. Its digest is of its own record, and what a file states beside what follows
from it must be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from dpaudit.accounting import Guarantee
from dpaudit.base import files
from dpaudit.base.displayed import Displayed
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.files import parse_json
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.validate import shown
from dpaudit.certificate.assumptions import (
    Assumption,
    Foreign,
    Rehearsal,
    Scope,
    assumptions_of,
    foreign_of,
    scope_of,
)
from dpaudit.certificate.claim import Claim, Finding, Severity, Verdict
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.certificate.records import (
    AuditRecord,
    CheckRecord,
    ReleaseRecord,
    SealRecord,
    SubjectRecord,
)
from dpaudit.certificate.verdicts import (
    CLAIM_EXCEEDED,
    NOT_DECLARED,
    OF_EQUALS,
    audit_findings,
    beyond_proof,
    contradicting,
    decided,
    disputes,
    refuse_reserved,
)
from dpaudit.plan import Plan

SCHEMA_VERSION = "dpaudit-certificate/3"
_SECOND, _FIRST = "dpaudit-certificate/2", "dpaudit-certificate/1"
_READ = {
    SCHEMA_VERSION: "certificate-3.json",
    _SECOND: "certificate-2.json",
    _FIRST: "certificate-1.json",
}
_SINCE: dict[str, dict[str, Any]] = {
    "rehearsal": {"exercised": {}, "public": 0},
    "assumptions": {"alone": "assumed", "rests_on": []},
}
"""What the third schema added within a part of the second, with what is read where it is not."""
_NEWEST: dict[str, Any] = {"scope": "plan", "foreign": {}, "witness": None, "checked": None}
_WHERE_USED = {"filtered", "release", "seal"}
_NEWER: dict[str, Any] = {"assumptions": [], "rehearsal": None}


@cache
def certificate_schema(version: str = SCHEMA_VERSION) -> dict[str, Any]:
    """The schema of a version that ships with the package."""
    text = resources.files("dpaudit.certificate").joinpath(_READ[version]).read_text("utf-8")
    schema: dict[str, Any] = parse_json(text, what="schema")
    return schema


def validate_certificate(record: Mapping[str, Any]) -> None:
    """Check a certificate's structure.

    Raises:
        InputError: naming the first field that does not follow the schema.
        TamperedError: if that is so since it was written.
    """
    from jsonschema import Draft202012Validator

    version = record.get("schema")
    if not isinstance(version, str) or version not in _READ:
        if {"payload", "releases"} & record.keys():
            other = "a signed envelope" if "payload" in record else "an export of a book"
            reads = "dpaudit verify FILE --key PUBLIC.pem reads it"
            raise InputError(f"the file is {other}, not a certificate; {reads}.")
        known = f"{shown(version)}; this version reads {' and '.join(map(repr, _READ))}"
        raise InputError(f"the file is no certificate known here: its schema is {known}.")
    errors = Draft202012Validator(certificate_schema(version)).iter_errors(record)
    first = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if first is not None:
        if "digest" in record:
            _check_digest(record)
        place = ".".join(map(str, first.absolute_path)) or "certificate"
        message = first.message if len(first.message) <= 160 else first.message[:157] + "..."
        raise InputError(f"{place} does not follow the schema: {message}.")


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of any schema with all parts of the newest: what it says, and no more.

    How a premise of the second schema stands is how it stands alone.
    """
    full = {**_NEWEST, **_NEWER, **record}
    if record["schema"] == SCHEMA_VERSION:
        return full
    if full["rehearsal"] is not None:
        full["rehearsal"] = _SINCE["rehearsal"] | full["rehearsal"]
    full["assumptions"] = [
        _SINCE["assumptions"] | each | {"alone": each["standing"]} for each in full["assumptions"]
    ]
    return full


def written_as(schema: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what an older schema does not know."""
    if schema == SCHEMA_VERSION:
        return dict(record)
    unknown = _NEWEST.keys() | _WHERE_USED | (_NEWER.keys() if schema == _FIRST else set())
    kept = {name: value for name, value in record.items() if name not in unknown}
    if kept.get("rehearsal") is not None:
        kept["rehearsal"] = _without(kept["rehearsal"], _SINCE["rehearsal"])
    if "assumptions" in kept:
        kept["assumptions"] = [
            _without(each, _SINCE["assumptions"]) for each in kept["assumptions"]
        ]
    return kept


def _without(record: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


_Part = TypeVar(
    "_Part", Claim, Guarantee, Rehearsal, CheckRecord, FilterRecord, ReleaseRecord, SealRecord
)

_found = FindingTable(__name__)


@dataclass(frozen=True)
class Certificate(Displayed):
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
        checked: what the independent checker proves; None where it was not asked.
        filtered: the privacy filter that all releases passed; None where there was none.
        release: the declared queries over a table that it speaks of; None of anything else.
        seal: how the code was kept from the data of its run; None where it was not.
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
    checked: CheckRecord | None = None
    filtered: FilterRecord | None = None
    release: ReleaseRecord | None = None
    seal: SealRecord | None = None
    owner: Mapping[str, Any] | None = field(default=None, repr=False)
    schema: str = SCHEMA_VERSION

    @property
    def foreign(self) -> Foreign:
        """What the proof takes from outside of this package."""
        return foreign_of(self.plan, self.guarantee)

    @property
    def scope(self) -> Scope:
        """Whether it speaks of the plan alone, of the code too, or of a declared release."""
        return scope_of(self.rehearsal, self.release, self.seal)

    @property
    def claim_exceeded(self) -> bool:
        """Whether the proved ε is above the claimed one."""
        return any(finding.rule == CLAIM_EXCEEDED for finding in self.findings)

    @property
    def disputed(self) -> tuple[str, ...]:
        """Rules of the errors that concern the declaration, on which every proof rests."""
        return disputes(self.findings)

    def is_contradicted_by(self, audit: AuditRecord) -> bool:
        """Tell whether an audit contradicts what is claimed or proved; of a stronger claim none."""
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
        return replace(self, audits=every, findings=findings, verdict=verdict).restated()

    def with_rehearsal(self, rehearsal: Rehearsal, findings: Sequence[Finding] = ()) -> Certificate:
        """The certificate after a rehearsal of the code: its errors leave nothing proved.

        One that could not be done, or that ended in an error, certifies nothing either.
        """
        refuse_reserved(findings)
        undone = self.verdict is Verdict.CERTIFIED and not rehearsal.done
        verdict = Verdict.UNPROVEN if undone else self.verdict
        made = replace(self, rehearsal=rehearsal, verdict=verdict)
        return replace(made, findings=(*self.findings, *findings)).with_audits(())

    def with_run(self, run: Mapping[str, Any], seed: int | None) -> Certificate:
        """The certificate with the published results of a run."""
        return replace(self, run=run, seed=seed).restated()

    def restated(self) -> Certificate:
        """As the newest schema tells it."""
        newest = replace(self, schema=SCHEMA_VERSION)
        return replace(newest, assumptions=newest.known_assumptions())

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The findings, and a warning for each reason why premises are only assumed; worst first.

        Terminal and reports show these. The warnings follow from :attr:`assumptions`, so that no
        file repeats them.
        """
        from dpaudit.certificate.decisions import only_assumed  # whoever verifies shows none

        found = (*self.findings, *only_assumed(self.assumptions, self.plan.unit))
        return tuple(sorted(found, key=lambda each: list(Severity).index(each.severity)))

    def known_assumptions(self) -> tuple[Assumption, ...]:
        """List what the proof rests on, from plan, rehearsal, findings and run."""
        return assumptions_of(
            self.plan,
            code=self.subject.code_hash is not None,
            rehearsal=self.rehearsal,
            release=self.release,
            seal=self.seal,
            findings=self.findings,
            run=self.run,
            proved=self.guarantee,
            counted=self.schema == SCHEMA_VERSION,
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
            "checked": None if self.checked is None else self.checked.to_dict(),
            "run": self.run,
            "seed": self.seed,
            "versions": dict(self.versions),
        }
        if self.filtered is not None:
            record["filtered"] = self.filtered.to_dict()
        if self.release is not None:
            record["release"] = self.release.to_dict()
        if self.seal is not None:
            record["seal"] = self.seal.to_dict()
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
            checked=_read(CheckRecord, record["checked"]),
            filtered=_read(FilterRecord, record.get("filtered")),
            release=_read(ReleaseRecord, record.get("release")),
            seal=_read(SealRecord, record.get("seal")),
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


def _check_digest(record: Mapping[str, Any]) -> None:
    rest = {name: value for name, value in record.items() if name != "digest"}
    if files.digest(rest) != record["digest"]:
        raise TamperedError("certificate was edited: its digest does not match its content.")


def _check_hashes(record: Mapping[str, Any]) -> None:
    _check_digest(record)
    if Plan.from_dict(record["plan"]).hash != record["plan_hash"]:
        raise TamperedError("certificate was edited: plan_hash does not match the plan.")


def _check_derived(stated: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """What is written for readers and follows from the rest."""
    for name in stated.keys() & {"scope", "foreign"}:
        if stated[name] != known[name]:
            raise TamperedError(
                f"{name} is {shown(stated[name])}; it must be {shown(known[name])}."
            )


def load_certificate(path: Path | str) -> Certificate:
    """Read a certificate file; reading imports and runs nothing of the subject.

    Raises:
        InputError: if it is missing or does not follow the schema.
        TamperedError: if a hash does not match.
    """
    if Path(path).suffix in (".html", ".md", ".pdf"):
        raise InputError(f"{files.shown(path)} is a report; give its certificate, which is JSON.")
    record = files.load_json(path, what="certificate")
    if not isinstance(record, dict) or not {"schema", "payload", "releases"} & record.keys():
        raise InputError(f"{files.shown(path)} is no certificate; give JSON with a schema.")
    return Certificate.from_dict(record)
