"""Membership audits of trained models, in one training or with shadow models."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import validate
from dpaudit.auditing.evidence.one_run_families import CurveFamily, gaussian_family
from dpaudit.auditing.membership.claims import Tested, require_family, tested
from dpaudit.auditing.membership.guessing import (
    Flags,
    Floats,
    OneRunEvidence,
    Rule,
    default_rules,
    guess,
    require_fair_coins,
)
from dpaudit.auditing.membership.lira import lira_offline, lira_online
from dpaudit.auditing.membership.roc import Roc, require_both_kinds
from dpaudit.auditing.membership.shadows import (
    Role,
    Train,
    balanced_masks,
    generator,
    random_masks,
    train_models,
)
from dpaudit.certificate import AuditRecord
from dpaudit.errors import InputError
from dpaudit.plan import Plan

__all__ = ["MembershipAttack", "audit_membership", "audit_one_run", "audit_scores"]


class MembershipAttack(StrEnum):
    """How the scores of the target model are judged."""

    THRESHOLD = "loss-threshold"
    """By one threshold for all examples (Yeom et al. 2018); no shadow models."""
    LIRA_ONLINE = "lira-online"
    """By the likelihood ratio of shadow models with and without the example."""
    LIRA_OFFLINE = "lira-offline"
    """By the shadow models without the example."""


_LIRA = {MembershipAttack.LIRA_ONLINE: lira_online, MembershipAttack.LIRA_OFFLINE: lira_offline}


def audit_scores(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    plan: Plan | None = None,
    confidence: float = 0.95,
    guesses: tuple[int, int] | None = None,
    family: CurveFamily | None = None,
    seed: int | None = None,
    method: str = "one-run audit of given scores",
) -> AuditRecord:
    """Audit one training run from the scores of its canaries.

    Every canary must have been included independently with probability 1/2, and only the training
    may have told its membership to whoever made the scores. A correct claim is refuted with
    probability at most 1 − ``confidence`` (Steinke, Nasr and Jagielski 2023; with a plan, whose
    whole curve is tested, Mahloujifar, Melis and Chaudhuri 2024), and the lower bound on ε, which
    supposes nothing else, holds at that confidence.

    Args:
        scores: large where the model looks as if trained on the canary, shape (m,).
        members: whether each canary was included, shape (m,).
        epsilon: claimed ε; with a plan, what it proves where not given. A claim that is tighter
            than the plan is tested together with the plan's curve, a looser one alone.
        delta: claimed δ.
        plan: what the training declares. To leave a canary out must be its neighbouring relation:
            absent (add-remove), zeroed (zero-out), or replaced by another record (replace-one).
        confidence: of the bound and of the verdict.
        guesses: how many of the largest scores are guessed members and how many of the smallest
            none, fixed before the scores were seen; by default several numbers are tried, at a
            share of the error rate each.
        family: curves within which ``details["family"]`` bounds ε more sharply, at its stated
            assumption; Gaussian ones where not given.
        seed: orders equal scores; a fresh one is drawn (and recorded) where not given.
        method: text for the record.

    Raises:
        InputError: if lengths differ, a score is NaN, all or none are members, memberships are no
            fair coins, canaries are too few to show anything, or there is no claim.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = rng.random(500) < 0.5
        >>> leaky = rng.normal(3.0 * members)
        >>> record = audit_scores(leaky, members, epsilon=1.0, delta=1e-5, seed=1)
        >>> record.refuted, record.epsilon_lower > 2
        (True, True)
    """
    null = tested(epsilon, delta, plan)
    values, flags = require_both_kinds(scores, members)
    return _Audit(null, _rules(guesses, values.size), confidence, family, _seed(seed)).record(
        values, flags, method, runs=1, further={}
    )


def audit_one_run(
    train: Train,
    canaries: int,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    plan: Plan | None = None,
    confidence: float = 0.95,
    guesses: tuple[int, int] | None = None,
    family: CurveFamily | None = None,
    seed: int | None = None,
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
        confidence: of the bound and of the verdict.
        guesses: fixed numbers of guesses.
        family: curves for a sharper bound, at an assumption.
        seed: of the whole audit.

    Raises:
        InputError: if training fails or gives anything but one number for each canary, or as
            :func:`audit_scores`.

    Example:
        A model that remembers its training data:

        >>> def train(mask, rng):
        ...     return mask + rng.normal(size=mask.size, scale=0.1)
        >>> record = audit_one_run(train, 500, epsilon=3.0, delta=1e-5, seed=0)
        >>> record.refuted, record.details["auc"]
        (True, 1.0)
    """
    null = tested(epsilon, delta, plan)
    size = validate.integer_at_least(2, canaries=canaries)
    seed = _seed(seed)
    audit = _Audit(null, _rules(guesses, size), confidence, family, seed)
    masks = random_masks(1, size, seed, Role.TARGET_MASKS)
    scores = train_models(train, masks, seed, Role.TARGETS)
    return audit.record(scores[0], masks[0], "one-run audit with canaries", runs=1, further={})


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
    confidence: float = 0.95,
    guesses: tuple[int, int] | None = None,
    family: CurveFamily | None = None,
    seed: int | None = None,
    workers: int = 1,
) -> AuditRecord:
    """Attack trained models by membership inference, and bound ε by what the attack achieves.

    Each target model is trained on a random half of the examples. The shadow models are trained
    apart from them: a target model that serves as another's shadow would show its own memberships,
    and no bound would hold. The targets together are one run with ``targets * examples`` canaries.

    Args:
        train: as in :func:`audit_one_run`. For the likelihood-ratio attacks scores should be nearly
            normal over models, such as :func:`logit_confidence` of the losses.
        examples: n, how many are under attack.
        attack: how scores are judged.
        shadows: k, shadow models for a likelihood-ratio attack, at least 4.
        targets: t, target models.
        epsilon: see :func:`audit_scores`, as ``delta`` to ``seed``.
        delta: claimed δ.
        plan: what the training declares.
        confidence: of the bound and of the verdict.
        guesses: fixed numbers of guesses, of all ``targets * examples``.
        family: curves for a sharper bound, at an assumption.
        seed: of the whole audit.
        workers: worker processes; the result does not depend on them.

    Raises:
        InputError: if training fails or gives anything but one number for each example, or as
            :func:`audit_scores`.

    Example:
        >>> def train(mask, rng):
        ...     return 2.0 * mask + rng.normal(size=mask.size)
        >>> record = audit_membership(train, 400, shadows=8, epsilon=0.5, delta=1e-5, seed=0)
        >>> record.refuted, 0.85 < record.details["auc"] < 0.97
        (True, True)
    """
    null = tested(epsilon, delta, plan)
    attack = validate.member(MembershipAttack, attack=attack)
    validate.integer_at_least(2, examples=examples)
    validate.integer_at_least(1, targets=targets)
    validate.integer_at_least(1, workers=workers)
    seed = _seed(seed)
    audit = _Audit(null, _rules(guesses, targets * examples), confidence, family, seed)
    masks = random_masks(targets, examples, seed, Role.TARGET_MASKS)
    further: dict[str, Any] = {"attack": str(attack), "targets": targets}
    if attack is not MembershipAttack.THRESHOLD:
        validate.integer_at_least(4, shadows=shadows)
        further["shadows"] = shadows
        shadow_masks = balanced_masks(shadows, examples, seed)
        shadow_scores = _finite(train_models(train, shadow_masks, seed, Role.SHADOWS, workers))
    scores = train_models(train, masks, seed, Role.TARGETS, workers)
    if attack is not MembershipAttack.THRESHOLD:
        scores = _LIRA[attack](_finite(scores), shadow_scores, shadow_masks)
    return audit.record(
        scores.ravel(), masks.ravel(), f"membership inference, {attack}", targets, further
    )


