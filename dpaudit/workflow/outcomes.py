"""Outcomes of a check of a project: rows, budgets over subjects, and changes since before.

There is one row for every subject and every budget. A budget is the largest (ε, δ) that several
subjects may release together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from typing import Any

from dpaudit.accounting import Guarantee, guarantee
from dpaudit.base import files
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Record
from dpaudit.certificate import (
    AuditRecord,
    Certificate,
    Claim,
    Finding,
    Scope,
    Severity,
    Verdict,
)
from dpaudit.certificate.verdicts import NOT_DECLARED
from dpaudit.certificate.verification import TOLERANCE
from dpaudit.plan import Group, Invocation, Membership, Plan, TrustModel
from dpaudit.project.project_file import BudgetEntry

_RANK = {Verdict.CERTIFIED: 0, Verdict.UNPROVEN: 1, Verdict.REFUTED: 3}
_EXCEEDED = 2
SCOPE = "speaks of"
"""What a change is about where a certificate speaks of code before or now, and not both."""
NO_AUDIT = "No audit was made: "
"""How a certificate begins to say why nobody attacked it."""
_OPEN = (Severity.ERROR, Severity.WARNING)
_MOST_INVOCATIONS = 10
"""More changed invocations than that are counted, not listed."""


class Direction(StrEnum):
    """The meaning of a change for whoever is protected."""

    BETTER = "better"
    WORSE = "worse"
    """Less is proved, more is refuted, or what is promised now cannot be compared."""
    NEUTRAL = "changed"


@dataclass(frozen=True)
class Change(Record):
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


def changes(old: Certificate, new: Certificate) -> tuple[Change, ...]:
    """Every difference that a reviewer must see, what matters most first.

    The guarantees are compared at the old certificate's δ. A promise to another unit, under another
    relation or to another adversary cannot be compared by its ε, and counts as worse unless fewer
    parties are trusted. So do a claim that is looser, or gone, fewer audits, and a certificate that
    speaks of the plan alone now. What an audit found wrong with the same plan of the same code
    still stands, however it is attacked now: a verdict that hides it is worse, not better.
    """
    return (
        *_verdict(old, new),
        *_scope(old.scope, new.scope),
        *_promise(old.plan, new.plan),
        *_guarantee(old, new),
        *_claims(old.claim, new.claim),
        *_audits(old.audits, new.audits),
        *_findings(old.findings, new.findings),
        *_sentences(old.not_covered, new.not_covered),
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
    if rank == new_rank:
        return
    if new_rank > rank or not _is_contradicted(old):
        direction = Direction.WORSE if new_rank > rank else Direction.BETTER
        yield Change("verdict", before, after, direction)
    elif same_code(old, new):
        told = f"{after}, although an audit found this same plan and code wrong"
        yield Change("verdict", before, told, Direction.WORSE)
    else:
        attacked = len(new.audits) >= len(old.audits)
        better = attacked and new_rank != _EXCEEDED
        told = after if attacked else f"{after}, with fewer audits"
        yield Change("verdict", before, told, Direction.BETTER if better else Direction.NEUTRAL)


def _scope(old: Scope, new: Scope) -> Iterator[Change]:
    if old is not new:
        ranks = list(Scope).index(old), list(Scope).index(new)
        direction = Direction.BETTER if ranks[1] > ranks[0] else Direction.WORSE
        yield Change(SCOPE, str(old), str(new), direction)


def _is_contradicted(certificate: Certificate) -> bool:
    """Tell whether an audit contradicts the claim, or the proof."""
    disputed = any(finding.rule == NOT_DECLARED for finding in certificate.findings)
    return disputed or certificate.verdict is Verdict.REFUTED


def same_code(old: Certificate, new: Certificate) -> bool:
    """Tell whether an attack on one certificate is on the other: plan and code are the same."""
    return old.plan.hash == new.plan.hash and old.subject.code_hash == new.subject.code_hash


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
        fewer = after_trust - {TrustModel.LOCAL} < before_trust - {TrustModel.LOCAL}
        before, after = (", ".join(sorted(trust)) for trust in (before_trust, after_trust))
        yield Change("trust", before, after, Direction.BETTER if fewer else Direction.WORSE)


def _trust(plan: Plan) -> set[TrustModel]:
    return {invocation.trust for invocation in plan.invocations}


def _guarantee(old: Certificate, new: Certificate) -> Iterator[Change]:
    """ε at the old δ; versions of numerical libraries may move its last digits."""
    if old.guarantee is None:
        proved = new.guarantee
        if proved is not None and proved.epsilon < math.inf:
            shown = str(Claim(proved.epsilon, proved.delta))
            yield Change("guarantee", "none", shown, Direction.BETTER)
        return
    delta, before = old.guarantee.delta, old.guarantee.epsilon
    after = _epsilon_at(delta, new)
    if before == after or math.isclose(before, after, rel_tol=TOLERANCE):
        return
    direction = Direction.WORSE if after > before else Direction.BETTER
    digits = _digits(before, after)
    what = f"ε at δ = {delta:g}"
    yield Change(what, _bound(before, digits), _bound(after, digits), direction)


def _bound(epsilon: float, digits: int) -> str:
    return f"{epsilon:.{digits}g}" if epsilon < math.inf else "unbounded"


def _epsilon_at(delta: float, certificate: Certificate) -> float:
    """Return what is proved at that δ; infinity where nothing is."""
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


def _claims(old: Claim | None, new: Claim | None) -> Iterator[Change]:
    before, after = ("none" if claim is None else in_full(claim) for claim in (old, new))
    if before == after:
        return
    kept = old is None or (new is not None and new.implies(old))
    yield Change("claim", before, after, Direction.NEUTRAL if kept else Direction.WORSE)


def _audits(old: Sequence[AuditRecord], new: Sequence[AuditRecord]) -> Iterator[Change]:
    direction = Direction.WORSE if len(new) < len(old) else Direction.NEUTRAL
    if (before := _strongest(old)) != (after := _strongest(new)):
        yield Change("audits", before, after, direction)


def in_full(claim: Claim) -> str:
    """With all digits: a claim that is looser by the last of them is another one."""
    if claim.risk is not None:
        numbers = claim.risk.to_dict().items()
        return ", ".join(f"{name} = {files.canonical_json(number)}" for name, number in numbers)
    return f"ε = {_number(claim.epsilon)}, δ = {_number(claim.delta)}"


def _number(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _strongest(audits: Sequence[AuditRecord]) -> str:
    bounds = [audit.epsilon_lower or 0.0 for audit in audits]
    if not bounds:
        return "none"
    strongest = max(bounds)
    shown = f"ε ≥ {strongest:.4g}" if strongest < math.inf else "no finite ε"
    return f"{len(audits)}, {shown}"


def _findings(old: Sequence[Finding], new: Sequence[Finding]) -> Iterator[Change]:
    """Errors and warnings; one that is gone is told, as leaving it out proves nothing."""
    before, after = (
        {(each.rule, each.severity, each.at): each for each in findings if each.severity in _OPEN}
        for findings in (old, new)
    )
    for key in dict.fromkeys((*after, *before)):
        if key in before and key in after:
            continue
        rule, severity, at = key
        what = f"{severity} {rule}{f' at {at}' if at else ''}"
        if key in before:
            yield Change(what, before[key].message, "none")
        else:
            worse = severity is Severity.ERROR
            direction = Direction.WORSE if worse else Direction.NEUTRAL
            yield Change(what, "none", after[key].message, direction)


def _sentences(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Return what is said to be not covered."""
    for sentence in dict.fromkeys((*old, *new)):
        if sentence not in new:
            yield Change("not covered", sentence, "none")
        elif sentence not in old:
            yield Change("not covered", "none", sentence)


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
            yield from _mapping(name, *(_flat(each[label].to_dict()) for each in (before, after)))


