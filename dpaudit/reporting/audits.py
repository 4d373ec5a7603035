"""From an audit to its report, where there is nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpaudit.certificate import AuditRecord, Certificate, Claim, SubjectRecord, certify
from dpaudit.errors import InputError
from dpaudit.mechanisms import Opaque
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.reporting.base import render_to


def certificate_of(
    records: AuditRecord | Sequence[AuditRecord], name: str = "the audited code"
) -> Certificate:
    """A certificate of the claim that audits tested, without a plan: nothing of it is proved.

    Args:
        records: audits of the same claim.
        name: of what was audited.

    Raises:
        InputError: if there is none, or they test different claims.
    """
    several = (records,) if isinstance(records, AuditRecord) else tuple(records)
    tested = {(each.claim_epsilon, each.delta) for each in several}
    if len(tested) != 1:
        raise InputError(f"records are of {len(tested)} claims; they must be of the same one.")
    claim = Claim(*tested.pop())
    opaque = Opaque(name[:80], claim.epsilon, claim.delta)
    trained = all(each.trainings for each in several)
    unit, relation = ("example", AddRemove()) if trained else ("data set", ReplaceOne())
    plan = Plan.of(Invocation(opaque, 1.0, PrivacyUnit(unit), relation, TrustModel.CENTRAL))
    made = certify(plan, subject=SubjectRecord(name), claim=claim, delta=claim.delta)
    return made.with_audits(several)


def write_report(
    what: Certificate | AuditRecord | Sequence[AuditRecord],
    path: Path | str,
    name: str = "the audited code",
) -> Path:
    """Write the report of a certificate, of an audit, or of several audits of one claim.

    Args:
        what: to be shown.
        path: the file; its ending chooses the format, such as ``.html``, ``.md`` or ``.json``.
        name: of what was audited, for audits.

    Raises:
        InputError: if the ending is unknown, the file cannot be written, or audits are of different
            claims.
    """
    certificate = what if isinstance(what, Certificate) else certificate_of(what, name)
    return render_to(certificate, path)
