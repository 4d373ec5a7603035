"""Where continual release draws its node noise, and the streams that turn it into prefix noise."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats


class NoiseLaw(StrEnum):
    """The law of one entry of node noise; both are scaled to a given standard deviation."""

    NORMAL = "normal"
    LAPLACE = "laplace"


def pack(matrices: Floats) -> Floats:
    """Upper triangles of matrices on the two trailing axes, shape (..., m(m+1)/2)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    upper: Floats = matrices[..., rows, columns]
    return upper


def packed_scale(side: int) -> Floats:
    """√2 at the diagonal entries of a packed triangle, 1 elsewhere."""
    rows, columns = np.triu_indices(side)
    return np.where(rows == columns, math.sqrt(2), 1.0)


def require_mirrored(matrices: Floats) -> None:
    """Refuse matrices that are not exactly symmetric: noise would not cover the difference."""
    require_square(matrices.shape)
    if not np.array_equal(matrices, np.swapaxes(matrices, -1, -2)):
        raise InputError("value has a matrix that is not symmetric; pass (X + Xᵀ)/2.")


def require_square(shape: tuple[int, ...]) -> None:
    """Refuse shapes whose two trailing axes are not a square matrix."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise InputError(f"shape is {shape}; symmetric noise needs square matrices, (..., m, m).")


def require_stream(value: Floats, steps: int) -> None:
    """Refuse an array whose first axis is not that of 1 to ``steps`` steps."""
    if value.ndim == 0 or not 1 <= len(value) <= steps:
        raise InputError(
            f"value has shape {value.shape}; its first axis must be 1 to {steps} steps."
        )
