"""Black-box attacks on the curators: the generic engine, which is given no score.

It sees releases of neighbours. On a pilot it trains classifiers on the entries of
the release and their squares, and tests the best one on fresh runs.
"""

from __future__ import annotations

from audits.outsourced.neighbours import inward
from dpaudit import AuditPair, AuditRecord
from dpaudit.auditing import audit_release
from private_bo.outsourced import CertifiedCurator, Curator, OutsourcingCurator, RowNoise
from private_bo.outsourced.problems import grid_rows


def lattice_pair(per_axis: int = 10) -> AuditPair:
    """The synthetic grid in small: its corner moves by 1 towards the origin."""
    rows = grid_rows(per_axis)
    moved = rows.copy()
    moved[0] += inward(rows[:1])[0]
    return AuditPair(rows.tolist(), moved.tolist(), f"corner of a {per_axis} × {per_axis} grid")


def black_box_audit(
    curator: OutsourcingCurator,
    pair: AuditPair,
    *,
    runs: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> AuditRecord:
    """The engine's own attack on a pair, at the curator's (ε, δ)."""
    return audit_release(
        curator.audit_release,
        pair,
        epsilon=curator.epsilon,
        delta=curator.delta,
        runs=runs,
        confidence=confidence,
        seed=seed,
    )


def pairs(curator: OutsourcingCurator) -> tuple[AuditPair, ...]:
    """The curator's own pairs, and the corner of a small grid where it has two columns."""
    lattice = (lattice_pair(),) if curator.columns == 2 else ()
    return (*curator.audit_pairs(), *lattice)


def curators(epsilon: float) -> tuple[OutsourcingCurator, ...]:
    """The paper's curator, and certified ones with either noise."""
    noises = (RowNoise.LAPLACE, RowNoise.GAUSSIAN)
    certified = (CertifiedCurator(epsilon, noise=noise) for noise in noises)
    return (Curator(epsilon), *certified)
