"""Recomputing what a certificate states.

``verify`` is what somebody who did not make a certificate runs. Nothing that a file names is
imported, and no number of it may be stronger than what is recomputed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpaudit.accounting import AccountantName, CurvePoint, Guarantee, guarantee, privacy_curve
from dpaudit.accounting.accountant import FILTER
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.provenance import is_own
from dpaudit.base.validate import shown
from dpaudit.certificate.assumptions import THIRD, taken_at_word
from dpaudit.certificate.certificate import SCHEMA_VERSION, Certificate
from dpaudit.certificate.checking import require_checked
from dpaudit.certificate.claim import Finding, Severity
from dpaudit.certificate.findings import FLOAT_NOISE, MADE_UP, is_drawn_exactly, run_findings
from dpaudit.certificate.proof import certify, versions
from dpaudit.certificate.records import (
    MEANS,
    NEVER_SEALED,
    SUCCEEDED,
    ReleaseRecord,
    SealRecord,
)
from dpaudit.certificate.verdicts import NOT_DECLARED, OF_EQUALS, RESERVED
from dpaudit.plan import Plan

TOLERANCE = 1e-9
"""Relative difference of a recomputed ε that versions of the numerical libraries may cause."""

_DIGITS = 1e-6
"""Relative difference of everything else that is recomputed."""
_OF_RELEASES = (
    "discrete-laplace",
    "exponential",
    "gaussian",
    "laplace",
    "stable-histogram",
    "top-k",
)
"""Kinds of the mechanisms that the queries of a release use; their modules need no load."""
_GRID = "directions"
"""The native parameter that describes a grid: versions may choose another; it promises nothing."""


def verify(certificate: Certificate) -> None:
    """Recompute guarantee, findings and verdict from the plan, offline.

    Whatever versions a certificate names, each number of its guarantee must be no stronger than
    what is recomputed; where it names these versions, each must be the same. Facts that no plan
    implies (the subject, the seed, the run, the audits, findings of the author) are taken as
    stated; the audits are compared with themselves, with the claim and with the proof.

    Raises:
        TamperedError: naming what does not follow from the plan.
    """
    if certificate.seal is not None:
        _check_seal(certificate, certificate.seal)
    if certificate.release is not None:
        _check_release(certificate)
    if certificate.filtered is not None and certificate.run is None:
        raise TamperedError("filtered is stated, but there is no run that passed a filter.")
    proved, again = certificate.guarantee, recomputed(certificate)
    if (proved is None) != (again.guarantee is None):
        raise TamperedError(
            f"guarantee is {'missing' if proved is None else 'stated'}; the plan proves "
            f"{'none' if again.guarantee is None else 'one'}."
        )
    if proved is not None and again.guarantee is not None:
        same = certificate.versions == again.versions
        _check_guarantee(proved, again.guarantee, certificate.plan, same)
    for audit in certificate.audits:
        lower, tested = audit.epsilon_lower or 0.0, audit.claim_epsilon
        if not audit.refuted and lower > tested and not _close(lower, tested):
            raise TamperedError(
                f"an audit shows ε ≥ {lower:g} against {tested:g}, recorded as not refuting it."
            )
    _check_findings(certificate, again)
    _check_run(certificate)
    _check_assumptions(certificate)
    require_checked(certificate)
    if certificate.verdict is not again.verdict:
        raise TamperedError(
            f"verdict is {certificate.verdict}; plan, claim, findings and audits make it "
            f"{again.verdict}."
        )


def _check_release(certificate: Certificate) -> None:
    """What is said to be a release has the form of one: no code, and no mechanism of another kind.

    A record of a release lifts what is known of the proof, so that one which was put beside the
    plan of some code must not pass. That the table was worked off as the record says, its maker
    says; ``dpaudit certify`` makes plan and declaration again from the release file.
    """
    made = certificate.release
    assert made is not None
    subject = certificate.subject
    code = subject.code_hash is not None or subject.location or subject.configuration
    if code or certificate.rehearsal is not None or certificate.filtered is not None:
        raise TamperedError("release is stated, but the subject has code; a release has none.")
    _check_source("release", made.source, certificate)
    if certificate.run is not None:
        _check_results(made, certificate.plan, certificate.run)
    for each in certificate.plan.invocations:
        query = each.at.rpartition(": ")[0] or each.at
        known = any(said.startswith((f"{each.at}: ", f"{query}: ")) for said in made.queries)
        plain = each.sampling is None and each.group is None and each.contribution is None
        own = is_own(each.mechanism) and each.mechanism.kind in _OF_RELEASES
        if not (known and plain and own):
            raise TamperedError(
                f"release is stated, but {shown(each.at)} of the plan is in none of its queries."
            )


def _check_seal(certificate: Certificate, seal: SealRecord) -> None:
    """What is said to be sealed is the run of code, kept from its table by all that it takes.

    A seal lifts what is known of the proof, as a release does; that the process tried what the
    record says, its maker says.
    """
    if certificate.release is not None:
        raise TamperedError("seal is stated together with a release, which has no code to seal.")
    if certificate.subject.code_hash is None:
        raise TamperedError("seal is stated, but the subject has no code.")
    if certificate.rehearsal is not None:
        raise TamperedError(
            "seal is stated together with a rehearsal, for which code must hold the data."
        )
    ran = bool((certificate.run or {}).get("ledger"))
    if ran and seal.made_up is not None:
        raise TamperedError(
            "seal.made_up is stated together with a run; it is for certificates without a run."
        )
    if not ran and seal.made_up is None:
        raise TamperedError("seal is stated without a run; only a run is sealed.")
    if stated := taken_at_word(certificate.plan, certificate.guarantee):
        raise TamperedError(
            f"seal is stated, but the proof takes the word of others for {shown(stated[0])}."
        )
    _check_source("seal", seal.source, certificate)
    for means in MEANS:
        if not any(means.casefold() in each.casefold() for each in seal.means):
            raise TamperedError(f"seal.means lacks {means}, without which a run is not sealed.")
    for name in seal.required_tries:
        if name not in seal.tries:
            raise TamperedError(
                f"seal.tries lacks the attempt {shown(name)}, which a sealed run must make."
            )
    for name, failed in seal.tries.items():
        if not failed or SUCCEEDED in failed.casefold():
            raise TamperedError(f"seal.tries does not say how the attempt {shown(name)} failed.")
    if certificate.versions == versions() and not {*NEVER_SEALED} <= {*certificate.not_covered}:
        raise TamperedError("not_covered lacks the sentences that every sealed run must state.")


def _check_source(what: str, source: str, certificate: Certificate) -> None:
    """The run, if there is one, is of that source, and its noise the ledger's."""
    run = certificate.run or {}
    if run.get("ledger", {}).get("external"):
        raise TamperedError(f"{what} is stated of a run whose noise was drawn elsewhere.")
    data = run.get("summary", {}).get("data", source)
    said = any(each.rule == MADE_UP for each in certificate.findings)
    if said != (data != source):
        raise TamperedError(
            f"the run is of {shown(data)}, and the findings {'' if said else 'do not '}say that "
            "its rows were made up."
        )