def _finite(scores: Floats) -> Floats:
    if not np.isfinite(scores).all():
        raise InputError(
            "train returned an infinite score; a likelihood-ratio attack needs finite ones."
        )
    return scores


def _seed(seed: int | None) -> int:
    return secrets.randbits(48) if seed is None else validate.integer_at_least(0, seed=seed)


def _rules(guesses: tuple[int, int] | None, canaries: int) -> tuple[Rule, ...]:
    if guesses is None:
        return default_rules(canaries)
    if not isinstance(guesses, Sequence) or len(guesses) != 2:
        raise InputError(f"guesses is {guesses!r}; it must be two numbers, (members, others).")
    rule = Rule(*guesses)
    if rule.members + rule.others > canaries:
        raise InputError(f"guesses is {tuple(guesses)}; there are only {canaries} canaries.")
    return (rule,)


class _Audit:
    """What is decided before anything is trained."""

    def __init__(
        self,
        null: Tested,
        rules: tuple[Rule, ...],
        confidence: float,
        family: CurveFamily | None,
        seed: int,
    ) -> None:
        self._null = null
        self._rules = rules
        self._confidence = validate.open_fraction(confidence=confidence)
        self._family = gaussian_family() if family is None else require_family(family)
        self._seed = seed
        share = (1.0 - self._confidence) / len(rules)
        needed = int(np.ceil(-np.log2(share)))
        most = max(rule.members + rule.others for rule in rules)
        if most < needed:
            raise InputError(
                f"there are {most} guesses; even if all were right, {needed} are needed at "
                f"{self._confidence:g} confidence, so use more canaries."
            )

    def record(
        self, scores: Floats, members: Flags, method: str, runs: int, further: dict[str, Any]
    ) -> AuditRecord:
        """Guess, and weigh what the guesses show."""
        values, flags = require_both_kinds(scores, members)
        require_fair_coins(flags)
        counted = guess(values, flags, self._rules, generator(self._seed, Role.TIES))
        claim, confidence = self._null.claim, self._confidence
        evidence = OneRunEvidence(tuple(counted), claim, self._null.least, confidence)
        p_value, best = evidence.p_value()
        lower, chosen = evidence.lower_bound()
        refuted = p_value <= 1.0 - confidence
        shown = best if refuted else chosen
        details: dict[str, Any] = {
            "test": "one-run audit",
            "null": self._null.words,
            "canaries": values.size,
            "guesses": shown.made,
            "correct": shown.correct,
            "rules_tried": len(counted),
            "p_value": p_value,
            **further,
        }
        if claim.delta > 0:
            details["family"] = evidence.within(self._family)
        return AuditRecord(
            refuted=refuted,
            method=method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            # Beside a curve (ε, δ) has a share of the error: at that, no more than this is shown.
            epsilon_lower=lower if refuted else min(lower, claim.epsilon),
            confidence=confidence,
            runs=runs,
            event=f"{shown.rule.describe()}: {shown.correct} of {shown.made} guesses right",
            seed=self._seed,
            pair={"x": "an example is trained on", "x_prime": "it is left out"},
            power="" if refuted else _power(evidence),
            details=details | Roc.of(values, flags).details(),
        )


def _power(evidence: OneRunEvidence) -> str:
    shown, needed = evidence.needed()
    if needed is None:
        return (
            f"Even {shown.made} right guesses of {shown.made} would not have refuted "
            f"{evidence.claim}; more canaries or fewer numbers of guesses are needed."
        )
    return (
        f"{shown.made} guesses on {shown.canaries} canaries had {shown.correct} right; "
        f"{needed} would have refuted {evidence.claim}."
    )
