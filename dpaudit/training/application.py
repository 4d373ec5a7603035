"""What this application offers: attacks on members, by ``dpaudit audit --canaries``.

The kernel's ``audit`` command asks for it by the name ``members``. Nothing heavy is imported before
it is asked, as every command loads this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dpaudit.base.applications import offer
from dpaudit.base.optional_import import require

if TYPE_CHECKING:
    from dpaudit.project.audit_request import AuditRequest
    from dpaudit.sealed.operations import Operations
    from dpaudit.workflow.attacking import AuditOutcome


def audit_training(request: AuditRequest) -> AuditOutcome:
    """Attack ``train(mask, rng)`` by membership inference.

    Raises:
        InputError: if there is no such function, or its training fails.
        InconclusiveError: if it ends its process, hangs, or needs too much memory.
    """
    from dpaudit.base import toml_tables
    from dpaudit.plan import AddRemove
    from dpaudit.project.audit_request import ONE_RUN
    from dpaudit.project.targets import load_function
    from dpaudit.training.membership import MembershipAttack, audit_membership, audit_one_run
    from dpaudit.workflow.attacking import attack_progress, hypothesis, outcome_of

    canaries = request.canaries or 0
    train = load_function(request.target, request.settings)
    if request.plan is None:
        unit, near = request.unit or "example", request.relation or AddRemove()
        request = replace(request, unit=unit, relation=near)
    about = hypothesis(request)
    attack = toml_tables.chosen((ONE_RUN, *MembershipAttack), attack=request.attack or ONE_RUN)
    models = {"shadows": request.shadows, "targets": request.targets}
    options: dict[str, Any] = {key: each for key, each in models.items() if each is not None}
    options |= {"epsilon": about.claim.epsilon, "delta": about.claim.delta}
    options |= {"plan": None if request.plan is None else about.target.plan}
    called = partial(train, **request.arguments) if request.arguments else train
    if attack == ONE_RUN:
        found = audit_one_run(called, canaries, execution=request.execution, **options)
    else:
        with attack_progress(request, "trainings") as execution:
            found = audit_membership(
                called, canaries, attack=attack, execution=execution, **options
            )
    return outcome_of(request, about, found, {**about.details, **found.details})


def _open_training(operations: Operations, request: Mapping[str, Any]) -> int:
    """Begin a training in a sealed run."""
    require("opacus", "torch", what="a training in a sealed run")
    from dpaudit.training.gradients.sealed_operations import open_training

    return open_training(operations, request)


def _next_gradients(operations: Operations, request: Mapping[str, Any]) -> Any:
    """Take one step of a training in a sealed run."""
    from dpaudit.training.gradients.sealed_operations import next_gradients

    return next_gradients(operations, request)


offer("audit", "members", audit_training)
offer("sealed", "training", _open_training)
offer("sealed", "gradients", _next_gradients)