def _check_results(made: ReleaseRecord, plan: Plan, run: Mapping[str, Any]) -> None:
    """Every query has its results, in their order, and each row has the form of one."""
    results, planned = run.get("results", ()), sum(i.releases for i in plan.invocations)
    for what, found, wanted in (
        ("results of queries", len(results), len(made.queries)),
        ("releases", run.get("ledger", {}).get("entries"), planned),
        ("told releases", run.get("summary", {}).get("releases"), planned),
    ):
        if found != wanted:
            raise TamperedError(f"run has {found} {what}, and the release has {wanted}.")
    for result, said in zip(results, made.queries, strict=True):
        if not said.startswith(f"{result['query']}: "):
            raise TamperedError(
                f"run has results of {shown(result['query'])}, which is not a query of the release."
            )
        if not all(_is_row(row, len(result["columns"])) for row in result["rows"]):
            raise TamperedError(
                f"run has a row of {shown(result['query'])} that the query does not have."
            )
        if len({tuple(row["cell"]) for row in result["rows"]}) < len(result["rows"]):
            raise TamperedError(f"run has a cell of {shown(result['query'])} twice.")
        if not result["rows"] and not result.get("left") and ": frequent values of " not in said:
            raise TamperedError(f"run has no row of {shown(result['query'])}.")


def _is_row(row: Mapping[str, Any], columns: int) -> bool:
    """Whether it has a label for each column, and a number within its interval.

    Intervals of counts begin at 0 at least, which a noisy number may be below.
    """
    value, low, high = row["value"], row.get("low"), row.get("high")
    if len(row["cell"]) != columns or (low is None) != (high is None):
        return False
    if low is None:
        return True
    return not isinstance(value, str) and low <= (max(value, 0) if low == 0 else value) <= high


