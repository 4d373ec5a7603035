"""Arrays and numbers in public ranges, their checks, and linear algebra that can be repeated.

Matrices are small here, and more threads make runs slow and hard to repeat: whatever multiplies
them does so on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import real_array

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]


def array_of(*axes: str) -> Callable[..., Array]:
    """The check of an array with these axes, for an annotation: a read-only copy is kept.

    >>> array_of("n", "d")(points=[1.0, 2.0])
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: points has shape (2,); it must be (n, d), and not empty.
    """

    def check(**field: Any) -> Array:
        array = real_array(**field)
        if array.ndim != len(axes) or array.size == 0:
            (name,) = field
            wanted = f"({', '.join(axes)}{',' * (len(axes) == 1)})"
            raise InputError(f"{name} has shape {array.shape}; it must be {wanted}, and not empty.")
        return read_only(array)

    return check


def point_set(**field: Any) -> Array:
    """The value as a finite float array of shape (n, d), one point a row."""
    points = real_array(**field)
    if points.ndim != 2:
        (name,) = field
        raise InputError(
            f"{name} has shape {points.shape}; it must have shape (n, d), one point a row."
        )
    return points


def points_of(dimensions: int, **field: Any) -> Array:
    """The value as points of so many coordinates, (n, d)."""
    points = point_set(**field)
    if points.shape[1] != dimensions:
        (name,) = field
        raise InputError(
            f"{name} has points of dimension {points.shape[1]}; they must be of {dimensions}."
        )
    return points


def point_sets(X: Array, Y: Array) -> tuple[Array, Array]:
    """Both as point sets, (n, d) and (m, d)."""
    left = point_set(X=X)
    return left, points_of(left.shape[1], Y=Y)


def read_only(array: Array) -> Array:
    """The same array with writing switched off."""
    array.flags.writeable = False
    return array


def between(low: float, high: float) -> Any:
    """The check of a number within [low, high], for an annotation.

    >>> between(1e-6, 1e6)(scale=1e7)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: scale is 1e7; it must be from 1e-6 to 1e6.
    """

    def check(**field: Any) -> float:
        number = validate.finite(**field)
        if not low <= number <= high:
            (name,) = field
            raise InputError(
                f"{name} is {_short(number)}; it must be from {_short(low)} to {_short(high)}."
            )
        return number

    return check


def _short(number: float) -> str:
    return f"{number:g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


Bounded: TypeAlias = Annotated[float, between(1e-6, 1e6)]
"""None of its squares and quotients leaves the range of floats."""


def single_threaded() -> AbstractContextManager[object]:
    """A context in which numpy's and scipy's linear algebra runs on one thread.

    Sums then have one order, so that a seed gives the same run on every number of cores; and on a
    busy machine threads that wait for each other slow small products down a hundredfold.

    Where threadpoolctl is missing (it comes with ``dpaudit[learn]``), the number of threads is that
    of the environment, such as ``OMP_NUM_THREADS=1``.
    """
    import scipy.linalg  # noqa: F401 - only libraries that are loaded can be limited

    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
