"""What changed between two certificates of one subject, and whether it is for the worse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpaudit import _files
from dpaudit.accounting import guarantee
from dpaudit.certificate import AuditRecord, Certificate
from dpaudit.claim import Claim, Verdict
from dpaudit.errors import UnsupportedError
from dpaudit.plan import Invocation, Plan
from dpaudit.relations import TrustModel
from dpaudit.verification import TOLERANCE

__all__ = ["Change", "Direction", "changes"]

_RANK = {Verdict.CERTIFIED: 0, Verdict.UNPROVEN: 1, Verdict.REFUTED: 3}
_EXCEEDED = 2
_MOST_INVOCATIONS = 10
"""More changed invocations than that are counted, not listed."""


class Direction(StrEnum):
    """What a change means for whoever is protected."""

    BETTER = "better"
    WORSE = "worse"
    """Less is proved, more is refuted, or what is promised now cannot be compared."""
    NEUTRAL = "changed"


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        what: the part of the certificate.
        before: as it was, for people.
        after: as it is.
        direction: what it means.
    """

    what: str
    before: str
    after: str
    direction: Direction = Direction.NEUTRAL

    def __str__(self) -> str:
        mark = "" if self.direction is Direction.NEUTRAL else f" ({self.direction})"
        return f"{self.what}: {self.before} → {self.after}{mark}"

    def to_dict(self) -> dict[str, str]:
        """A JSON record."""
        return {
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "direction": str(self.direction),
        }


def changes(old: Certificate, new: Certificate) -> tuple[Change, ...]:
    """Every difference that a reviewer must see, what matters most first.

    The guarantees are compared at the old certificate's δ. A promise to another unit, under another
    relation or to another adversary cannot be compared by its ε, and counts as worse unless fewer
    parties are trusted.
    """
    return (
        *_verdict(old, new),
        *_promise(old.plan, new.plan),
        *_guarantee(old, new),
        *_plain("claim", _claim(old.claim), _claim(new.claim)),
        *_audits(old.audits, new.audits),
        *_plan(old.plan, new.plan),
        *_mapping("field", old.subject.configuration, new.subject.configuration),
        *_plain("code hash", _short(old.subject.code_hash), _short(new.subject.code_hash)),
        *_mapping("version of", old.versions, new.versions),
    )


def _plain(what: str, before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield Change(what, before, after)


def _verdict(old: Certificate, new: Certificate) -> Iterator[Change]:
    (rank, before), (new_rank, after) = _ranked(old), _ranked(new)
    if rank != new_rank:
        direction = Direction.WORSE if new_rank > rank else Direction.BETTER
        yield Change("verdict", before, after, direction)


def _ranked(certificate: Certificate) -> tuple[int, str]:
    """Ranks a claim that is above what is proved as worse than one that nobody can prove."""
    if certificate.verdict is not Verdict.REFUTED and certificate.claim_exceeded:
        return _EXCEEDED, "claim exceeded"
    return _RANK[certificate.verdict], str(certificate.verdict)


def _promise(old: Plan, new: Plan) -> Iterator[Change]:
    if old.unit != new.unit:
        yield Change("unit", str(old.unit), str(new.unit), Direction.WORSE)
    if old.relation != new.relation:
        before, after = (_text(plan.relation.to_dict()) for plan in (old, new))
        yield Change("relation", before, after, Direction.WORSE)
    before_trust, after_trust = _trust(old), _trust(new)
    if before_trust != after_trust:
        local = after_trust == {TrustModel.LOCAL}
        before, after = (", ".join(sorted(trust)) for trust in (before_trust, after_trust))
        yield Change("trust", before, after, Direction.BETTER if local else Direction.WORSE)


def _trust(plan: Plan) -> set[TrustModel]:
    return {invocation.trust for invocation in plan.invocations}


def _guarantee(old: Certificate, new: Certificate) -> Iterator[Change]:
    """ε at the old δ; versions of numerical libraries may move its last digits."""
    if old.guarantee is None:
        if new.guarantee is not None:
            proved = Claim(_finite(new.guarantee.epsilon), new.guarantee.delta)
            yield Change("guarantee", "none", str(proved), Direction.BETTER)
        return
    delta, before = old.guarantee.delta, old.guarantee.epsilon
    after = _epsilon_at(delta, new)
    if before == after or math.isclose(before, after, rel_tol=TOLERANCE):
        return
    direction = Direction.WORSE if after > before else Direction.BETTER
    digits = _digits(before, after)
    yield Change(f"ε at δ = {delta:g}", f"{before:.{digits}g}", f"{after:.{digits}g}", direction)


def _finite(epsilon: float) -> float:
    return epsilon if epsilon < math.inf else 0.0


def _epsilon_at(delta: float, certificate: Certificate) -> float:
    """What is proved at that δ; infinity where nothing is."""
    proved = certificate.guarantee
    if proved is None:
        return math.inf
    if proved.delta == delta:
        return proved.epsilon
    try:
        return guarantee(certificate.plan, delta).epsilon
    except UnsupportedError:
        return math.inf


def _digits(first: float, second: float) -> int:
    """Enough to tell two numbers apart."""
    return next((n for n in range(6, 17) if f"{first:.{n}g}" != f"{second:.{n}g}"), 17)


def _claim(claim: Claim | None) -> str:
    return "none" if claim is None else str(claim)


def _audits(old: Sequence[AuditRecord], new: Sequence[AuditRecord]) -> Iterator[Change]:
    before, after = (_strongest(audits) for audits in (old, new))
    yield from _plain("audits", before, after)


def _strongest(audits: Sequence[AuditRecord]) -> str:
    bounds = [audit.epsilon_lower or 0.0 for audit in audits]
    return f"{len(audits)}, ε ≥ {max(bounds):.4g}" if bounds else "none"


def _plan(old: Plan, new: Plan) -> Iterator[Change]:
    if old.hash == new.hash:
        return
    found = list(_invocations(old, new))
    yield from found[:_MOST_INVOCATIONS]
    rest = len(found) - _MOST_INVOCATIONS
    if rest > 0:
        yield Change("plan", _short(old.hash), f"{_short(new.hash)} and {rest} more differences")
    elif not found:  # the same invocations in another order
        yield Change("plan", _short(old.hash), _short(new.hash))


def _invocations(old: Plan, new: Plan) -> Iterator[Change]:
    """Invocations are the same where their labels are."""
    before, after = (
        {each.at or f"invocation {n}": each for n, each in enumerate(plan.invocations, start=1)}
        for plan in (old, new)
    )
    for label in before | after:
        name = f"invocation {label!r}"
        if label not in before:
            yield Change(name, "none", _described(after[label]))
        elif label not in after:
            yield Change(name, _described(before[label]), "none")
        else:
            yield from _fields(name, before[label], after[label])


def _described(invocation: Invocation) -> str:
    return f"{_text(invocation.mechanism.to_dict())}, {invocation.count} ×"


def _fields(name: str, old: Invocation, new: Invocation) -> Iterator[Change]:
    before, after = (_flat(each.to_dict()) for each in (old, new))
    yield from _mapping(name, before, after)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The mechanism's parameters beside the other fields; what the promise already tells is out."""
    mechanism = {f"mechanism {name}": value for name, value in record["mechanism"].items()}
    told = {"mechanism", "unit", "relation", "trust"}
    return mechanism | {name: value for name, value in record.items() if name not in told}


def _mapping(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if before != after:
            yield Change(f"{what} {name}", _text(before), _text(after))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else _files.canonical_json(value)


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:12]
