"""The second leak: at σ_min = ω the paper's curator switches branch and its release jumps.

The attack looks at nothing but the size of the release, so that it is blind to the column space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from audits.outsourced.neighbours import Floats
from dpaudit import AuditPair, AuditRecord
from dpaudit.auditing import audit_release
from private_bo import outsourced

METHOD = "size of the release at the branch"
ROWS = 8


@dataclass(frozen=True)
class SizeScore:
    """Frobenius norm of a release."""

    name: str = "Frobenius norm of the release"
    method: str = METHOD

    def __call__(self, outputs: Floats) -> Floats:
        """Releases (k, n, r) to norms (k,)."""
        norms: Floats = np.linalg.norm(outputs, axis=(1, 2))
        return norms


def boundary_pair(omega: float, *, offset: float = 0.0) -> AuditPair:
    """Eight rows on a circle with σ_min just above ω, and the same with one row 1 further inwards.

    Args:
        omega: ω of the curator.
        offset: added to the radius; 2 keeps both data sets in one branch, as a control.
    """
    # A regular polygon of n rows on radius R is centred, with both singular values R sqrt(n/2).
    radius = omega * math.sqrt(2 / ROWS) * (1 + 1e-9) + offset
    angles = 2 * math.pi * np.arange(ROWS) / ROWS
    rows = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    moved = rows.copy()
    moved[0] *= 1 - 1 / radius
    where = "on both sides of the branch" if offset == 0 else "in the same branch"
    return AuditPair(rows.tolist(), moved.tolist(), f"{where} at ω = {omega:.6g}")


def branch_audit(
    curator: outsourced.Curator,
    *,
    offset: float = 0.0,
    runs: int = 5000,
    alpha: float = 1e-6,
    seed: int = 0,
) -> AuditRecord:
    """Attack the branch at the claimed (ε, δ) with the size of the release alone.

    Args:
        curator: of two columns, and a norm bound that admits rows of norm ω.
        offset: see :func:`boundary_pair`.
        runs: on each side.
        alpha: error rate of the verdict.
        seed: of the experiment.
    """
    return audit_release(
        curator.audit_release,
        boundary_pair(curator.omega, offset=offset),
        epsilon=curator.epsilon,
        delta=curator.delta,
        runs=runs,
        confidence=1 - alpha,
        seed=seed,
        score=SizeScore(),
        method=METHOD,
    )
