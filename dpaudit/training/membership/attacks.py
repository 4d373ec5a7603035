"""Membership inference with shadow models."""

from __future__ import annotations

from enum import StrEnum
from typing import Unpack

import numpy as np

from dpaudit.auditing.execution import Execution, ExecutionFields, workers
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Plan
from dpaudit.training.membership.claims import membership_null
from dpaudit.training.membership.guess_audit import GuessAudit
from dpaudit.training.membership.lira import lira_offline, lira_online
from dpaudit.training.membership.rmia import rmia_offline, rmia_online
from dpaudit.training.membership.shadows import (
    NO_LIMIT,
    Role,
    Train,
    attacked,
    balanced_masks,
    random_masks,
    train_models,
)


class MembershipAttack(StrEnum):
    """How the scores of the target model are judged."""

    THRESHOLD = "loss-threshold"
    """By one threshold for all examples (Yeom et al. 2018); no shadow models."""
    LIRA_ONLINE = "lira-online"
    """By the likelihood ratio of shadow models with and without the example."""
    LIRA_OFFLINE = "lira-offline"
    """By the shadow models without the example."""
    RMIA = "rmia"
    """By how much surer it is than shadow models, compared with other examples."""
    RMIA_OFFLINE = "rmia-offline"
    """The same by the shadow models without the example."""


_BY_SHADOWS = {
    MembershipAttack.LIRA_ONLINE: lira_online,
    MembershipAttack.LIRA_OFFLINE: lira_offline,
    MembershipAttack.RMIA: rmia_online,
    MembershipAttack.RMIA_OFFLINE: rmia_offline,
}


def audit_membership(
    train: Train,
    examples: int,
    *,
    attack: MembershipAttack | str = MembershipAttack.LIRA_ONLINE,
    shadows: int = 32,
    targets: int = 1,
    epsilon: float | None = None,
    delta: float = 0.0,
    plan: Plan | None = None,
    guesses: tuple[int, int] | None = None,
    execution: Execution = NO_LIMIT,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack trained models by membership inference, and bound ε by what the attack achieves.

    Each target model is trained on a random half of the examples. The shadow models are trained
    apart from them: a target model that serves as another's shadow would show its own memberships,
    and no bound would hold. The targets together are one run with ``targets * examples`` canaries.

    Args:
        train: as in :func:`~dpaudit.auditing.audit_one_run`. For attacks with shadow models
            scores should be :func:`logit_confidence` of losses: nearly normal over models.
        examples: n, how many are under attack.
        attack: how scores are judged.
        shadows: k, shadow models, at least 4, for attacks that use them.
        targets: t, target models.
        epsilon: see :func:`~dpaudit.auditing.audit_scores`, as ``delta`` to ``guesses``.
        delta: claimed δ.
        plan: what the training declares.
        guesses: fixed numbers of guesses, of all ``targets * examples``.
        execution: confidence, the seed of the whole audit, where models are trained, and what
            one training may take: by default any time.
        fields: fields of ``execution`` to replace, such as ``workers=4, seed=1``.

    Raises:
        InputError: if training fails or gives anything but one number for each example, or as
            :func:`~dpaudit.auditing.audit_scores`.
        InconclusiveError: if training ends its process, hangs, or needs too much memory.

    Example:
        >>> def train(mask, rng):
        ...     return 2.0 * mask + rng.normal(size=mask.size)
        >>> record = audit_membership(train, 400, shadows=8, epsilon=0.5, delta=1e-5, seed=0)
        >>> record.refuted, 0.85 < record.details["auc"] < 0.97
        (True, True)
    """
    execution = execution.updated(fields).only(
        "confidence", "seed", "workers", "dask", "timeout", "memory"
    )
    null = membership_null(epsilon, delta, plan)
    attack = validate.member(MembershipAttack, attack=attack)
    validate.integer_at_least(2, examples=examples)
    validate.integer_at_least(1, targets=targets)
    audit = GuessAudit(null, targets * examples, guesses, execution)
    seed, further = audit.seed, {"attack": str(attack), "targets": targets}
    judge = _BY_SHADOWS.get(attack)
    if judge is not None:
        further["shadows"] = validate.integer_at_least(4, shadows=shadows)
    masks = random_masks(targets, examples, seed, Role.TARGET_MASKS)
    shadow_masks = balanced_masks(shadows if judge else 0, examples, seed)
    with workers(execution) as mapped:
        shadow_scores = _finite(
            train_models(train, shadow_masks, seed, Role.SHADOWS, mapped, execution)
        )
        scores = train_models(train, masks, seed, Role.TARGETS, mapped, execution)
    if judge is not None:
        scores = judge(_finite(scores), shadow_scores, shadow_masks)
    method = f"membership inference{attacked(train)}, {attack}"
    return audit.record(scores.ravel(), masks.ravel(), method, targets, further)


def _finite(scores: Floats) -> Floats:
    if not np.isfinite(scores).all():
        raise InputError(
            "train returned an infinite score; attacks with shadow models need finite ones."
        )
    return scores
