"""Attacking a function that trains, by who was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.auditing import progress_bar
from dpaudit.base import toml_tables
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim, SubjectRecord
from dpaudit.plan import AddRemove
from dpaudit.project import Execution
from dpaudit.project.targets import load_function, parse_arguments, parse_claim, parse_settings
from dpaudit.training.membership import MembershipAttack, audit_membership, audit_one_run
from dpaudit.workflow.attacking import AuditOutcome
from dpaudit.workflow.functions import Hypothesis, hypothesis, parse_relation

ONE_RUN = "one-run"


def audit_training(
    name: str,
    canaries: int,
    execution: Execution,
    *,
    attack: str | None = None,
    models: Mapping[str, int | None] | None = None,
    settings: Sequence[str] = (),
    arguments: Sequence[str] = (),
    plan: str | None = None,
    **tested: Any,
) -> AuditOutcome:
    """Attack ``train(mask, rng)`` by membership inference.

    It trains and gives scores as for :func:`dpaudit.auditing.audit_one_run`.

    Args:
        name: of the function.
        canaries: how many examples are under attack.
        execution: as the audits in Python take it.
        attack: a :class:`~dpaudit.auditing.MembershipAttack`; one training without shadow models
            where not given.
        models: how many ``shadows`` and ``targets`` there are, for such an attack.
        settings: ``key=value`` texts for what a method is of.
        arguments: ``NAME=JSON`` texts for further parameters of the function.
        plan: a plan file, whose whole curve is tested in place of a claim.
        tested: ``epsilon`` and ``delta``, or ``claim``, and ``unit`` and ``relation``, as they are
            typed.

    Raises:
        InputError: if the function, the claim or a number is wrong, or training fails.
        InconclusiveError: if training ends its process, hangs, or needs too much memory.
    """
    train, given = load_function(name, parse_settings(settings)), parse_arguments(arguments)
    record = SubjectRecord(name, configuration=parse_settings(settings))
    about = _hypothesis(record, plan, **tested)
    options: dict[str, Any] = {"epsilon": about.claim.epsilon, "delta": about.claim.delta}
    options |= {"plan": None if plan is None else about.target.plan, "execution": execution}
    numbers: dict[str, Any] = {
        key: number for key, number in (models or {}).items() if number is not None
    }
    toml_tables.chosen((ONE_RUN, *MembershipAttack), attack=attack or ONE_RUN)
    called = partial(train, **given) if given else train
    if attack not in (None, ONE_RUN):
        with progress_bar("trainings") as progress:
            options["execution"] = execution.updated({"progress": progress})
            found = audit_membership(called, canaries, attack=attack, **options, **numbers)
    elif numbers:
        raise InputError("--shadows and --targets are of an --attack with models of its own.")
    else:
        found = audit_one_run(called, canaries, **options)
    details = {**about.details, **found.details} | ({"arguments": given} if given else {})
    return AuditOutcome(replace(found, details=details), about.target, name, about.claim)


def _hypothesis(
    record: SubjectRecord,
    plan: str | None,
    epsilon: float | None = None,
    delta: float | None = None,
    claim: str | None = None,
    unit: str | None = None,
    relation: str | None = None,
) -> Hypothesis:
    if claim is not None and (epsilon is not None or delta is not None):
        raise InputError("--claim is given with --epsilon or --delta; keep one of them.")
    stated = parse_claim(claim) if epsilon is None else Claim(epsilon, delta or 0.0)
    if stated is not None and stated.risk is not None:
        raise InputError(
            f"--claim is {stated}; an audit by canaries tests ε and δ, or the curve of a --plan."
        )
    near = parse_relation(relation)
    if plan is None:
        unit, near = unit or "example", near or AddRemove()
    return hypothesis(record, stated, delta, plan=plan, unit=unit, relation=near)
