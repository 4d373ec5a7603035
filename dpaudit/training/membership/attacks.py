"""Membership audits: of one training run, of given scores, and of models beside shadow models.

Python and ``dpaudit audit --canaries`` call them. All that decides how scores are judged, but for
the scores, is fixed before anything is trained.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.execution import DEFAULTS, Execution, ExecutionFields, workers
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Plan
from dpaudit.training.membership.guessing import GuessAudit, membership_null, require_both_kinds
from dpaudit.training.membership.language import SecretScores
from dpaudit.training.membership.shadow_scores import (
    lira_offline,
    lira_online,
    rmia_offline,
    rmia_online,
)
from dpaudit.training.membership.shadows import (
    NO_LIMIT,
    Role,
    Train,
    balanced_masks,
    canary_words,
    random_masks,
    train_models,
)


def audit_scores(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    plan: Plan | None = None,
    guesses: tuple[int, int] | None = None,
    method: str = "one-run audit of given scores",
    execution: Execution = DEFAULTS,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Audit one training run from the scores of its canaries.

    Every canary must have been included independently with probability 1/2, and only the training
    may have told its membership to whoever made the scores. A correct claim is refuted with
    probability at most 1 − ``confidence`` (Steinke, Nasr and Jagielski 2023; with a plan, whose
    whole curve is tested, Mahloujifar, Melis and Chaudhuri 2024), and the lower bound on ε, which
    supposes nothing else, holds at that confidence. ``details["family"]`` bounds ε more sharply if
    the privacy curve is a Gaussian one, and ``details["if_independent"]`` if, besides, no canary
    acts on another. Neither refutes anything.

    Args:
        scores: large where the model looks as if trained on the canary, shape (m,).
        members: whether each canary was included, shape (m,).
        epsilon: claimed ε; with a plan, what it proves where not given. A claim that is tighter
            than the plan is tested together with the plan's curve, a looser one alone.
        delta: claimed δ.
        plan: what the training declares. To leave a canary out must be its neighbouring relation:
            absent (add-remove), zeroed (zero-out), or replaced by another record (replace-one).
        guesses: how many of the largest scores are guessed members and how many of the smallest
            none, fixed before the scores were seen; by default many numbers are tried at once, at
            hardly a price (:mod:`~dpaudit.auditing.evidence.one_run`).
        method: text for the record.
        execution: confidence of the bound and of the verdict, and the seed that orders equal
            scores.
        fields: fields of ``execution`` to replace, such as ``seed=1``.

    Raises:
        InputError: if lengths differ, a score is NaN, all or none are members, memberships are no
            fair coins, canaries are too few to show anything, or there is no claim.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> members = rng.random(500) < 0.5
        >>> leaky = rng.normal(3.0 * members)
        >>> record = audit_scores(leaky, members, epsilon=1.0, delta=1e-5, seed=1)
        >>> record.refuted, record.epsilon_lower > 2
        (True, True)
    """
    execution = execution.updated(fields).only("confidence", "seed")
    null = membership_null(epsilon, delta, plan)
    values, flags = require_both_kinds(scores, members)
    audit = GuessAudit(null, values.size, guesses, execution)
    return audit.record(values, flags, method, runs=1, further={})


def audit_one_run(
    train: Train,
    canaries: int,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    plan: Plan | None = None,
    guesses: tuple[int, int] | None = None,
    execution: Execution = NO_LIMIT,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Audit a training algorithm by training once, with a random half of the canaries.

    Args:
        train: ``train(mask, rng)`` trains on the data with the canaries that ``mask`` (shape
            (canaries,)) includes, and gives one score for each canary, included or not: large where
            the model looks as if trained on it, such as minus its loss.
        canaries: m, such as mislabelled or random examples.
        epsilon: see :func:`audit_scores`, as all that follow.
        delta: claimed δ.
        plan: what the training declares.
        guesses: fixed numbers of guesses.
        execution: confidence, the seed of the whole audit, and what training may take: by default
            any time.
        fields: fields of ``execution`` to replace.

    Raises:
        InputError: if training fails or gives anything but one number for each canary, or as
            :func:`audit_scores`.
        InconclusiveError: if training ends its process, hangs, or needs too much memory.

    Example:
        A model that remembers its training data:

        >>> def train(mask, rng):
        ...     return mask + rng.normal(size=mask.size, scale=0.1)
        >>> record = audit_one_run(train, 500, epsilon=3.0, delta=1e-5, seed=0)
        >>> record.refuted, record.details["auc"]
        (True, 1.0)
    """
    execution = execution.updated(fields).only("confidence", "seed", "timeout", "memory")
    null = membership_null(epsilon, delta, plan)
    size = validate.integer_at_least(2, canaries=canaries)
    audit = GuessAudit(null, size, guesses, execution)
    masks = random_masks(1, size, audit.seed, Role.TARGET_MASKS)
    told = train_models(train, masks, audit.seed, Role.TARGETS, execution=execution)
    scores, *found = told[0].T
    method = f"one-run audit with canaries{canary_words(train)}"
    further = train.details(masks[0], found) if isinstance(train, SecretScores) else {}
    return audit.record(scores, masks[0], method, runs=1, further=dict(further))


class MembershipAttack(StrEnum):
    """The way in which scores of the target model are judged."""

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
        told = [
            train_models(train, each, seed, role, mapped, execution)[..., 0]
            for each, role in ((shadow_masks, Role.SHADOWS), (masks, Role.TARGETS))
        ]
    shadow_scores, scores = _finite(told[0]), told[1]
    if judge is not None:
        scores = judge(_finite(scores), shadow_scores, shadow_masks)
    method = f"membership inference{canary_words(train)}, {attack}"
    return audit.record(scores.ravel(), masks.ravel(), method, targets, further)


def _finite(scores: Floats) -> Floats:
    if not np.isfinite(scores).all():
        raise InputError(
            "train returned an infinite score; attacks with shadow models need finite ones."
        )
    return scores
