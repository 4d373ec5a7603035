"""Attacking a subject or a bare function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit import files
from dpaudit.certificate import AuditRecord, Certificate, Claim, SubjectRecord
from dpaudit.certificate.verdicts import contradicts
from dpaudit.errors import InputError
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair, Execution
from dpaudit.project.execution import DEFAULTS
from dpaudit.project.targets import (
    Target,
    find_target,
    is_subject,
    load_function,
    parse_settings,
)
from dpaudit.workflow.certifying import certified

__all__ = ["AuditOutcome", "audit_target"]


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

    @property
    def exit_code(self) -> int:
        """1 if the audit refutes what it tested, or contradicts the subject's own claim; else 0."""
        own = None if self.target is None else self.target.claim
        return int(self.record.refuted or (own is not None and contradicts(self.record, own)))

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        return {"subject": self.name, **self.record.to_dict(), "findings": []}

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


def audit_target(
    name: str,
    settings: Sequence[str] = (),
    pair: tuple[str, str] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    execution: Execution = DEFAULTS,
) -> AuditOutcome:
    """Attack a subject or a function.

    Args:
        name: of a subject, or of a function in a file.
        settings: ``key=value`` texts for a subject.
        pair: two neighbours as JSON texts; a subject's own pairs where not given.
        epsilon: the ε under test; the subject's claim where not given.
        delta: the δ under test; the subject's claim, or 0.
        execution: how many runs are drawn, and how.

    Raises:
        InputError: if the target, the pair or a number is wrong.
    """
    neighbours = None if pair is None else _pair(pair)
    if name.endswith(".toml"):
        raise InputError("a plan file has no code to attack; audit its subject or function.")
    if ".py:" in name and not settings and not is_subject(function := load_function(name)):
        if neighbours is None:
            raise InputError("--pair is missing; give two neighbouring data sets as JSON.")
        if epsilon is None:
            raise InputError("--epsilon is missing; give the claimed ε that is to be tested.")
        return _audit_function(name, function, neighbours, Claim(epsilon, delta or 0.0), execution)
    return _audit_subject(name, settings, neighbours, epsilon, delta, execution)


def _pair(texts: tuple[str, str]) -> AuditPair:
    x, x_prime = (
        files.parse_json(text, what=f"--pair {name}")
        for text, name in zip(texts, ("x", "x'"), strict=True)
    )
    return AuditPair(x, x_prime, "given")


def _audit_function(
    name: str,
    function: Callable[..., Any],
    pair: AuditPair,
    claim: Claim,
    execution: Execution,
) -> AuditOutcome:
    from dpaudit.auditing import BlackBox, audit_release, progress_bar

    with progress_bar(name) as progress:
        record = audit_release(
            BlackBox(function),
            pair,
            epsilon=claim.epsilon,
            delta=claim.delta,
            execution=execution,
            progress=progress,
        )
    return AuditOutcome(record, None, name)


def _audit_subject(
    name: str,
    settings: Sequence[str],
    pair: AuditPair | None,
    epsilon: float | None,
    delta: float | None,
    execution: Execution,
) -> AuditOutcome:
    from dpaudit.auditing import audit_subject, progress_bar

    target = find_target(name, parse_settings(settings))
    assert target.subject is not None
    claim = target.claim
    if epsilon is not None:
        claim = Claim(epsilon, delta or 0.0)
    elif claim is None:
        raise InputError("--epsilon is missing, and the subject states no claim; give one.")
    elif delta is not None:
        claim = Claim(claim.epsilon, delta)
    with progress_bar(name) as progress:
        record = audit_subject(
            target.subject, pair, claim=claim, execution=execution, progress=progress
        )
    # Other numbers under test are no other claim: the certificate speaks of the subject's own.
    own = target if target.claim is not None else replace(target, claim=claim)
    return AuditOutcome(record, own, name)
