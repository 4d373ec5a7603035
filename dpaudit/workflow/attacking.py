"""Attacking a subject or a bare function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.auditing import BlackBox, search_pairs
from dpaudit.auditing.subjects.neighbours import Search
from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.certificate import (
    AuditRecord,
    Certificate,
    Claim,
    Finding,
    Severity,
    SubjectRecord,
)
from dpaudit.certificate.verdicts import contradicts
from dpaudit.project import AuditPair, Execution
from dpaudit.project.execution import DEFAULTS
from dpaudit.project.programs import Program
from dpaudit.project.targets import (
    Target,
    find_function,
    find_target,
    parse_arguments,
    parse_claim,
    parse_settings,
)
from dpaudit.rehearsal.rehearse import Rehearsed
from dpaudit.workflow.certifying import certified
from dpaudit.workflow.functions import (
    EACH,
    Hypothesis,
    candidates,
    hypothesis,
    parse_relation,
    told_of,
)
from dpaudit.workflow.rehearsing import rehearsed
from dpaudit.workflow.through_run import audit_run


@dataclass(frozen=True)
class AuditOutcome:
    """An audit and what it was made of.

    Attributes:
        record: the evidence.
        target: what its certificate speaks of.
        name: what was attacked.
        claim: what was tested.
        rehearsal: what putting the subject's real run to the test showed; None for a function.
    """

    record: AuditRecord
    target: Target
    name: str
    claim: Claim
    rehearsal: Rehearsed | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the rehearsal."""
        return () if self.rehearsal is None else self.rehearsal.findings

    @property
    def exit_code(self) -> int:
        """1 if the audit refutes what it tested, or contradicts the subject's own claim.

        Else 2 if the rehearsal found an error, or the code fails at one end of some pair alone, and
        0 otherwise.
        """
        own = self.target.claim
        if self.record.refuted or (own is not None and contradicts(self.record, own)):
            return 1
        if "one_sided" in self.record.details:
            return 2
        return 2 if any(each.severity is Severity.ERROR for each in self.findings) else 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        rehearsal = None if self.rehearsal is None else self.rehearsal.record.to_dict()
        findings = [finding.to_dict() for finding in self.findings]
        record = {"subject": self.name, "claim": self.claim.to_dict(), **self.record.to_dict()}
        return record | {"rehearsal": rehearsal, "findings": findings}

    def certificate(self) -> Certificate:
        """That of the subject, of the plan file, or of an opaque claim, with this audit.

        A rehearsal that could not be made, and that nobody asked for, is not told of.
        """
        delta = self.record.delta if self.target.claim is None else None
        made = certified(self.target, delta=delta).with_audits((self.record,))
        if self.rehearsal is None or not (self.rehearsal.record.done or self.findings):
            return made
        return made.with_rehearsal(self.rehearsal.record, self.rehearsal.findings)


def audit_target(
    name: str,
    settings: Sequence[str] = (),
    pair: tuple[str, str] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    execution: Execution = DEFAULTS,
    *,
    through_run: bool = False,
    seconds: float | None = None,
    claim: str | None = None,
    arguments: Sequence[str] = (),
    plan: str | None = None,
    unit: str | None = None,
    relation: str | None = None,
    command: bool = False,
    data: str | None = None,
) -> AuditOutcome:
    """Attack a subject or a function.

    Args:
        name: of a subject, a function or a method, or a command line.
        settings: ``key=value`` texts for a subject, or for what a method is of.
        pair: two neighbours as JSON texts; a subject's own pairs where not given, and for a
            function neighbours of the data, or patterns of numbers.
        epsilon: the ε under test; the subject's claim where not given.
        delta: the δ under test; the subject's claim, or 0.
        execution: how many runs are drawn, and how.
        through_run: attack the real run of a subject, on its data and a neighbour of them, in place
            of its ``audit_release``.
        seconds: about how long that may take; fewer runs are drawn then.
        claim: what is tested in place of ε and δ, as it is written in a plan file.
        arguments: ``NAME=JSON`` texts for further parameters of a function.
        plan: a plan file, whose whole curve is tested of a function in place of a claim.
        unit: who is protected by a function.
        relation: which data sets are neighbours to it, as its kind or JSON.
        command: whether the name is a command line.
        data: a file, of whose neighbours the most promising one is attacked.

    Raises:
        InputError: if the target, the pair or a number is wrong.
    """
    if claim is not None and (epsilon is not None or delta is not None):
        raise InputError("--claim is given with --epsilon or --delta; keep one of them.")
    stated = parse_claim(claim) if epsilon is None else Claim(epsilon, delta or 0.0)
    neighbours = None if pair is None else _pair(pair)
    if through_run and neighbours is not None:
        raise InputError("--pair is given with --through-run, which finds its own; leave it out.")
    function = _function(name, settings, command=command, through_run=through_run)
    if function is not None:
        record = SubjectRecord(name, configuration=parse_settings(settings))
        near = parse_relation(relation, each=True)
        about = hypothesis(record, stated, delta, plan=plan, unit=unit, relation=near)
        release = BlackBox(function, arguments=parse_arguments(arguments))
        told: dict[str, Any] = {}
        if neighbours is None:
            each = relation == EACH
            found, told = _searched(release, about, data, execution, each=each)
            neighbours, execution = found.pair, replace(execution, seed=found.seed)
        elif data is not None:
            raise InputError("--data is given with --pair; keep one of them.")
        return _audit_function(name, release, neighbours, about, told, execution)
    if any(each is not None for each in (plan, unit, relation, data)):
        raise InputError(
            "--plan, --unit, --relation and --data are of functions; a subject has its own."
        )
    if arguments:
        raise InputError("--arg is given for a subject, which has fields; give --set key=value.")
    return _audit_subject(
        name,
        settings,
        neighbours,
        stated,
        delta,
        execution,
        through_run=through_run,
        seconds=seconds,
    )


