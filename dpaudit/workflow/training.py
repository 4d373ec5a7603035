"""Attacking a function that trains, by who was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpaudit.auditing import audit_membership, audit_one_run
from dpaudit.certificate import Claim, SubjectRecord
from dpaudit.errors import InputError
from dpaudit.plan import AddRemove
from dpaudit.project import Execution
from dpaudit.project.targets import load_function, parse_arguments, parse_claim, parse_settings
from dpaudit.workflow.attacking import AuditOutcome
from dpaudit.workflow.functions import Hypothesis, hypothesis, parse_relation

ONE_RUN = "one-run"


@dataclass(frozen=True)
class Tested:
    """What is claimed of a training, in the words of the command line.

    Attributes:
        epsilon: claimed ε.
        delta: claimed δ; 0 where not given.
        claim: a claim as it is written in a plan file, in place of both.
        plan: a plan file, whose whole curve is tested, in place of a claim.
        unit: who is protected.
        relation: what it means that a canary is left out.
    """

    epsilon: float | None = None
    delta: float | None = None
    claim: str | None = None
    plan: str | None = None
    unit: str | None = None
    relation: str | None = None


def audit_training(
    name: str,
    canaries: int,
    tested: Tested,
    execution: Execution,
    *,
    settings: Sequence[str] = (),
    arguments: Sequence[str] = (),
    attack: str | None = None,
    shadows: int | None = None,
    targets: int | None = None,
) -> AuditOutcome:
    """Attack ``train(mask, rng)`` by membership inference.

    It trains and gives scores as for :func:`dpaudit.auditing.audit_one_run`.

    Args:
        name: of the function.
        canaries: how many examples are under attack.
        tested: the claim.
        execution: as the audits in Python take it.
        settings: ``key=value`` texts for what a method is of.
        arguments: ``NAME=JSON`` texts for further parameters of the function.
        attack: a :class:`~dpaudit.auditing.MembershipAttack`; one training without shadow models
            where not given.
        shadows: how many shadow models.
        targets: how many models are attacked.

    Raises:
        InputError: if the function, the claim or a number is wrong, or training fails.
        InconclusiveError: if training ends its process, hangs, or needs too much memory.
    """
    if tested.claim is not None and (tested.epsilon is not None or tested.delta is not None):
        raise InputError("--claim is given with --epsilon or --delta; keep one of them.")
    train, given = load_function(name, parse_settings(settings)), parse_arguments(arguments)
    record = SubjectRecord(name, configuration=parse_settings(settings))
    about = _hypothesis(record, tested)
    options: dict[str, Any] = {
        "epsilon": about.claim.epsilon,
        "delta": about.claim.delta,
        "plan": None if tested.plan is None else about.target.plan,
        "execution": execution,
    }
    called = partial(train, **given) if given else train
    if attack in (None, ONE_RUN):
        if shadows is not None or targets is not None:
            raise InputError("--shadows and --targets are of an --attack with models of its own.")
        found = audit_one_run(called, canaries, **options)
    else:
        numbers = {"shadows": shadows, "targets": targets}
        options |= {name: number for name, number in numbers.items() if number is not None}
        found = audit_membership(called, canaries, attack=attack, **options)
    details = {**about.details, **found.details} | ({"arguments": given} if given else {})
    return AuditOutcome(replace(found, details=details), about.target, name, about.claim)


def _hypothesis(record: SubjectRecord, tested: Tested) -> Hypothesis:
    claim = parse_claim(tested.claim)
    if claim is not None and claim.risk is not None:
        raise InputError(
            f"--claim is {claim}; an audit by canaries tests ε and δ, or the curve of a --plan."
        )
    if tested.epsilon is not None:
        claim = Claim(tested.epsilon, tested.delta or 0.0)
    unit, relation = tested.unit, parse_relation(tested.relation)
    if tested.plan is None:
        unit, relation = unit or "example", relation or AddRemove()
    return hypothesis(record, claim, tested.delta, plan=tested.plan, unit=unit, relation=relation)
