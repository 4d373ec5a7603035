"""The strongest attack on the joint algorithms: the farthest pair, by its likelihood ratio."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit import AuditPair, AuditRecord
from dpaudit.auditing import LinearScore, audit_release
from private_bo.joint import JointGPUCB, LocalJointGPUCB

__all__ = ["Joint", "farthest", "likelihood_ratio_audit"]

Joint = JointGPUCB | LocalJointGPUCB
METHOD = "exact likelihood ratio of the farthest pair"


def farthest(subject: Joint) -> AuditPair:
    """The pair whose contributions are farthest apart: the noise is isotropic on them."""
    return max(_pairs(subject), key=lambda pair: float(np.linalg.norm(_move(subject, pair))))


def likelihood_ratio_audit(
    subject: Joint, *, runs: int, confidence: float, seed: int = 0
) -> AuditRecord:
    """Test the claim with the best score there is; only the threshold is chosen on a pilot.

    Args:
        subject: under attack, at its own claim.
        runs: on each side.
        confidence: of the verdict and of the bound.
        seed: of the experiment.
    """
    pair = farthest(subject)
    record = audit_release(
        subject.audit_release,
        pair,
        epsilon=subject.epsilon,
        delta=subject.delta,
        runs=runs,
        confidence=confidence,
        seed=seed,
        # For Gaussian noise that is isotropic on the contributions, the log-likelihood ratio is
        # this inner product and a constant.
        score=LinearScore(tuple(_move(subject, pair).ravel().tolist())),
        learn=False,
    )
    facts = {**record.details, "null": "(ε, δ) alone", "why_this_pair": pair.why}
    return replace(record, method=METHOD, details=facts)


def _pairs(subject: Joint) -> Iterator[AuditPair]:
    """The subject's own, and one that moves y² the most: that entry is the paper's alone."""
    yield from subject.audit_pairs()
    low, high = subject.reward_range
    yield AuditPair(
        {"features": [1.0, 0.0], "reward": high},
        {"features": [0.0, 1.0], "reward": min(high, max(low, 0.0))},
        "orthogonal arms with the largest and the smallest square of a reward",
    )


def _move(subject: Joint, pair: AuditPair) -> NDArray[np.float64]:
    """By how much the noiseless contribution of one user differs."""
    return subject.contribution(pair.x) - subject.contribution(pair.x_prime)
