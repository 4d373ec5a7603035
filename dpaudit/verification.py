"""Recomputing what a certificate states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpaudit.accounting import AccountantName, Guarantee
from dpaudit.certificate import Certificate, certify
from dpaudit.errors import TamperedError
from dpaudit.findings import FLOAT_NOISE

__all__ = ["verify"]

TOLERANCE = 1e-9
"""Relative difference of a recomputed ε that versions of the numerical libraries may cause."""


def verify(certificate: Certificate) -> None:
    """Recompute guarantee, findings and verdict from the plan, offline.

    Facts that no plan implies (the subject, the seed, the run, the audits' samples) are taken as
    stated; an audit must at least agree with itself.

    Raises:
        TamperedError: naming what does not follow from the plan.
    """
    proved = certificate.guarantee
    alone = proved is not None and len(proved.compared) == 1
    again = certify(
        certificate.plan,
        subject=certificate.subject,
        claim=certificate.claim,
        delta=None if proved is None else proved.delta,
        accountant=proved.accountant if alone and proved is not None else AccountantName.BEST,
    ).with_audits(certificate.audits)
    _check_guarantee(proved, again.guarantee, certificate.versions == again.versions)
    kept = {(each.rule, each.message) for each in certificate.findings}
    for finding in again.findings:
        # Exact samplers remove the finding on floats; nothing else removes one.
        if (finding.rule, finding.message) not in kept and finding.rule != FLOAT_NOISE:
            raise TamperedError(f"findings lack {finding.rule!r}, which follows from the plan.")
    for audit in certificate.audits:
        if not audit.refuted and (audit.epsilon_lower or 0.0) > audit.claim_epsilon:
            raise TamperedError(
                f"an audit shows ε ≥ {audit.epsilon_lower:g} against {audit.claim_epsilon:g} and "
                "is recorded as not refuting it."
            )
    if certificate.verdict is not again.verdict:
        raise TamperedError(
            f"verdict is {certificate.verdict}; plan, claim and audits make it {again.verdict}."
        )


def _check_guarantee(stated: Guarantee | None, proved: Guarantee | None, same: bool) -> None:
    """The stated guarantee follows from the plan; to the digit, if the same versions made it."""
    if (stated is None) != (proved is None):
        raise TamperedError(
            f"guarantee is {'missing' if stated is None else 'stated'}; the plan proves "
            f"{'none' if proved is None else 'one'}."
        )
    if stated is None or proved is None:
        return
    if not _close(stated.epsilon, proved.epsilon) and (same or proved.epsilon > stated.epsilon):
        raise TamperedError(
            f"guarantee.epsilon is {stated.epsilon:.9g}; the plan proves {proved.epsilon:.9g}."
        )
    if same:
        record, again = stated.to_dict(), proved.to_dict()
        for name in record:
            if not _alike(record[name], again[name]):
                raise TamperedError(f"guarantee.{name} does not follow from the plan.")


def _close(first: float, second: float) -> bool:
    return first == second or math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=1e-300)


def _alike(first: Any, second: Any) -> bool:
    """Equal JSON values, but for the last digits of numbers."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_alike(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_alike, first, second))
    if isinstance(first, float) or isinstance(second, float):
        numbers = isinstance(first, float | int) and isinstance(second, float | int)
        return numbers and math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-12)
    return bool(first == second)