def _described(invocation: Invocation) -> str:
    return f"{_text(invocation.mechanism.to_dict())}, {invocation.count} ×"


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
    return value if isinstance(value, str) else files.canonical_json(value)


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:12]


MOST_COMBINATIONS = 4096
"""Groups of one plan meet those of every other; more combinations than that are refused."""


def budget_changes(
    old: Sequence[BudgetEntry] | None, new: Sequence[BudgetEntry], names: Mapping[str, str]
) -> Iterator[Change]:
    """Return what became of older budgets.

    One is kept where a budget of now allows no more to those of its subjects that are still there.
    ``old`` is None where it is not known; ``names`` are of now, by what subjects were called then.
    """
    if old is None and new:
        yield Change("budgets", "unknown", "; ".join(map(_allowed, new)))
    for budget in old or ():
        members = {names[name] for name in budget.subjects if name in names}
        kept = not members or any(
            each.limit.implies(budget.limit) and members <= set(each.subjects) for each in new
        )
        after = next((_allowed(each) for each in new if each.name == budget.name), "none")
        if not kept or after != _allowed(budget):
            direction = Direction.NEUTRAL if kept else Direction.WORSE
            yield Change(f"budget {budget.name!r}", _allowed(budget), after, direction)


def _allowed(budget: BudgetEntry) -> str:
    return f"{in_full(budget.limit)} of {', '.join(budget.subjects)}"


