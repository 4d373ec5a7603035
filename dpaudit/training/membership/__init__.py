"""Membership inference: attacks on trained models, with a valid lower bound on ε.

One training with canaries, or shadow models. No attack needs a deep-learning library: a model is
whatever ``train(mask, rng)`` scores its examples by.
"""

from __future__ import annotations

from dpaudit.training.membership.attacks import (
    MembershipAttack,
    audit_membership,
    audit_one_run,
    audit_scores,
)
from dpaudit.training.membership.guessing import Roc
from dpaudit.training.membership.language import LanguageModel, SecretScores, exposure
from dpaudit.training.membership.shadow_scores import (
    lira_offline,
    lira_online,
    logit_confidence,
    rmia_offline,
    rmia_online,
)
from dpaudit.training.membership.shadows import DatasetScores, RangeScores, Train

__all__ = [
    "DatasetScores",
    "LanguageModel",
    "MembershipAttack",
    "RangeScores",
    "Roc",
    "SecretScores",
    "Train",
    "audit_membership",
    "audit_one_run",
    "audit_scores",
    "exposure",
    "lira_offline",
    "lira_online",
    "logit_confidence",
    "rmia_offline",
    "rmia_online",
]
