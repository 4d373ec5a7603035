"""What can be proved of a plan, and the certificate of it.

``certify`` is called by commands and from Python, and again by ``verify``. It sees no data and runs
no code: what it proves is of the declaration alone.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata

from dpaudit.accounting import Accountant, AccountantName, Guarantee, compose, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import holds
from dpaudit.base.validate import shown as quoted
from dpaudit.certificate.assumptions import taken_at_word
from dpaudit.certificate.certificate import Certificate
from dpaudit.certificate.claim import USUAL_DELTA, Claim, Finding
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.certificate.findings import FLOAT_NOISE, delta_findings, plan_findings
from dpaudit.certificate.records import NEVER_SEALED, ReleaseRecord, SealRecord, SubjectRecord
from dpaudit.certificate.verdicts import CLAIM_EXCEEDED, decided, refuse_reserved
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Plan

_found = FindingTable(__name__)


def certify(
    plan: Plan,
    *,
    subject: SubjectRecord,
    claim: Claim | None = None,
    delta: float | None = None,
    accountant: str = AccountantName.BEST,
    findings: Sequence[Finding] = (),
    not_covered: Sequence[str] = (),
    filtered: FilterRecord | None = None,
    release: ReleaseRecord | None = None,
    seal: SealRecord | None = None,
) -> Certificate:
    """Prove what can be proved of a plan.

    A finding of the author that is an error says that the plan or the claim does not hold, so the
    verdict is then at best *unproven*.

    Args:
        plan: the declared invocations.
        subject: what the plan belongs to.
        claim: what is stated; without it the certificate states the guarantee alone.
        delta: δ of the guarantee; the claim's where not given, else 0 where a pure ε exists, and
            1e-5 beside a claim that has none.
        accountant: whose proof is wanted.
        findings: known to the subject's author.
        not_covered: known to the subject's author.
        filtered: the privacy filter that all releases of a run passed. What is proved is the
            lesser of its ε and that of the plan; claims of other kinds than (ε, δ) are judged by
            the plan alone.
        release: the declared queries over a table, where the plan is theirs. Exact samplers draw
            all noise of a release that is deployed, so that floats are no open point of it.
        seal: how the code was kept from the data of the run that is recorded next.

    Raises:
        InputError: if δ is missing where there is no pure guarantee, or is invalid, or the filter
            does not admit what is said to have passed, or the proof of a sealed run takes somebody
            at their word.
    """
    accountant = Accountant.named(accountant).kind
    refuse_reserved(findings)
    delta = _chosen_delta(plan, claim, delta)
    reasons: list[Finding] = []

    def known(delta: float) -> Guarantee | None:
        """What is proved at a δ."""
        found: Guarantee | None = None
        try:
            found = guarantee(plan, delta, accountant)
        except UnsupportedError as error:
            reasons.append(_found("no-theorem", reason=error))
        if filtered is None or (claim is not None and claim.risk is not None):
            return found
        found = filtered.bounded(plan, found, delta)
        if found is not None:
            reasons.clear()
        return found

    proved = known(delta)
    if seal is not None and (stated := taken_at_word(plan, proved)):
        raise InputError(
            f"seal is given, but only an author states the cost of {quoted(stated[0])}; such a "
            "run cannot be sealed."
        )
    notes: list[Finding] = []
    if proved is not None and claim is not None and claim.risk is not None:
        beyond = claim.excess(compose(plan, accountant))
        reasons += [] if beyond is None else [_found(CLAIM_EXCEEDED, claim=claim, proved=beyond)]
        notes += [_unbounded(plan, proved)] if proved.epsilon == math.inf else []
    elif proved is not None:
        # A claim is judged at its own δ, whatever δ the guarantee is wanted at.
        same = claim is None or claim.delta == proved.delta
        judged = (None if same or claim is None else known(claim.delta)) or proved
        if judged.epsilon == math.inf:
            reasons.append(_unbounded(plan, judged))
        elif claim is not None and not holds(judged.epsilon, claim.epsilon):
            shown = f"ε = {_shown(judged.epsilon, claim.epsilon)} at δ = {judged.delta:g}"
            reasons.append(_found(CLAIM_EXCEEDED, claim=claim, proved=shown))
        if judged is not proved and proved.epsilon == math.inf:
            notes.append(_unbounded(plan, proved))
    every = (
        *reasons,
        *notes,
        *delta_findings(claim, delta),
        *(each for each in plan_findings(plan) if release is None or each.rule != FLOAT_NOISE),
        *findings,
    )
    made = Certificate(
        subject=subject,
        claim=claim,
        verdict=decided(
            proved=not reasons, claim=claim, guarantee=proved, audits=(), findings=every
        ),
        plan=plan,
        guarantee=proved,
        findings=every,
        not_covered=(*not_covered, *(NEVER_SEALED if seal is not None else ())),
        versions=versions(),
        filtered=filtered,
        release=release,
        seal=seal,
    )
    return made.restated()


def _chosen_delta(plan: Plan, claim: Claim | None, delta: float | None) -> float:
    if delta is not None:
        return Claim(0.0, delta).delta
    risk = None if claim is None else claim.risk
    if claim is not None and risk is None:
        return claim.delta
    if risk is not None and risk.delta_wanted is not None:
        return risk.delta_wanted
    try:
        pure = guarantee(plan, 0.0, AccountantName.PURE)
    except UnsupportedError as error:
        if any(isinstance(each.mechanism, Opaque) for each in plan.invocations):
            return 0.0  # no δ could help: there is no proof at any
        missing = str(error)
    else:
        if pure.epsilon < math.inf:
            return 0.0
        missing = "the plan has no pure guarantee."
    if risk is not None:
        return USUAL_DELTA
    such = "a delta above 0, such as 1e-5: by --delta, or in [claim] of a plan file"
    raise InputError(f"delta is missing, and {missing} Give {such}.")


def _unbounded(plan: Plan, proved: Guarantee) -> Finding:
    reason = proved.native.get("reason", f"no finite ε is proved at δ = {proved.delta:g}")
    found = _found("no-finite-epsilon", reason=reason)
    known = [each for each in plan.invocations if each.mechanism.kind.endswith("-histogram")]
    told, keys = max(
        ((i.mechanism.pair_and_failure(i.sensitivity)[1], i.mechanism.kind) for i in known),
        default=(0.0, ""),
    )
    low = (
        f"Raise the threshold of {keys}: a key that only one unit has is released with probability"
    )
    return replace(found, remedy=f"{low} {told:.3g}.") if told > proved.delta else found


def _shown(epsilon: float, beside: float) -> str:
    """Enough digits to tell two numbers apart."""
    short = f"{epsilon:.6g}"
    return repr(epsilon) if short == f"{beside:.6g}" else short


def versions() -> dict[str, str]:
    """Versions of what a certificate is computed with."""
    libraries = ("dpaudit", "numpy", "scipy", "dp-accounting")
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in libraries
    }
