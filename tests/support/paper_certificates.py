"""Certificates and audits for the index of the four papers."""

from __future__ import annotations

from examples import gaussian_invocation

from dpaudit import AuditRecord, Claim, Plan, guarantee
from dpaudit.certificate import SubjectRecord, certify

DELTA = 1e-5
WORDS = ("Algorithm", "A remark.")


def certificate(claimed: float, *, mechanism=None, delta: float = DELTA):
    changes = {} if mechanism is None else {"mechanism": mechanism}
    plan = Plan.of(gaussian_invocation(**changes))
    return certify(plan, subject=SubjectRecord("x"), claim=Claim(claimed, delta, "Theorem 1"))


def audit(lower: float, *, refuted: bool = False, confidence: float | None = 0.999):
    method = f"attack to {lower:g}"
    return AuditRecord(refuted, method, 1.0, DELTA, lower, confidence, 10, None, 0, None)


PROVED = guarantee(Plan.of(gaussian_invocation()), DELTA).epsilon
