"""Array types and the check of point sets shared by the Gaussian-process modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from dpaudit.errors import InputError
from dpaudit.validate import real_array

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]


def point_set(**field: Any) -> Array:
    """The value as a finite float array of shape (n, d), one point a row.

    Raises:
        InputError: if it is not a two-dimensional array of finite numbers.
    """
    points = real_array(**field)
    if points.ndim != 2:
        (name,) = field
        raise InputError(
            f"{name} has shape {points.shape}; it must have shape (n, d), one point a row."
        )
    return points


def read_only(array: Array) -> Array:
    """The same array with writing switched off."""
    array.flags.writeable = False
    return array
