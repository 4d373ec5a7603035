"""Auditing: attacks on running code, as experiments with a stated error rate.

>>> import numpy as np
>>> from dpaudit import AuditPair, Laplace
>>> half = Laplace(scale=0.5)
>>> record = audit_release(half.release_many, AuditPair(0.0, 1.0), epsilon=1.0, runs=2000, seed=1)
>>> record.refuted, 1.5 < record.epsilon_lower < 2
(True, True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "dpaudit.auditing.blackbox": ("BlackBox",),
    "dpaudit.auditing.engine": ("audit_release",),
    "dpaudit.auditing.experiment": ("Release",),
    "dpaudit.auditing.learned": ("LearnedScore",),
    "dpaudit.auditing.membership": (
        "GradientCanary",
        "MembershipAttack",
        "audit_gradient_canary",
        "audit_membership",
        "audit_one_run",
        "audit_scores",
    ),
    "dpaudit.auditing.neighbours": ("candidate_pairs", "require_neighbours", "search_pairs"),
    "dpaudit.auditing.progress": ("progress_bar",),
    "dpaudit.auditing.scores": (
        "AtomScore",
        "Identity",
        "LinearScore",
        "Score",
        "TranscriptScore",
        "WhiteBox",
    ),
    "dpaudit.auditing.subjects": ("audit_subject",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AtomScore",
    "BlackBox",
    "GradientCanary",
    "Identity",
    "LearnedScore",
    "LinearScore",
    "MembershipAttack",
    "Release",
    "Score",
    "TranscriptScore",
    "WhiteBox",
    "audit_gradient_canary",
    "audit_membership",
    "audit_one_run",
    "audit_release",
    "audit_scores",
    "audit_subject",
    "candidate_pairs",
    "progress_bar",
    "require_neighbours",
    "search_pairs",
]

if TYPE_CHECKING:
    from dpaudit.auditing.blackbox import BlackBox
    from dpaudit.auditing.engine import audit_release
    from dpaudit.auditing.experiment import Release
    from dpaudit.auditing.learned import LearnedScore
    from dpaudit.auditing.membership import (
        GradientCanary,
        MembershipAttack,
        audit_gradient_canary,
        audit_membership,
        audit_one_run,
        audit_scores,
    )
    from dpaudit.auditing.neighbours import candidate_pairs, require_neighbours, search_pairs
    from dpaudit.auditing.progress import progress_bar
    from dpaudit.auditing.scores import (
        AtomScore,
        Identity,
        LinearScore,
        Score,
        TranscriptScore,
        WhiteBox,
    )
    from dpaudit.auditing.subjects import audit_subject


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'dpaudit.auditing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
