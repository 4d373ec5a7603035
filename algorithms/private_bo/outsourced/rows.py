"""The private rows: what is checked before a release, their linear algebra, and small pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.project import AuditPair
from private_bo.gp.types import Array, point_set

LARGEST_RELEASE = 2**31
"""Bytes that one released matrix may take."""

_NORM_SLACK = 1e-9  # rows scaled to the bound itself may exceed it by rounding
_MOST_SIGNS = 14


def checked_rows(rows: Any, *, columns: int, norm_bound: float, count: int | None = None) -> Array:
    """The private matrix X (n, d), if every check holds.

    Whether a check fails depends on the private rows: tell it to their owner and to nobody else.
    No error shows a value of theirs.

    Args:
        rows: the private rows, shape (n, d).
        columns: declared d.
        norm_bound: declared largest Euclidean norm of a row.
        count: declared n, or None if it is not declared.

    Raises:
        InputError: if a value is NaN or infinite, the shape is not the declared one, there are no
            more rows than columns, or a row is longer than declared. A constant column is none:
            a refusal would tell neighbours apart.
    """
    matrix = point_set(rows=validate.private(rows))
    n, d = matrix.shape
    if d != columns:
        raise InputError(f"rows has {d} columns; it must have the declared {columns}.")
    if count is not None and n != count:
        raise InputError(f"rows has {n} rows; it must have the declared {count}.")
    if n <= d:
        raise InputError(f"rows has shape ({n}, {d}); it must have more rows than columns.")
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if norms.max() > norm_bound * (1 + _NORM_SLACK):
        raise InputError(
            f"rows has a row longer than the declared norm_bound, {norm_bound:g}; scale all rows "
            "by a public constant."
        )
    return matrix


def require_memory(rows: int, dimension: int) -> None:
    """Refuse a release that is too large, before it is computed.

    Raises:
        InputError: if ``rows`` × ``dimension`` numbers take more than :data:`LARGEST_RELEASE`.
    """
    size = 8 * rows * dimension
    if size > LARGEST_RELEASE:
        raise InputError(
            f"dimension is {dimension}; with {rows} rows the release would take {size / 2**30:.3g} "
            f"GiB, so it must be at most {LARGEST_RELEASE // (8 * rows)}."
        )


def centred(matrix: Array) -> Array:
    """The matrix less its column means (line 2 of Algorithm 1)."""
    return np.asarray(matrix - matrix.mean(axis=0))


def thin_svd(matrix: Array) -> tuple[Array, Array, Array]:
    """U (n, d), singular values (d,) and Vᵀ (d, d), in O(n d²) time and O(n d) memory."""
    orthogonal, triangular = np.linalg.qr(matrix)
    left, values, right = np.linalg.svd(triangular)
    return orthogonal @ left, values, right


def inflated(matrix: Array, omega: float) -> Array:
    """Lines 4 to 10 of Algorithm 1: the centred matrix, or U sqrt(Σ² + ω² I) Vᵀ if σ_min < ω."""
    left, values, right = thin_svd(matrix)
    if values[-1] >= omega:
        return matrix
    return np.asarray((left * np.hypot(values, omega)) @ right)


def public_projection(columns: int, dimension: int, seed: int) -> Array:
    """M/√r (d, r) with standard normal entries from a public seed, or the identity if r >= d.

    The identity keeps every distance and has gain 1, so that nothing is won by r > d.
    """
    if dimension >= columns:
        return np.eye(columns)
    normal = np.random.default_rng(seed).standard_normal((columns, dimension))
    return np.asarray(normal / math.sqrt(dimension))


def largest_l1_gain(projection: Array) -> float:
    """The largest L1 norm of uᵀP over Euclidean unit vectors u, rounded up.

    It is max ‖P s‖₂ over all sign vectors s (duality of L1 and L∞), enumerated up to 14 columns;
    beyond, √r σ_max(P) is its upper bound.

    >>> round(largest_l1_gain(np.eye(2)), 6)
    1.414214
    """
    columns = projection.shape[1]
    if columns > _MOST_SIGNS:
        return _rounded_up(math.sqrt(columns) * float(np.linalg.norm(projection, 2)))
    codes = np.arange(2 ** (columns - 1))[:, np.newaxis] >> np.arange(columns)
    signs = 1.0 - 2.0 * (codes & 1)
    return _rounded_up(float(np.linalg.norm(projection @ signs.T, axis=0).max()))


def largest_l2_gain(projection: Array) -> float:
    """σ_max(P), the largest Euclidean norm of uᵀP over unit vectors u, rounded up."""
    return _rounded_up(float(np.linalg.norm(projection, 2)))


def _rounded_up(value: float) -> float:
    """The value with a margin for the rounding of its computation; whole numbers are exact."""
    return value if value == round(value) else value * (1 + 1e-12)


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
