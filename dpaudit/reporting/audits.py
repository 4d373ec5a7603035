"""From an audit to its report, where there is nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord, Certificate, Claim, SubjectRecord, certify
from dpaudit.mechanisms import Opaque
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.reporting.base import render_to


def write_report(
    what: Certificate | AuditRecord | Sequence[AuditRecord],
    path: Path | str,
    name: str = "the audited code",
) -> Path:
    """Write the report of a certificate, of an audit, or of several audits of one claim.

    Args:
        what: to be shown. Of audits alone nothing is proved: there is no plan.
        path: the file; its ending chooses the format, such as ``.html``, ``.md`` or ``.json``.
        name: of what was audited, for audits.

    Raises:
        InputError: if the ending is unknown, the file cannot be written, there is no audit, or
            audits are of different claims.
    """
    if isinstance(what, Certificate):
        return render_to(what, path)
    several = (what,) if isinstance(what, AuditRecord) else tuple(what)
    tested = {Claim(each.claim_epsilon, each.delta) for each in several}
    if len(tested) != 1:
        raise InputError(f"there are audits of {len(tested)} claims; they must be of the same one.")
    claim = tested.pop()
    trained = all(each.trainings for each in several)
    opaque = Opaque(name[:80], claim.epsilon, claim.delta)
    unit, relation = ("example", AddRemove()) if trained else ("data set", ReplaceOne())
    plan = Plan.of(Invocation(opaque, 1.0, PrivacyUnit(unit), relation, TrustModel.CENTRAL))
    made = certify(plan, subject=SubjectRecord(name), claim=claim, delta=claim.delta)
    return render_to(made.with_audits(several), path)
