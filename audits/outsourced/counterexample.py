"""Certificates of the refutation, and their replay.

A counterexample is a certificate whose audits contradict the claim. Replaying draws every audit
again from its seed, beside what the certificate states.
"""

from __future__ import annotations

from collections.abc import Iterator

from audits.outsourced.attacks import (
    BRANCH,
    CANARIES,
    COLUMN_SPACE,
    COLUMN_SPACES_DIFFER,
    branch_audit,
    canary_audit,
    column_space_audit,
    disjoint_supports,
)
from audits.outsourced.neighbours import Neighbours, problem_rows
from dpaudit import AuditRecord, Certificate
from dpaudit.base.errors import InputError
from dpaudit.project.targets import certified, find_target
from private_bo.outsourced import Curator, OutsourcingCurator

DIMENSIONS = {"grid": 10, "taipei": 15, "loans": 15}
"""r of the paper's experiment on each problem."""

_BRANCH_NORM = 1e5


def attack_curator(curator: str, problem: str, epsilon: float, *, seed: int = 0) -> Certificate:
    """The certificate of a curator after every attack of this package on one problem.

    Args:
        curator: ``Curator`` or ``CertifiedCurator``.
        problem: ``grid``, ``taipei`` or ``loans``.
        epsilon: claimed ε.
        seed: of all attacks.

    Raises:
        InputError: if there is no such problem or curator.
    """
    columns = problem_rows(problem).shape[1]
    settings = {"epsilon": epsilon, "columns": columns, "dimension": DIMENSIONS.get(problem, 15)}
    target = find_target(f"private_bo.outsourced:{curator}", settings)
    subject = target.subject
    assert isinstance(subject, OutsourcingCurator)
    neighbours = Neighbours.of(problem)
    audits = [
        column_space_audit(subject, neighbours, seed=seed),
        canary_audit(subject, problem, seed=seed),
    ]
    if isinstance(subject, Curator):
        audits.insert(0, disjoint_supports(subject, neighbours))
        if columns == 2:
            audits.append(branch_audit(_at_branch(subject), seed=seed))
    return certified(target).with_audits(audits)


def _at_branch(curator: Curator) -> Curator:
    """The same curator with a bound that admits rows at the branch."""
    return Curator(curator.epsilon, curator.delta, curator.dimension, curator.columns, _BRANCH_NORM)


def replay_audits(certificate: Certificate) -> Iterator[tuple[AuditRecord, AuditRecord]]:
    """Every audit of a certificate, as stated and drawn again from its seed.

    Raises:
        InputError: if the certificate is not of a curator of this project, or an audit is not one
            of this package.
    """
    target = find_target(certificate.subject.name, dict(certificate.subject.configuration))
    subject = target.subject
    if not isinstance(subject, OutsourcingCurator):
        raise InputError(f"{certificate.subject.name} is no curator; replay another certificate.")
    for audit in certificate.audits:
        yield audit, _again(subject, audit)


def _again(curator: OutsourcingCurator, audit: AuditRecord) -> AuditRecord:
    seed, paper = audit.seed or 0, isinstance(curator, Curator)
    if audit.method == COLUMN_SPACES_DIFFER and isinstance(curator, Curator):
        return disjoint_supports(curator, Neighbours.from_dict(audit.pair))
    alpha = 1 - (audit.confidence or 0.0)
    if audit.method == COLUMN_SPACE:
        neighbours = Neighbours.from_dict(audit.pair)
        return column_space_audit(curator, neighbours, releases=audit.runs, alpha=alpha, seed=seed)
    if audit.method == CANARIES:
        problem, number = audit.pair["problem"], audit.pair["canaries"]
        return canary_audit(
            curator, problem, canaries=number, releases=audit.runs, alpha=alpha, seed=seed
        )
    if audit.method == BRANCH and isinstance(curator, Curator):
        return branch_audit(_at_branch(curator), runs=audit.runs, alpha=alpha, seed=seed)
    kind = "the paper's curator" if paper else "a certified curator"
    raise InputError(f"method is {audit.method!r}; it is no attack on {kind} that can be replayed.")
