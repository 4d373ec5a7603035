"""Small neighbouring data sets on which a curator is attacked by default."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.project import AuditPair
from private_bo.gp.types import Array


def small_pairs(columns: int, norm_bound: float) -> tuple[AuditPair, ...]:
    """4d + 1 rows on the axes and in the middle; one in the middle or at the rim moves by 1.

    Args:
        columns: d of the rows.
        norm_bound: largest legal norm of a row.
    """
    axes = np.concatenate([np.eye(columns), -np.eye(columns)])
    shape = np.concatenate([axes, 0.5 * axes, np.zeros((1, columns))])
    # Radii that differ, so that the rows are not centred and nothing is exactly 0 by symmetry.
    rows = 0.9 * norm_bound * shape * np.linspace(0.8, 1.0, len(shape))[:, np.newaxis]
    step = min(1.0, 0.1 * norm_bound)
    diagonal = step * np.ones(columns) / math.sqrt(columns)
    across = np.where(np.arange(columns) == 0, -diagonal, diagonal)
    return (
        # Along diagonals the L1 distance is largest, in which Laplace noise is calibrated.
        _pair(rows, len(rows) - 1, diagonal, f"the row in the middle moves by {step:g}"),
        _pair(rows, 0, across, f"a row at the rim moves by {step:g}"),
    )


def _pair(rows: Array, row: int, move: Array, why: str) -> AuditPair:
    moved = rows.copy()
    moved[row] += move
    return AuditPair(rows.tolist(), moved.tolist(), why)
