"""Published checklists of differential privacy, answered from a certificate.

Three lists are known: the privacy hazards of NIST SP 800-226, the reporting list of "How to DP-fy
ML", and the categories of the privacy label for differential privacy::

    for checklist in checklists(certificate):
        print(checklist.name, checklist.count(Status.MET), "of", len(checklist.items))

An answer follows from the certificate alone. What the certificate does not tell is unknown, and
unknown is never shown as met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaudit.reporting.checklists import dpfy, label, nist
from dpaudit.reporting.checklists.facts import Facts
from dpaudit.reporting.checklists.model import Checklist, ChecklistItem, Status

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["Checklist", "ChecklistItem", "Status", "checklists"]


def checklists(certificate: Certificate) -> tuple[Checklist, ...]:
    """Every known checklist, answered from this certificate, in a fixed order."""
    facts = Facts(certificate)
    return tuple(source.filled(facts) for source in (nist.HAZARDS, dpfy.REPORTING, label.LABEL))