def _check_run(certificate: Certificate) -> None:
    """What follows from the record of a run is said, and its numbers are those of one run."""
    ledger = (certificate.run or {}).get("ledger")
    if ledger is None:
        return
    rules = {each.rule for each in certificate.findings}
    for finding in run_findings(ledger):
        if finding.rule not in rules:
            raise TamperedError(
                f"findings lacks {shown(finding.rule)}, which follows from the run."
            )
    named = any(name.endswith(", seeded") for name in ledger["samplers"])
    if (certificate.seed is not None) != ledger["seeded"] or named > ledger["seeded"]:
        raise TamperedError(
            "seed, samplers and ledger of the run disagree on whether it had a seed."
        )
    if sum(ledger["samplers"].values()) != ledger["entries"]:
        raise TamperedError("the samplers of the run did not draw as often as its ledger counts.")
    filtered = certificate.filtered
    if filtered is not None and sum(filtered.admitted.values()) != ledger["entries"]:
        raise TamperedError("filtered.admitted is not as much as the ledger of the run counts.")


def recomputed(certificate: Certificate) -> Certificate:
    """Make plan, claim, audits and the author's findings into a certificate anew."""
    proved = certificate.guarantee
    named = [] if proved is None else [each for each in proved.compared if each != FILTER]
    again = certify(
        certificate.plan,
        subject=certificate.subject,
        claim=certificate.claim,
        delta=_delta(certificate),
        accountant=named[0] if len(named) == 1 else AccountantName.BEST,
        findings=[each for each in certificate.findings if each.rule not in RESERVED],
        filtered=certificate.filtered,
        release=certificate.release,
        seal=certificate.seal,
    ).with_audits(certificate.audits)
    rehearsal = certificate.rehearsal
    if certificate.schema == SCHEMA_VERSION and rehearsal is not None:
        again = again.with_rehearsal(rehearsal)
    return again


def _delta(certificate: Certificate) -> float | None:
    """That of the guarantee; where nothing is proved at any δ, the claim's, or any."""
    if certificate.guarantee is not None:
        return certificate.guarantee.delta
    return 0.0 if certificate.claim is None else None


def _check_findings(certificate: Certificate, again: Certificate) -> None:
    """What follows is there, and what only a proof or an audit says is not there without one."""
    same = certificate.versions == again.versions
    kept = {_told(each, same) for each in certificate.findings}
    for finding in again.findings:
        if finding.rule == FLOAT_NOISE and is_drawn_exactly(certificate.run):
            continue  # nothing else removes a finding
        if _told(finding, same) not in kept:
            what = "audits" if finding.rule in (NOT_DECLARED, OF_EQUALS) else "plan and claim"
            raise TamperedError(
                f"findings lacks {shown(finding.rule)}, which follows from the {what}."
            )
    follows = {_told(each, same) for each in again.findings}
    for finding in certificate.findings:
        if finding.rule in RESERVED and _told(finding, same) not in follows:
            raise TamperedError(
                f"findings has {shown(finding.rule)}, which does not follow from the certificate."
            )


def _check_assumptions(certificate: Certificate) -> None:
    """Each assumption stands as plan, rehearsal, findings and run say, and none is left out.

    The first schema has none, and speaks of the plan alone; the second has no premise that rests on
    another, so that what it states is how each stands alone.
    """
    known = {each.premise: each for each in certificate.known_assumptions()}
    same = certificate.versions == versions()
    newest = certificate.schema == SCHEMA_VERSION
    wanted = set(known) if newest else set(known) - THIRD
    lacking = wanted - {each.premise for each in certificate.assumptions}
    if lacking and (newest or certificate.assumptions or certificate.rehearsal is not None):
        raise TamperedError(f"assumptions lack {sorted(map(str, lacking))[0]!r}.")
    for stated in certificate.assumptions:
        own = known[stated.premise]
        own = own if newest else replace(own, standing=own.alone, rests_on=())
        names = ("standing", "alone", "rests_on")
        for name in (*names, "evidence") if newest and same else names:
            if getattr(stated, name) != getattr(own, name):
                raise TamperedError(
                    f"the assumption {str(stated.premise)!r} is said to be {stated.standing}; it "
                    f"is {own.standing}."
                    if name == "standing"
                    else f"{name} of the assumption {str(stated.premise)!r} does not follow."
                )


def _told(finding: Finding, same: bool) -> tuple[str, Severity, str, str]:
    """What must not change of a finding that follows; its words, if the same versions made it."""
    words = (finding.message, finding.remedy) if same else ("", "")
    return finding.rule, finding.severity, *words


