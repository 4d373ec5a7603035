"""What was claimed, what is proved, what was attacked, what is left open."""

from dpaudit.certificate.assumptions import Assumption, Premise, Rehearsal, Scope, Standing
from dpaudit.certificate.certificate import Certificate, certify, load_certificate
from dpaudit.certificate.claim import Claim, Finding, Severity, Verdict
from dpaudit.certificate.records import AuditRecord, SubjectRecord
from dpaudit.certificate.verification import recomputed, verify

__all__ = [
    "Assumption",
    "AuditRecord",
    "Certificate",
    "Claim",
    "Finding",
    "Premise",
    "Rehearsal",
    "Scope",
    "Severity",
    "Standing",
    "SubjectRecord",
    "Verdict",
    "certify",
    "load_certificate",
    "recomputed",
    "verify",
]