def in_sequence(plans: Mapping[str, Plan]) -> Plan:
    """One plan of all that several plans release about the same units.

    Within a plan its groups of units are disjoint, and compose in parallel. Nothing is known of how
    the groups of two plans overlap, so every group of one may meet every group of the other: a unit
    may be in any combination of them, and each combination composes sequentially.

    Args:
        plans: by name; the labels of their invocations get it as a prefix.

    Raises:
        InputError: if units or relations differ, or there are too many combinations of groups.
    """
    grouped = {name: _groups(plan) for name, plan in plans.items() if _groups(plan)}
    if len(grouped) < 2:  # the groups of a single plan stay what they are
        return Plan(tuple(each for name, plan in plans.items() for each in _prefixed(name, plan)))
    combinations = list(product(*_require_feasible(grouped).values()))
    places = {name: place for place, name in enumerate(grouped)}
    invocations: list[Invocation] = []
    for name, plan in plans.items():
        for each in _prefixed(name, plan):
            if each.group is None:
                invocations.append(each)
            else:
                invocations += _in_combinations(each, places[name], combinations)
    return Plan(tuple(invocations))


def _groups(plan: Plan) -> tuple[Group, ...]:
    return tuple(dict.fromkeys(i.group for i in plan.invocations if i.group is not None))


def _prefixed(name: str, plan: Plan) -> Iterator[Invocation]:
    for number, invocation in enumerate(plan.invocations, start=1):
        yield replace(invocation, at=f"{name}: {invocation.at or f'invocation {number}'}")


def _require_feasible(grouped: dict[str, tuple[Group, ...]]) -> dict[str, tuple[Group, ...]]:
    combinations = math.prod(map(len, grouped.values()))
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"the groups of {', '.join(grouped)} meet in {combinations} combinations; at most "
            f"{MOST_COMBINATIONS} can be accounted, so give the subjects separate budgets."
        )
    return grouped


def _in_combinations(
    invocation: Invocation, place: int, combinations: Sequence[tuple[Group, ...]]
) -> Iterator[Invocation]:
    """The invocation in every combination of groups that holds its own."""
    for number, combination in enumerate(combinations, start=1):
        if combination[place] == invocation.group:
            label = f"{invocation.at} ({number})"
            name = f"{number}: {' × '.join(map(str, combination))}"
            by_value = any(each.membership is Membership.VALUE for each in combination)
            membership = Membership.VALUE if by_value else Membership.POSITION
            yield replace(invocation, group=Group(name, membership), at=label)


class Status(StrEnum):
    """The word of a row, from best to worst."""

    CERTIFIED = "certified"
    UNPROVEN = "unproven"
    EXCEEDED = "exceeded"
    """What is proved is above the claim, or above the budget."""
    REFUTED = "refuted"
    ERROR = "error"
    """It could not be certified or attacked; the row says why."""


