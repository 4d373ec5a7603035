"""The attacks that were made for one algorithm, and are stronger there than the general one."""

from __future__ import annotations

from functools import singledispatch

from audits.federated import game
from audits.outsourced.counterexample import attacked
from audits.papers.joint import likelihood_ratio_audit
from dpaudit import AuditRecord
from dpaudit.base.errors import InputError
from dpaudit.project import Subject
from dpaudit.project.targets import configuration
from private_bo.federated import DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.outsourced import CertifiedCurator, Curator

__all__ = ["CONFIDENCE", "attacks"]

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
    found = attacked(type(subject).__name__, PROBLEM, subject.epsilon)
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
