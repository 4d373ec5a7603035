"""Membership audits of one training run: with canaries of its own, or from given scores."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from dpaudit.auditing.execution import DEFAULTS, Execution, ExecutionFields
from dpaudit.base import validate
from dpaudit.certificate import AuditRecord
from dpaudit.plan import Plan
from dpaudit.training.membership.claims import membership_null
from dpaudit.training.membership.guess_audit import GuessAudit
from dpaudit.training.membership.roc import require_both_kinds
from dpaudit.training.membership.shadows import (
    NO_LIMIT,
    Role,
    Train,
    attacked,
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
            hardly a price (:mod:`~dpaudit.auditing.evidence.one_run_walk`).
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
    scores = train_models(train, masks, audit.seed, Role.TARGETS, execution=execution)
    method = f"one-run audit with canaries{attacked(train)}"
    return audit.record(scores[0], masks[0], method, runs=1, further={})
