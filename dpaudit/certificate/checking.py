"""What the independent checker says of a certificate, beside what the accountant proves.

The commands that make certificates let :mod:`dpaudit.checker` prove them before they are written.
A number of the checker that is larger is no fault: its rules are few. A witness that it refuses is
one, of the proof or of the checker, so that nothing is certified.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpaudit import checker
from dpaudit.accounting import seconds_of_proof
from dpaudit.base.errors import TamperedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import holds
from dpaudit.certificate.certificate import Certificate
from dpaudit.certificate.proof import versions
from dpaudit.certificate.records import CheckRecord
from dpaudit.certificate.verdicts import REFUSED
from dpaudit.certificate.witness import witness_of
from dpaudit.mechanisms.rounding import round_up

CHEAP = 30.0
"""Seconds of a proof, by the estimate: a plan above it has a witness only where one is asked for.

A grid that the checker composes takes about a tenth of it.
"""

_LEAST_DELTA = 1e-30
"""Below it the numbers on a grid are long."""

_FAR = 1.5
"""Times the ε of the accountant, from where on a reader is told."""

_found = FindingTable(__name__)


def with_witness(certificate: Certificate, *, wanted: bool | None = None) -> Certificate:
    """The certificate with a witness, and with what the checker proves by it.

    Args:
        certificate: of a plan; without a finite ε it stays as it is, as there is nothing to check.
        wanted: whether to make one; None makes it where that is cheap by the estimate.

    Returns:
        The certificate, and the finding ``checker-refuses``, which leaves it unproven, if the
        checker refuses the witness.
    """
    proved = certificate.guarantee
    if proved is None or proved.epsilon == math.inf:
        return certificate
    if wanted is None:
        short = proved.delta == 0 or proved.delta >= _LEAST_DELTA
        wanted = short and seconds_of_proof(certificate.plan) <= CHEAP
    if not wanted:
        return certificate
    claim = certificate.claim
    same = claim is not None and claim.risk is None and claim.delta == proved.delta
    claimed = claim.epsilon if claim is not None and same else None
    witness = witness_of(certificate.plan, proved, claimed)
    made = replace(certificate, witness=witness)
    checked = check_of(made)
    found = []
    if checked.refused:
        found.append(_found(REFUSED, reason=checked.reason))
    elif checked.epsilon is not None and not _is_near(checked, certificate):
        found.append(_found("checked-is-larger", epsilon=checked.epsilon, delta=checked.delta))
    return replace(made, checked=checked, findings=(*made.findings, *found)).with_audits(())


def check_of(certificate: Certificate) -> CheckRecord:
    """Ask the checker what it proves of a certificate as written, by its witness or without."""
    claim, record = certificate.claim, certificate.to_dict()
    if claim is not None and claim.risk is not None:
        record["claim"] = None  # it names no δ
    try:
        proof = checker.prove(record)
    except checker.InputError as error:
        return CheckRecord(None, 0.0, (), str(error))
    epsilon = math.inf if proof.epsilon is None else round_up(proof.epsilon)
    if proof.epsilon is not None and epsilon == math.inf:
        return CheckRecord(None, 0.0, (), "its ε is beyond all floats.")
    return CheckRecord(
        None if epsilon == math.inf else epsilon,
        float(proof.delta),
        proof.rules,
        proof.reason,
        proof.refused,
    )


def require_checked(certificate: Certificate) -> None:
    """Let the checker prove again what a certificate says that it proved.

    Raises:
        TamperedError: if it proves less, or refuses the witness and no finding says so, or says
            anything else by these versions.
    """
    stated = certificate.checked
    if stated is None:
        return
    again = check_of(certificate)
    if again.refused and not any(each.rule == REFUSED for each in certificate.findings):
        raise TamperedError(f"the checker refuses the witness: {again.reason}")
    if certificate.versions == versions() and again != stated:
        raise TamperedError("checked is not what the checker says of this certificate.")
    if stated.epsilon is not None and (
        again.epsilon is None or again.epsilon > stated.epsilon or again.delta > stated.delta
    ):
        raise TamperedError(f"checked.epsilon is {stated.epsilon}; the checker {again}.")


def lacks_check(certificate: Certificate) -> str:
    """Why the checker does not prove the claim, or anything without one; empty if it does."""
    checked, claim = certificate.checked or check_of(certificate), certificate.claim
    if checked.epsilon is None:
        return f"the checker {checked}."
    if claim is not None and claim.risk is not None:
        return "the checker judges claims of an ε and a δ alone."
    if claim is not None and not (
        checked.delta <= claim.delta and holds(checked.epsilon, claim.epsilon)
    ):
        return f"the checker {checked}, and the claim is {claim}."
    return ""


def _is_near(checked: CheckRecord, certificate: Certificate) -> bool:
    """Tell whether the checked ε is of the size of the accountant's, or proves the claim too."""
    proved, claim = certificate.guarantee, certificate.claim
    if proved is None or (checked.epsilon or 0.0) <= _FAR * proved.epsilon + 1e-9:
        return True
    return claim is not None and not lacks_check(replace(certificate, checked=checked))
