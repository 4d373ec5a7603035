"""Attacking a subject or a bare function."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaudit import files, validate
from dpaudit.certificate import AuditRecord, Certificate, Claim, Finding, SubjectRecord
from dpaudit.certificate.verdicts import contradicts
from dpaudit.errors import InputError
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair
from dpaudit.project.entries import checked_runs
from dpaudit.project.targets import (
    Target,
    find_subject,
    find_target,
    is_subject,
    load_function,
    parse_settings,
)
from dpaudit.workflow.certifying import certified

__all__ = ["AuditOutcome", "AuditRequest", "audit_target"]


@dataclass(frozen=True)
class AuditRequest:
    """What is to be attacked, and how hard.

    Attributes:
        target: a subject, or a function in a file.
        settings: ``key=value`` texts for a subject.
        pair: two neighbours as JSON texts; a subject's own pairs where not given.
        epsilon: the ε under test; the subject's claim where not given.
        delta: the δ under test; the subject's claim, or 0.
        runs: runs on each side.
        confidence: of the lower bound.
        seed: of the experiment.
        workers: worker processes; the result does not depend on them.
        dask: address of a dask scheduler to run on instead.
        timeout: seconds that one run may take.
        journal: file of finished runs, from which a killed audit goes on; needs a seed.
    """

    target: str
    settings: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None
    epsilon: float | None = None
    delta: float | None = None
    runs: int = 10_000
    confidence: float = 0.95
    seed: int | None = None
    workers: int = 1
    dask: str | None = None
    journal: Path | None = None
    timeout: float = 60.0

    def execution(self) -> dict[str, Any]:
        """How the runs are drawn: the same for functions and subjects."""
        return {
            "runs": self.runs,
            "confidence": self.confidence,
            "seed": self.seed,
            "workers": self.workers,
            "dask": self.dask,
            "journal": self.journal,
            "timeout": self.timeout,
        }


@dataclass(frozen=True)
class AuditOutcome:
    """An audit and what it was made of.

    Attributes:
        record: the evidence.
        target: the subject, or None for a bare function.
        name: what was attacked.
    """

    record: AuditRecord
    target: Target | None
    name: str
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def exit_code(self) -> int:
        """1 if the audit refutes what it tested, or contradicts the subject's own claim; else 0."""
        own = None if self.target is None else self.target.claim
        return int(self.record.refuted or (own is not None and contradicts(self.record, own)))

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"subject": self.name, **self.record.to_dict(), "findings": findings}

    def certificate(self) -> Certificate:
        """The subject's certificate with this audit; a function's, as an opaque claim."""
        target = self.target or _function_target(self.name, self.record)
        return certified(target, delta=None).with_audits((self.record,))


def _function_target(name: str, record: AuditRecord) -> Target:
    """A bare function as an opaque mechanism that claims what was tested."""
    opaque = Opaque(name, record.claim_epsilon, record.delta)
    invocation = Invocation(
        opaque, 1.0, PrivacyUnit("data set"), ReplaceOne(), TrustModel.CENTRAL, at="release"
    )
    claim = Claim(record.claim_epsilon, record.delta)
    return Target(SubjectRecord(name), Plan.of(invocation), claim, (), ())


def audit_target(request: AuditRequest) -> AuditOutcome:
    """Attack a subject or a function.

    Raises:
        InputError: if the target, the pair or a number is wrong.
    """
    checked_runs(request.runs, 1)
    validate.open_fraction(confidence=request.confidence)
    validate.integer_at_least(1, workers=request.workers)
    pair = None if request.pair is None else _pair(request.pair)
    if request.target.endswith(".toml"):
        raise InputError("a plan file has no code to attack; audit its subject or function.")
    if ".py:" in request.target and not request.settings:
        return _audit_function(request, pair)
    return _audit_subject(request, pair)


def _pair(texts: tuple[str, str]) -> AuditPair:
    x, x_prime = (
        files.parse_json(text, what=f"--pair {name}")
        for text, name in zip(texts, ("x", "x'"), strict=True)
    )
    return AuditPair(x, x_prime, "given")


def _audit_function(request: AuditRequest, pair: AuditPair | None) -> AuditOutcome:
    from dpaudit.auditing import BlackBox, audit_release
    from dpaudit.auditing.distinguishing.progress import progress_bar

    function = load_function(request.target)
    if is_subject(function):
        return _audit_subject(request, pair)
    if pair is None:
        raise InputError("--pair is missing; give two neighbouring data sets as JSON.")
    if request.epsilon is None:
        raise InputError("--epsilon is missing; give the claimed ε that is to be tested.")
    with progress_bar(request.target) as progress:
        record = audit_release(
            BlackBox(function),
            pair,
            epsilon=Claim(request.epsilon).epsilon,
            delta=Claim(0.0, request.delta or 0.0).delta,
            progress=progress,
            **request.execution(),
        )
    return AuditOutcome(record, None, request.target)


def _audit_subject(request: AuditRequest, pair: AuditPair | None) -> AuditOutcome:
    from dpaudit.auditing import audit_subject
    from dpaudit.auditing.distinguishing.progress import progress_bar

    settings = parse_settings(request.settings)
    target = find_target(request.target, settings)
    subject = find_subject(request.target, settings)
    claim = target.claim
    if request.epsilon is not None:
        claim = Claim(request.epsilon, request.delta or 0.0)
    elif claim is None:
        raise InputError("--epsilon is missing, and the subject states no claim; give one.")
    elif request.delta is not None:
        claim = Claim(claim.epsilon, request.delta)
    with progress_bar(request.target) as progress:
        record = audit_subject(
            subject,
            pair,
            claim=claim,
            progress=progress,
            **request.execution(),
        )
    # Other numbers under test are no other claim: the certificate speaks of the subject's own.
    own = target if target.claim is not None else replace(target, claim=claim)
    return AuditOutcome(record, own, request.target)
