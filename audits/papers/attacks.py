"""The attacks that were made for one algorithm, and are stronger there than the general one.

They know which part of a release tells the most, and on which pair of neighbours. ``audits.papers``
puts what they show into the certificate beside the audits that ``dpaudit check`` makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from audits.federated import game
from audits.outsourced.attacks import attack
from audits.outsourced.counterexample import attack_curator
from dpaudit import AuditPair, AuditRecord
from dpaudit.auditing import LinearScore
from dpaudit.base.errors import InputError
from dpaudit.project import Subject
from dpaudit.project.targets import configuration
from private_bo.federated import DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.outsourced import CertifiedCurator, Curator

CONFIDENCE = 1 - 1e-6
"""Of every verdict: these reports are made anew again and again, and must not cry wolf."""

PROBLEM = "grid"
"""Private rows of the paper's synthetic experiment, on which the curators are attacked."""


@singledispatch
def attacks(subject: Subject) -> tuple[AuditRecord, ...]:
    """Every attack that knows this algorithm; none where the general one knows as much.

    The general attack is the likelihood ratio of a mechanism where the plan has one and releases
    its output as it is; there nothing stronger exists.

    Args:
        subject: under attack, at its own claim or, for federated algorithms, at the certified ε.
    """
    return ()


@attacks.register(Curator)
@attacks.register(CertifiedCurator)
def _curators(subject: Curator | CertifiedCurator) -> tuple[AuditRecord, ...]:
    """Column spaces, canary rows and, for the paper's, the branch; their error rate is 1e-6."""
    found = attack_curator(type(subject).__name__, PROBLEM, subject.epsilon)
    if found.subject.configuration != configuration(subject):
        raise InputError(
            f"subject is {subject!r:.200}; it must have the dimensions of the {PROBLEM}, and "
            "else the defaults."
        )
    return found.audits


@attacks.register
def _joint(subject: JointGPUCB) -> tuple[AuditRecord, ...]:
    return (likelihood_ratio_audit(subject, runs=20_000, confidence=CONFIDENCE),)


@attacks.register
def _local_joint(subject: LocalJointGPUCB) -> tuple[AuditRecord, ...]:
    # Large ε at large δ: the event that shows it has a small probability.
    return (likelihood_ratio_audit(subject, runs=16_000_000, confidence=CONFIDENCE),)


@attacks.register
def _federated(subject: DPFTSDE) -> tuple[AuditRecord, ...]:
    """Membership inference over the whole run, by another agent that sees every broadcast."""
    return (game.audit(subject, runs=100_000, confidence=CONFIDENCE),)


# -- joint algorithms: the farthest pair, by its likelihood ratio ----------------------------------

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
    # For Gaussian noise that is isotropic on the contributions, the log-likelihood ratio is this
    # inner product and a constant.
    score = LinearScore(tuple(_move(subject, pair).ravel().tolist()))
    record = attack(subject, pair, runs=runs, confidence=confidence, seed=seed, score=score)
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