def _function(
    name: str, settings: Sequence[str], *, command: bool, through_run: bool
) -> Callable[..., Any] | None:
    """What is attacked; None for a subject."""
    if command:
        if settings or through_run:
            raise InputError("--set and --through-run are of subjects; --command has neither.")
        return Program.of(name)
    if name.endswith(".toml"):
        raise InputError("a plan file has no code to attack; audit its subject or function.")
    return None if through_run else find_function(name, parse_settings(settings))


def _pair(texts: tuple[str, str]) -> AuditPair:
    x, x_prime = (
        files.parse_json(text, what=f"--pair {name}")
        for text, name in zip(texts, ("x", "x'"), strict=True)
    )
    if json.dumps(x, sort_keys=True) == json.dumps(x_prime, sort_keys=True):
        raise InputError("--pair gives the same data twice; give two neighbouring data sets.")
    return AuditPair(x, x_prime, "given")


def _searched(
    release: BlackBox, about: Hypothesis, data: str | None, execution: Execution, *, each: bool
) -> tuple[Search, dict[str, Any]]:
    """The most promising neighbours, and what is told of them."""
    pairs, moved, told = candidates(release, about, data, each=each)
    own = execution.own_randomness or not release.takes_rng
    limits = execution.updated({"own_randomness": own})
    at, limited = about.claim.delta, release.within(execution.timeout)
    try:
        found = search_pairs(limited, pairs, delta=at, moved=moved, execution=limits)
    except InputError as error:
        tried = f"no pair of {len(pairs)} is taken; give --pair. The last"
        raise InputError(f"{tried}: {error}") from None
    return found, told | told_of(found)


def _audit_function(
    name: str,
    release: BlackBox,
    pair: AuditPair,
    about: Hypothesis,
    told: Mapping[str, Any],
    execution: Execution,
) -> AuditOutcome:
    from dpaudit.auditing import audit_release, progress_bar

    with progress_bar(name) as progress:
        record = audit_release(
            release,
            pair,
            epsilon=about.claim.epsilon,
            delta=about.claim.delta,
            curve=about.curve,
            execution=execution,
            progress=progress,
        )
    details = {**record.details, **about.details, **told}
    details |= {"target": "command"} if isinstance(release.function, Program) else {}
    details |= {"arguments": {**release.arguments}} if release.arguments else {}
    return AuditOutcome(replace(record, details=details), about.target, name, about.claim)


def _audit_subject(
    name: str,
    settings: Sequence[str],
    pair: AuditPair | None,
    claim: Claim | None,
    delta: float | None,
    execution: Execution,
    *,
    through_run: bool,
    seconds: float | None,
) -> AuditOutcome:
    from dpaudit.auditing import audit_subject, progress_bar

    target = find_target(name, parse_settings(settings))
    assert target.subject is not None
    if claim is None:
        claim = target.claim
        if claim is None:
            raise InputError("--epsilon is missing, and the subject states no claim; give one.")
        claim = claim if delta is None else Claim(claim.epsilon, delta)
    if through_run:
        record = audit_run(target.subject, name, claim, execution, seconds=seconds)
    else:
        with progress_bar(name) as progress:
            record = audit_subject(
                target.subject, pair, claim=claim, execution=execution, progress=progress
            )
    # Other numbers under test are no other claim: the certificate speaks of the subject's own.
    own = target if target.claim is not None else replace(target, claim=claim)
    rehearsal = rehearsed(target.subject, name, seed=execution.seed or 0, timeout=execution.timeout)
    return AuditOutcome(record, own, name, claim, rehearsal)
