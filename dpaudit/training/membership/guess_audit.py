"""Weighing guesses about who was trained on: what is fixed before, and the record after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.auditing.evidence.one_run_families import gaussian_family
from dpaudit.auditing.evidence.types import Flags
from dpaudit.auditing.execution import Execution
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms.pairs import Floats
from dpaudit.training.membership.claims import MembershipNull
from dpaudit.training.membership.guessing import (
    Design,
    OneRunEvidence,
    Rule,
    guess,
    require_fair_coins,
)
from dpaudit.training.membership.roc import Roc, require_both_kinds
from dpaudit.training.membership.shadows import Role, generator


class GuessAudit:
    """What is decided before anything is trained.

    Args:
        null: what is tested.
        canaries: m, all that may be guessed.
        guesses: how many are guessed members and how many none; many numbers where not given.
        execution: its confidence and its seed are used.

    Attributes:
        seed: of the whole audit.

    Raises:
        InputError: if the guesses are no two numbers, more than the canaries, or too few to show
            anything.
    """

    def __init__(
        self,
        null: MembershipNull,
        canaries: int,
        guesses: tuple[int, int] | None,
        execution: Execution,
    ) -> None:
        self._null = null
        self._design = design = _design(guesses, canaries, null.claim.delta)
        self._confidence = execution.confidence
        self.seed = execution.known_seed()
        share = (1.0 - self._confidence) * design.series[0].share
        needed = int(np.ceil(-np.log2(share)))
        most = max(rule.made for rule in design.rules)
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
        correct = guess(values, flags, self._design.rules, generator(self.seed, Role.TIES))
        claim, confidence = self._null.claim, self._confidence
        evidence = OneRunEvidence(self._design, correct, claim, self._null.least, confidence)
        p_value, best = evidence.p_value()
        lower, chosen = evidence.lower_bound()
        refuted = p_value <= 1.0 - confidence
        shown = best if refuted else chosen
        details: dict[str, Any] = {
            "test": "one-run audit",
            "null": self._null.words,
            "canaries": values.size,
            "guesses": shown.made,
            "correct": correct[shown],
            "rules_tried": len(correct),
            "p_value": p_value,
            **further,
        }
        if claim.delta > 0:
            details["family"] = evidence.within(gaussian_family())
            details["if_independent"] = evidence.independent(gaussian_family())
        return AuditRecord(
            refuted=refuted,
            method=method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            # Beside a curve (ε, δ) has a share of the error: at that, no more than this is shown.
            epsilon_lower=lower if refuted else min(lower, claim.epsilon),
            confidence=confidence,
            runs=runs,
            event=f"{shown.describe()}: {correct[shown]} of {shown.made} guesses right",
            seed=self.seed,
            pair={"x": "an example is trained on", "x_prime": "it is left out"},
            power="" if refuted else _power(evidence),
            details=details | Roc.of(values, flags).details(),
        )


def _design(guesses: tuple[int, int] | None, canaries: int, delta: float) -> Design:
    if guesses is None:
        return Design.default(canaries, delta)
    if not isinstance(guesses, Sequence) or len(guesses) != 2:
        raise InputError(f"guesses is {guesses!r}; it must be two numbers, (members, others).")
    rule = Rule(*guesses)
    if rule.made > canaries:
        raise InputError(f"guesses is {tuple(guesses)}; there are only {canaries} canaries.")
    return Design.fixed(canaries, rule)


def _power(evidence: OneRunEvidence) -> str:
    shown, needed = evidence.needed()
    if needed is None:
        return (
            f"Even {shown.made} right guesses of {shown.made} would not have refuted "
            f"{evidence.claim}; more canaries are needed."
        )
    return (
        f"{shown.made} guesses on {evidence.design.canaries} canaries had "
        f"{evidence.correct[shown]} right; {needed} would have refuted {evidence.claim}."
    )