def _check_guarantee(stated: Guarantee, proved: Guarantee, plan: Plan, same: bool) -> None:
    """The stated guarantee follows from the plan; to the digit, if the same versions made it.

    Whoever made it, nothing is stronger than what is proved by more than a share of itself: digits
    that are too few to tell large numbers apart may be all that there is of a small δ.
    """
    if not _close(stated.epsilon, proved.epsilon) and (same or proved.epsilon > stated.epsilon):
        raise TamperedError(
            f"guarantee.epsilon is {stated.epsilon:.9g}; the plan proves {proved.epsilon:.9g}."
        )
    if same:
        record, again = stated.to_dict(), proved.to_dict()
        for name in record:
            if not _alike(record[name], again[name]):
                raise _unfounded(name)
        both = zip(stated.curve, proved.curve, strict=True)
        if not all(math.isclose(one.delta, own.delta, rel_tol=_DIGITS) for one, own in both):
            raise _unfounded("curve")  # however small, though the plan may prove it
    if stated.accountant not in (proved.accountant, FILTER):
        proved = _by(plan, stated.delta, stated.accountant, "accountant")
        if _stronger(stated.epsilon, proved.epsilon):
            raise _unfounded("accountant")
    if _stronger_bound(stated, proved):
        raise _unfounded("error_bound")
    _check_curve(stated.curve, proved.curve, plan)
    _check_compared(stated, proved, plan)
    if not _covered(stated.native, proved.native):
        raise _unfounded("native")


def _check_curve(
    stated: tuple[CurvePoint, ...], proved: tuple[CurvePoint, ...], plan: Plan
) -> None:
    """Each stated point is one of the recomputed points or weaker, or else on the curve."""
    left = [
        point
        for point in stated
        if not any(
            again.epsilon <= point.epsilon * (1 + _DIGITS)
            and again.delta <= point.delta * (1 + _DIGITS) + 1e-300
            for again in proved
        )
    ]
    if any(not (point.epsilon >= 0 and 0 <= point.delta <= 1) for point in left):
        raise _unfounded("curve")
    if left:
        deltas = privacy_curve(plan)([point.epsilon for point in left])
        for point, delta in zip(left, deltas, strict=True):
            if _stronger(point.delta, float(delta)):
                raise _unfounded("curve")


def _check_compared(stated: Guarantee, proved: Guarantee, plan: Plan) -> None:
    """Each accountant proves at least the ε that is told of it."""
    for name, epsilon in stated.compared.items():
        known = proved.compared.get(name)
        if known is None and name == FILTER:
            known = proved.epsilon
        if known is None:
            known = _by(plan, stated.delta, name, "compared").epsilon
        if _stronger(epsilon, known):
            raise _unfounded("compared")


def _by(plan: Plan, delta: float, accountant: str, field: str) -> Guarantee:
    """What a named accountant proves; there may be none of that name, or it may not apply."""
    try:
        return guarantee(plan, delta, accountant)
    except InputError:
        raise _unfounded(field) from None


def _stronger_bound(stated: Guarantee, proved: Guarantee) -> bool:
    """Whether the tightest ε is said to be larger than is known: ε − error_bound bounds it."""
    if stated.error_bound is None or stated.epsilon == math.inf:
        return False
    if proved.error_bound is None or not stated.error_bound >= 0:
        return True
    lower, known = stated.epsilon - stated.error_bound, proved.epsilon - proved.error_bound
    return lower > known + _DIGITS * max(stated.epsilon, 1e-6)


def _stronger(stated: float, proved: float) -> bool:
    """Tell whether less is stated than is proved."""
    return not stated >= proved * (1 - _DIGITS) - 1e-300


def _covered(stated: Any, proved: Any) -> bool:
    """Whether native parameters are no stronger: every one of them grows with the privacy loss."""
    if isinstance(stated, Mapping) and isinstance(proved, Mapping):
        names = stated.keys() | proved.keys()
        return stated.keys() == proved.keys() and all(
            _covered(stated[name], proved[name])
            if name not in ("orders", "moments", _GRID)
            else name == _GRID or _alike(stated[name], proved[name])
            for name in names
        )
    if isinstance(stated, list | tuple) and isinstance(proved, list | tuple):
        return len(stated) == len(proved) and all(map(_covered, stated, proved))
    if isinstance(stated, float | int) and isinstance(proved, float | int):
        return not _stronger(stated, proved)
    return stated is None or bool(stated == proved)


def _unfounded(field: str) -> TamperedError:
    return TamperedError(f"guarantee.{field} does not follow from the plan.")


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
        return numbers and math.isclose(first, second, rel_tol=_DIGITS, abs_tol=1e-12)
    return bool(first == second)