def status_of(certificate: Certificate) -> Status:
    """Return what a certificate says in one word."""
    if certificate.verdict is Verdict.REFUTED:
        return Status.REFUTED
    return Status.EXCEEDED if certificate.claim_exceeded else Status(certificate.verdict)


@dataclass(frozen=True)
class SubjectRow:
    """One subject.

    Attributes:
        name: in the project.
        target: what was certified.
        certificate: what is known; None where an error prevented it.
        error: that error, as one sentence.
        files: content of its files by file name.
        since: name of the older certificate that it was compared with; empty where there is none.
        changes: what changed since that.
        inconclusive: whether the error is that an attack could not decide anything.
        unrehearsed: why the code was not put to the test, though it should be; empty otherwise.
    """

    name: str
    target: str
    certificate: Certificate | None = None
    error: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    since: str = ""
    changes: tuple[Change, ...] = ()
    unrehearsed: str = ""
    inconclusive: bool = False

    @property
    def status(self) -> Status:
        """What the row says."""
        if self.certificate is None:
            return Status.UNPROVEN if self.inconclusive else Status.ERROR
        return status_of(self.certificate)

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        known = self.certificate
        claim = None if known is None else known.claim
        audits = () if known is None else known.audits
        return {
            "name": self.name,
            "target": self.target,
            "status": str(self.status),
            "error": self.error,
            "files": sorted(self.files),
            "claim": None if claim is None else claim.to_dict(),
            "guarantee": _proved(None if known is None else known.guarantee),
            "epsilon_lower": [audit.to_dict()["epsilon_lower"] for audit in audits],
            "scope": None if known is None else str(known.scope),
            "unrehearsed": self.unrehearsed or None,
            "since": self.since or None,
            "changes": [change.to_dict() for change in self.changes],
        }


def _proved(proved: Guarantee | None) -> dict[str, Any] | None:
    if proved is None:
        return None
    return {name: proved.to_dict()[name] for name in ("epsilon", "delta", "accountant")}


@dataclass(frozen=True)
class BudgetRow:
    """One budget.

    Attributes:
        name: in the project.
        subjects: names of the subjects whose plans compose.
        limit: the allowed (ε, δ).
        status: certified where the composition is within it.
        guarantee: of the composition, at the limit's δ.
        note: what a reader must know, as one sentence.
    """

    name: str
    subjects: tuple[str, ...]
    limit: Claim
    status: Status
    guarantee: Guarantee | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {
            "name": self.name,
            "subjects": list(self.subjects),
            "limit": {"epsilon": self.limit.epsilon, "delta": self.limit.delta},
            "status": str(self.status),
            "guarantee": _proved(self.guarantee),
            "note": self.note,
        }


@dataclass(frozen=True)
class ProjectOutcome:
    """The whole project.

    Attributes:
        subjects: in the order of the project file.
        budgets: in the order of the project file.
        gone: names of older certificates that no subject has now.
        changes: what became of older budgets.
        beside: whether its reports went beside better ones, which they would have replaced.
    """

    subjects: tuple[SubjectRow, ...]
    budgets: tuple[BudgetRow, ...] = ()
    gone: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    beside: bool = False

    @property
    def status(self) -> Status:
        """The worst of all rows."""
        return max((row.status for row in self._rows()), key=list(Status).index)

    @property
    def is_worse(self) -> bool:
        """Whether a subject is worse than its older certificate, or a budget allows more."""
        changes = [*self.changes, *(change for row in self.subjects for change in row.changes)]
        return any(change.direction is Direction.WORSE for change in changes)

    def _rows(self) -> Iterator[SubjectRow | BudgetRow]:
        yield from self.subjects
        yield from self.budgets

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        return {
            "status": str(self.status),
            "worse": self.is_worse,
            "subjects": [row.to_dict() for row in self.subjects],
            "budgets": [row.to_dict() for row in self.budgets],
            "gone": list(self.gone),
            "changes": [change.to_dict() for change in self.changes],
        }
