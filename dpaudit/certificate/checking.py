"""How the independent checker is asked: witnesses for it, and what it says of a certificate.

*A witness* has the grids by which :mod:`dpaudit.checker` proves nearly the ε of a plan. Nothing
here is trusted: a grid that is badly chosen proves a larger ε, and none proves a false one. So
floats decide. Grids are refined until the proof is near the guarantee, or gains no more.

*An answer* stands beside what the accountant proves. The commands that make certificates let
:mod:`dpaudit.checker` prove them before they are written. A number of the checker that is larger is
no fault: its rules are few. A witness that it refuses is one, of the proof or of the checker, so
that nothing is certified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpaudit import checker
from dpaudit.accounting import Guarantee, seconds_of_proof
from dpaudit.accounting import guarantee as prove
from dpaudit.base.errors import TamperedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import holds
from dpaudit.certificate.certificate import Certificate
from dpaudit.certificate.proof import versions
from dpaudit.certificate.records import CheckRecord
from dpaudit.certificate.verdicts import REFUSED
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import Plan, PrivateSelection

_NEAR = 1.003
"""Of the guarantee: a proof that is so near is not refined."""
_GAIN, _ANY_GAIN = 0.998, 0.99999
_FINENESS = ((4.0, 1000), (8.0, 2000), (16.0, 4000), (32.0, 8000), (64.0, 16_000))
"""Points of a standard deviation of one use, and of a composition."""
_MOST = 12_000
"""Points of one use."""
_MOST_LAWS, _FEW_LAWS = 60, 16
_ROUND, _ROUND_OF_FEW = 14, 24
"""Significant bits of the number of a law; with fewer of them more laws become one."""
_FARTHEST = 600.0
"""Losses beyond are of no interest, and expensive."""
_NEGLIGIBLE = 14
"""Bits below δ of what is moved at the ends."""
Charges = Mapping[checker.Part, int]


def witness_of(
    plan: Plan, guarantee: Guarantee, claimed: float | None = None
) -> dict[str, Any] | None:
    """Find what lets the checker prove an ε at the δ of the guarantee.

    Args:
        plan: the declared invocations.
        guarantee: what an accountant proves of them; its ε says how near a proof is worth work.
        claimed: ε of a claim at that δ: where it is little above the guarantee, a proof is refined
            until it is not above the claim, or gains nothing.

    Returns:
        A JSON object, a set of invocations whose closed form is near enough having no grid; None
        where the checker has no rule for a part of the plan, or no finite ε.
    """
    record = {"plan": plan.to_dict(), "guarantee": {"delta": guarantee.delta}}
    runs = _of_runs(plan, guarantee.delta)
    checker.LEFT.runs = iter(runs)
    try:
        sets = checker.sets_of(record["plan"])
        delta = Fraction(guarantee.delta)
        near, gain = max(guarantee.epsilon, 1e-9) * _NEAR, _GAIN
        if claimed is not None and guarantee.epsilon <= claimed < near:
            near, gain = claimed, _ANY_GAIN
        made = [_of_set(charges, delta, near, gain) for charges in sets]
    except (checker.NoProofError, OverflowError):
        return None
    witness: dict[str, Any] = {"schema": checker.SCHEMA, "sets": made}
    witness |= {"runs": runs} if any(map(any, runs)) else {}
    proof = checker.prove(record | {"witness": witness})
    return None if proof.epsilon is None else witness | {"epsilon": round_up(proof.epsilon)}


def _of_runs(plan: Plan, delta: float) -> list[list[dict[str, Any] | None]]:
    """The sets of a witness of one run, for each selection in the order of the plan."""
    found: list[list[dict[str, Any] | None]] = []
    for each in plan.invocations:
        if isinstance(each.mechanism, PrivateSelection) and each.sensitivity:
            run, mean = each.mechanism.run, each.mechanism.runs.expected
            share = mean * each.count * 2 ** (_NEGLIGIBLE * (each.count > 1))
            proved = prove(run, max(delta / share, 1e-30)) if delta else None
            own = (witness_of(run, proved) if proved else None) or {}
            found += [own.get("sets", []), *own.get("runs", [])]
    return found


def _of_set(charges: Charges, delta: Fraction, wanted: float, gain: float) -> dict[str, Any] | None:
    """The finest grids that were worth it, or None where a closed form is."""
    known = min((epsilon for epsilon, _ in checker.closed(charges, delta)), default=None)
    least = math.inf if known is None else float(known)
    best = None
    if least <= wanted or not delta or any(part.law.rule == "zcdp" for part in charges):
        return None
    if len(checker.rounded_charges(charges, _ROUND)) > _MOST_LAWS:
        return None
    for fineness, limit in _FINENESS:
        try:
            witness = _grids(charges, delta, fineness, limit)
            if _work(charges, witness) > checker.MOST_WORK:
                continue
            found = float(checker.by_grid(charges, delta, witness))
        except (checker.NoProofError, OverflowError):
            continue
        if found >= least * gain:
            break
        best, least = witness, found
        if least <= wanted:
            break
    return best


def _work(charges: Charges, witness: dict[str, Any]) -> float:
    """Estimate the microseconds a witness takes, so that none is tried that is not worth it."""
    bits, together = witness["bits"], checker.rounded_charges(charges, witness["round"])
    work: float = sum(2 * n.bit_length() for n in together.values()) * (
        (witness["limit"] * (bits + 16)) ** 1.5 / 2000
    )
    for k, low, high in (grid for both in witness["grids"] for grid in both):
        wide = bits + 96 + max(k, 0) + 3 * (abs(low) + abs(high)) * 2.0 ** -(k + 1)
        work += (high - low) * wide * (1 + wide / 500)
    return work


def _grids(charges: Charges, delta: Fraction, fineness: float, limit: int) -> dict[str, Any]:
    """A witness with so many points of a standard deviation."""
    uses = sum(charges.values())
    small = math.ceil(-_log2(delta))
    cut = small + _NEGLIGIBLE
    bits = cut + math.ceil(math.log2(uses * limit)) + 16
    digits = _ROUND if len(charges) > _FEW_LAWS else _ROUND_OF_FEW
    together = checker.rounded_charges(charges, digits)
    grids = []
    for part, times in together.items():
        tail = delta / (times << _NEGLIGIBLE)
        ways = ("remove", "add") if part.scheme == "poisson" else ("remove",)
        grids.append([_grid(part, way, tail, fineness, times) for way in ways])
    return {"bits": bits, "limit": limit, "cut": cut, "round": digits, "grids": grids}


def _grid(part: checker.Part, way: str, tail: Fraction, fineness: float, times: int) -> list[int]:
    """[k, low, high]: from end to end of the losses, with a step of a share of their deviation."""
    w = math.ceil(-_log2(tail)) + 40
    high, low = _reach(part, way, tail, w, 1), -_reach(part, way, tail, w, -1)
    k = math.floor(8 - math.log2(high - low)) + 1
    while True:
        grid = (k, math.floor(low * 2.0**k), max(math.ceil(high * 2.0**k), 1))
        law = checker.grid_law(part, way, grid, w)
        deviation = _deviation(law)
        # A few uses keep the corners of one; many have its deviation alone.
        wanted = min(
            deviation / fineness, (high - low) / (16 * fineness) if times < 64 else math.inf
        )
        if 2.0**-k <= wanted or (high - low) * 2.0 ** (k + 1) > _MOST:
            return list(grid)
        k = max(k + 1, min(math.ceil(-math.log2(wanted)), k + 3))
        if (high - low) * 2.0**k > _MOST:
            k = math.floor(math.log2(_MOST / (high - low)))


def _deviation(law: checker.Losses) -> float:
    """Of the finite losses."""
    whole = sum(law.masses)
    shares = [mass / whole for mass in law.masses]
    mean = sum(at * share for at, share in enumerate(shares))
    square = sum((at - mean) ** 2 * share for at, share in enumerate(shares))
    return math.sqrt(max(square, 1e-30)) * 2.0**-law.k


def _reach(part: checker.Part, way: str, tail: Fraction, w: int, sign: int) -> float:
    """The distance from 0 from which on the curve, less that of no loss, is at most the tail."""

    def enough(x: float) -> bool:
        t = checker.exp(*Fraction(sign * x).as_integer_ratio(), w)[0]
        beyond = checker.curve(part, way, t, w) - max((1 << w) - t, 0)
        return beyond * tail.denominator <= tail.numerator << w

    high = 2.0**-60
    while not enough(high):
        high *= 2
        if high > _FARTHEST:
            raise checker.MissingError("the losses are too large for a grid.")
    low = high / 2
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)


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
        return CheckRecord(None, 0.0, (), "its ε is too large for a float.")
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
        raise TamperedError("checked differs from the checker's result for this certificate.")
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
        return "the checker judges only claims of an ε and a δ."
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
