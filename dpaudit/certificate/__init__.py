"""What was claimed, what is proved, what was attacked, what is left open."""

from dpaudit.certificate.assumptions import Rehearsal
from dpaudit.certificate.certificate import Certificate, load_certificate
from dpaudit.certificate.checking import check_of, lacks_check, with_witness
from dpaudit.certificate.claim import Claim, Finding, Severity, Verdict
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.certificate.laws import Foreign, ForeignLaw
from dpaudit.certificate.opinion import SecondOpinion
from dpaudit.certificate.premises import Assumption, Premise, Scope, Standing
from dpaudit.certificate.proof import certify
from dpaudit.certificate.records import AuditRecord, CheckRecord, ReleaseRecord, SubjectRecord
from dpaudit.certificate.verification import recomputed, verify

__all__ = [
    "Assumption",
    "AuditRecord",
    "Certificate",
    "CheckRecord",
    "Claim",
    "FilterRecord",
    "Finding",
    "Foreign",
    "ForeignLaw",
    "Premise",
    "Rehearsal",
    "ReleaseRecord",
    "Scope",
    "SecondOpinion",
    "Severity",
    "Standing",
    "SubjectRecord",
    "Verdict",
    "certify",
    "check_of",
    "lacks_check",
    "load_certificate",
    "recomputed",
    "verify",
    "with_witness",
]
