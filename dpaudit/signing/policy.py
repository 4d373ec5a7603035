"""Policies: what a signed certificate must say before somebody acts on it.

A key of ``policy.toml`` that is left out demands nothing. What does not meet one is a sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import fields as fields_of
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from packaging.specifiers import SpecifierSet

from dpaudit.accounting import Accountant, AccountantName, CurvePoint, guarantee
from dpaudit.accounting.accountant import FILTER
from dpaudit.base import fields, files
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.numbers import holds
from dpaudit.base.provenance import is_exact
from dpaudit.base.validate import shown
from dpaudit.certificate import (
    Certificate,
    Premise,
    Scope,
    Severity,
    Standing,
    Verdict,
    check_of,
    lacks_check,
)
from dpaudit.certificate.assumptions import taken_at_word
from dpaudit.certificate.findings import FLOAT_NOISE
from dpaudit.plan import Relation, TrustModel
from dpaudit.signing.statements import Statement

_SKEW = timedelta(minutes=5)
"""By which the clocks of signer and reader may differ."""
_OF_BOTH = ("keys", "threshold", "days", "dpaudit")
_OF_EXPORTS = ("book", "current")
_WHOLE = ("add-remove", "replace-one", "zero-out")
"""Relations that hide all of a unit."""


@dataclass(frozen=True)
class Seen:
    """The facts that a policy is held against.

    Attributes:
        certificate: what was signed; its proof was computed again.
        statement: in which it was, whose signatures were checked.
        now: the time of the reader, in UTC.
        journal: whether the closed journal of its run was there, and is that of its run.
        anchor: whether an anchor knows the end of that journal.
    """

    certificate: Certificate
    statement: Statement
    now: datetime
    journal: bool = False
    anchor: bool = False


def _hash(digits: int = 64, **given: Any) -> str:
    ((name, value),) = given.items()
    if isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
        return value
    raise InputError(
        f"{name} has {shown(value)}; it must be {digits} hexadecimal digits in lower case."
    )


def _kind(family: Any) -> Any:
    """Return the check of a kind of that family."""
    return lambda **given: family.named(*given.values()).kind


def _accountant(**given: Any) -> str:
    (name,) = given.values()
    return FILTER if name == FILTER else _kind(Accountant)(**given)


def _versions(**given: Any) -> str:
    ((name, value),) = given.items()
    with suppress(ValueError):
        if isinstance(value, str):
            SpecifierSet(value)
            return value
    raise InputError(f"{name} is {shown(value)}; it must be like '>=0.1, <2'.")


@dataclass(frozen=True)
class Limit(fields.Record):
    """The largest loss of one kind of unit.

    Attributes:
        unit: who is protected.
        epsilon: that must be proved, or less.
        delta: of it.
        relations: that will do; a metric ball hides as little as its radius is small.
        trust: models that will do; any, where none is named.
    """

    unit: fields.Name
    epsilon: fields.NonNegative
    delta: fields.Probability = 0.0
    relations: tuple[Annotated[str, _kind(Relation)], ...] = (
        "add-remove",
        "replace-one",
        "zero-out",
    )
    trust: tuple[TrustModel, ...] = ()

    def lacks(self, certificate: Certificate, *, by_filter: bool = False) -> Iterator[str]:
        """Yield what is not so of a certificate of that unit.

        Args:
            certificate: whose.
            by_filter: whether the record of a privacy filter is believed, and not the plan alone.
        """
        plan, proved = certificate.plan, _proved(certificate, self.delta, by_filter=by_filter)
        if not holds(proved, self.epsilon):
            wanted = f"the policy wants {self.epsilon:g} or less"
            yield f"the ε that is proved at δ = {self.delta:g} is {proved:.6g}; {wanted}."
        yield from _other("relation", plan.relation.kind, self.relations or ["none"])
        yield from _other("trust model", plan.trust, self.trust)

    def lacks_check(self, certificate: Certificate) -> Iterator[str]:
        """Yield what the independent checker does not prove of it."""
        checked = certificate.checked or check_of(certificate)
        proves = checked.epsilon is not None and checked.delta <= self.delta
        if not proves or not holds(checked.epsilon or 0.0, self.epsilon):
            wanted = f"ε = {self.epsilon:g} at δ = {self.delta:g}"
            yield f"the checker {checked}; the policy wants {wanted} checked."


@dataclass(frozen=True)
class Attack(fields.Record):
    """An audit that there must be, of no less than the certificate states.

    Attributes:
        method: how the name of its method begins.
        confidence: of it, at least; an exact audit has all.
        runs: on each side, at least; an exact audit needs none.
    """

    method: str = ""
    confidence: fields.OpenProbability | None = None
    runs: fields.Natural = 0

    def lacks(self, certificate: Certificate, limits: Sequence[Limit] = ()) -> Iterator[str]:
        """Tell whether there is none; beyond all limits no claim counts, which may be of any size.

        Nor does an attack on a pair whose sides are alike, or that is recorded as no pair.
        """
        claim, proved = certificate.claim, certificate.guarantee
        own = () if proved is None else (CurvePoint(proved.epsilon, proved.delta),)
        for each in certificate.audits:
            if not each.is_of_a_pair:
                continue
            sure = each.confidence is None or (
                each.confidence >= (self.confidence or 0) and each.runs >= self.runs
            )
            within = any(
                holds(each.claim_epsilon, limit.epsilon) and each.delta <= limit.delta
                for limit in limits
            )
            about = (within or not limits) and any(
                holds(each.claim_epsilon, point.epsilon) and each.delta <= point.delta
                for point in (own if claim is None else claim.points)
            )
            if sure and about and each.method.startswith(self.method):
                return
        yield (
            f"no audit of the stated claim or guarantee meets {self.to_dict()}; the policy wants "
            "one."
        )


@dataclass(frozen=True)
class Policy(fields.Record):
    """The demands on a certificate, which besides must be *certified*, and not signed in future.

    Attributes:
        keys: ids of those who may sign; where there are none, all keys that are given must.
        threshold: how many of these must have signed.
        days: since it was signed, at most.
        limit: how much may be lost; one of them must be of the certificate's unit.
        subject: names, of which one must be its subject's: another signed one is not this one.
        plan_hash: of its plan.
        code_hash: of its code.
        declaration: digest of a release file, of which its release must be.
        scope: what it may speak of; where *sealed* is wanted a release will do, and where *plan and
            code* is wanted what is sealed.
        enforced: assumptions that hold by construction.
        tested: assumptions that were tested, or are enforced.
        secure_noise: whether exact samplers must have drawn the noise of its run, from no seed.
        journal: whether the closed journal of its run must be there.
        anchor: whether what kept the head of that journal must be there.
        accountants: of which one must have proved it; a limit believes the record of a privacy
            filter where ``filter`` is among them, else the plan alone.
        laws: mechanisms and accountants that are taken at their author's word: black boxes, and
            those that are not of this package. Where there is a limit, others prove nothing.
        dpaudit: versions of which one must have made it, as pip writes them.
        audit: attacks that it must have stood.
        never: rules of findings that it may not have.
        worst: severity of findings that it may have at worst.
        checked: whether the independent checker must prove its claim, or its ε where it makes none,
            and with it each limit.
        book: identifiers of books, of one of which an export must be.
        current: whether the book must be there, and have had no line since an export of it.
    """

    keys: tuple[Annotated[str, _hash], ...] = ()
    threshold: fields.Count = 1
    days: fields.Positive | None = None
    limit: tuple[Limit, ...] = ()
    subject: tuple[fields.Name, ...] = ()
    plan_hash: Annotated[str, _hash] | None = None
    code_hash: Annotated[str, _hash] | None = None
    declaration: Annotated[str, _hash] | None = None
    scope: tuple[Scope, ...] = ()
    enforced: tuple[Premise, ...] = ()
    tested: tuple[Premise, ...] = ()
    secure_noise: bool = False
    journal: bool = False
    anchor: bool = False
    accountants: tuple[Annotated[str, _accountant], ...] = ()
    laws: tuple[fields.Name, ...] = ()
    dpaudit: Annotated[str, _versions] = ""
    audit: tuple[Attack, ...] = ()
    never: tuple[fields.Name, ...] = ()
    worst: Severity = Severity.ERROR
    checked: bool = False
    book: tuple[Annotated[str, partial(_hash, 32)], ...] = ()
    current: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        number = len({*self.keys})
        if number < len(self.keys) or self.threshold > max(1, number):
            raise InputError(
                f"threshold is {self.threshold} of {len(self.keys)} keys; it must be at most "
                "their number, and no key may occur twice."
            )
        others = [each for each in fields_of(self) if each.name != "threshold"]
        if all(getattr(self, each.name) == each.default for each in others):
            raise InputError("policy demands nothing; add keys or a [[limit]].")

    def lacks(self, seen: Seen) -> tuple[str, ...]:
        """Return one sentence for each demand that is not met."""
        certificate, unit = seen.certificate, seen.certificate.plan.unit.name
        found = [*_other("verdict", certificate.verdict, [Verdict.CERTIFIED])]
        found += _other("unit", unit, [each.unit for each in self.limit])
        limits = [each for each in self.limit if each.unit == unit]
        for limit in limits:
            found += limit.lacks(certificate, by_filter=FILTER in self.accountants)
            found += limit.lacks_check(certificate) if self.checked else ()
        for attack in self.audit:
            found += attack.lacks(certificate, limits)
        found += _lacks_signers(self, seen.statement, seen.now)
        for part in (_lacks_facts, _lacks_standings, _lacks_run):
            found += part(self, seen)
        found += self._of_others("an export of a book", _OF_EXPORTS)
        return tuple(dict.fromkeys(found))

    def lacks_of_export(
        self, statement: Statement, now: datetime, behind: int | None
    ) -> tuple[str, ...]:
        """Give one sentence for each demand that an export does not meet, or only certificates can.

        Args:
            statement: whose signatures were checked.
            now: the time of the reader, in UTC.
            behind: by how many lines the book has gone on since; None where it is not there.
        """
        stated = statement.predicate
        found = [*_lacks_signers(self, statement, now), *_other("book", stated["book"], self.book)]
        found += _made_by(self, stated["dpaudit"])
        if self.current and behind is None:
            found.append("the book is missing; give it with --book.")
        elif self.current and behind:
            found.append(f"the book has had {behind} lines since; the policy wants the newest.")
        own = (*_OF_BOTH, *_OF_EXPORTS)
        others = [each.name for each in fields_of(self) if each.name not in own]
        return (*found, *self._of_others("a certificate", others))

    def _of_others(self, what: str, names: Iterable[str]) -> Iterator[str]:
        for each in fields_of(self):
            if each.name in names and getattr(self, each.name) != each.default:
                yield f"the policy demands {shown(each.name)}, which only {what} has."


def read_policy(path: Path | str) -> Policy:
    """Return the policy of a TOML file.

    Raises:
        InputError: if a key is unknown, with the nearest; if a value is wrong; or if it demands
            nothing.
    """
    return Policy.from_dict(files.read_toml(path, what="policy"))


def _lacks_signers(policy: Policy, statement: Statement, now: datetime) -> Iterator[str]:
    """Tell who signed, and when."""
    signed, at = len(statement.signers & {*policy.keys}), statement.signed_at
    if policy.keys and signed < policy.threshold:
        yield f"{signed} of the policy's keys signed it; the policy wants {policy.threshold}."
    if at is None:
        if policy.days is not None:
            yield "the signers state no time; the policy limits the age."
    elif at > now + _SKEW:
        yield f"it was signed at {at}, which is in the future."
    elif policy.days is not None and (now - at) / timedelta(days=1) > policy.days:
        yield f"it was signed at {at}; the policy wants {policy.days:g} days at most."


def _lacks_facts(policy: Policy, seen: Seen) -> Iterator[str]:
    """Yield what it speaks of, who made it, and what was found."""
    certificate, severities = seen.certificate, list(Severity)
    subject, proved = certificate.subject, certificate.guarantee
    yield from _other("subject", subject.name, policy.subject)
    yield from _other("plan_hash", certificate.plan.hash, [policy.plan_hash])
    yield from _other("code_hash", subject.code_hash, [policy.code_hash])
    declared = None if certificate.release is None else certificate.release.declaration
    yield from _other("declaration", declared, [policy.declaration])
    if policy.scope and not any(certificate.scope.keeps(each) for each in policy.scope):
        yield from _other("scope", certificate.scope, policy.scope)
    by = None if proved is None else str(proved.accountant)
    yield from _other("accountant", by, policy.accountants)
    if policy.limit or policy.laws:
        stated = {*taken_at_word(certificate.plan, proved)} - {*policy.laws}
        for kind in sorted(stated):
            yield f"only its author states what {shown(kind)} costs; the policy wants a proof."
    yield from _made_by(policy, certificate.versions.get("dpaudit", "none"))
    if policy.checked and (lacks := lacks_check(certificate)):
        yield f"{lacks.rstrip('.')}; the policy wants it checked."
    for each in certificate.findings:
        worse = severities.index(each.severity) < severities.index(policy.worst)
        if worse or each.rule in policy.never:
            yield f"the {each.severity} {shown(each.rule)} was found; the policy wants none."


def _lacks_standings(policy: Policy, seen: Seen) -> Iterator[str]:
    """Yield what its proof rests on; of a plan without code nothing is known."""
    known = {each.premise: each.standing for each in seen.certificate.known_assumptions()}
    silent = seen.certificate.subject.code_hash is None and seen.certificate.release is None
    wanted = dict.fromkeys(policy.tested, Standing.TESTED)
    for premise, least in (wanted | dict.fromkeys(policy.enforced, Standing.ENFORCED)).items():
        if silent and premise is not Premise.LAWS:
            yield "the certificate is not about code; the policy demands that code was tested."
        elif known[premise].rank > least.rank:
            yield f"{str(premise)!r} is {known[premise]}; the policy wants it {least}."


def _lacks_run(policy: Policy, seen: Seen) -> Iterator[str]:
    """Tell how it ran."""
    ledger = (seen.certificate.run or {}).get("ledger", {})
    samplers = ledger.get("samplers")
    exact = samplers and all(map(is_exact, samplers)) and not ledger.get("external")
    noted = any(each.rule == FLOAT_NOISE for each in seen.certificate.findings)
    if policy.secure_noise and (not exact or noted or ledger["seeded"]):
        yield "no run is recorded whose noise came from exact samplers without a seed."
    if policy.journal and not seen.journal:
        yield "the closed journal of the run is missing; give it with --ledger."
    if policy.anchor and not seen.anchor:
        yield "the anchor of the closed journal is missing; give it with --anchor."


def _other(what: str, found: str | None, wanted: Iterable[str | None]) -> Iterator[str]:
    """Yield a sentence where something else is wanted; where nothing is named, anything will do."""
    names = sorted({str(each) for each in wanted if each is not None})
    if names and found not in names:
        told = "none" if found is None else shown(str(found))
        yield f"the {what} is {told}; the policy wants {' or '.join(map(shown, names))}."


def _made_by(policy: Policy, made: str) -> Iterator[str]:
    if policy.dpaudit and not _admits(policy.dpaudit, made):
        yield from _other("dpaudit that made it", made, [policy.dpaudit])


def _admits(versions: str, made: str) -> bool:
    with suppress(ValueError):  # it may be no version at all
        return SpecifierSet(versions).contains(made, prereleases=True)
    return False


def _proved(certificate: Certificate, delta: float, *, by_filter: bool) -> float:
    """Return the ε that the certificate's own accountant proves at δ; none is infinite."""
    proved, filtered = certificate.guarantee, certificate.filtered
    if filtered is not None and by_filter:
        again = filtered.bounded(certificate.plan, None, delta)
        if again is not None:
            return again.epsilon
    of_filter = proved is not None and proved.accountant == FILTER
    if proved is None or (proved.delta == delta and not of_filter):
        return math.inf if proved is None else proved.epsilon
    by = AccountantName.BEST if of_filter else proved.accountant
    try:
        return guarantee(certificate.plan, delta, by).epsilon
    except UnsupportedError:
        return math.inf
