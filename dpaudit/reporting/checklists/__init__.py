"""Published checklists of differential privacy, answered from a certificate.

Three lists are known: the privacy hazards of NIST SP 800-226, the reporting list of "How to DP-fy
ML", and the categories of the privacy label for differential privacy::

    for checklist in checklists(certificate):
        print(checklist.name, checklist.count(Status.MET), "of", len(checklist.items))

An answer follows from the certificate alone. What the certificate does not tell is unknown, and
unknown is never shown as met. Each list is one table beside this file; the terms that its
conditions and sentences name are those of :mod:`dpaudit.reporting.checklists.terms`.
"""

from __future__ import annotations

from dpaudit.certificate import Certificate
from dpaudit.reporting.checklists.model import Checklist, ChecklistItem, Status, filled
from dpaudit.reporting.checklists.terms import Facts, terms

__all__ = ["Checklist", "ChecklistItem", "Status", "checklists"]


def checklists(certificate: Certificate) -> tuple[Checklist, ...]:
    """Every known checklist, answered from this certificate, in a fixed order."""
    known = terms(Facts(certificate))
    return tuple(filled(table, known) for table in ("nist", "dpfy", "label"))
