"""Encoders: what arrays of whole numbers become, with bounds that hold exactly.

Each is a function of what is public of arrays, and a name in ``ENCODERS`` if it is asked for by it.
It works on whole numbers alone, row by row: a row has the same bits whatever stands beside it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.mechanisms import Norm
from dpaudit.tables.schema import LARGEST

MOST_COLUMNS = 10_000
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Encoded:
    """What is public of encoded arrays, and how they are made.

    Attributes:
        ends: smallest and largest whole number of each entry, shape (entries, 2), 0 among them.
        step: what one whole number stands for.
        of: makes arrays, shape (n, entries), of arrays, shape (n, d).
    """

    ends: NDArray[Any]
    step: Fraction
    of: Callable[[Whole], Whole]


def linear(ends: NDArray[Any], step: Fraction, /, matrix: object) -> Encoded:
    """Each array multiplied by a public matrix of whole numbers; its gain bounds the result.

    Raises:
        InputError: if it is no matrix of shape (entries of the result, d).
    """
    rows = _matrix(matrix, len(ends))
    positive, negative = np.maximum(rows, 0), np.minimum(rows, 0)
    least, most = (positive @ ends + negative @ ends[:, ::-1]).T
    gains = rows.astype(np.int64).T
    return Encoded(np.stack([least, most], axis=1), step, lambda arrays: arrays @ gains)


def clip(ends: NDArray[Any], step: Fraction, /, bound: object, norm: object = "l2") -> Encoded:
    """Arrays that are longer than a public bound scaled to it, rounded towards zero.

    The norm of the result is at most the bound, exactly, and entries within it stay as they are.

    Raises:
        InputError: if the bound is below one step or above 2^53, or the norm is another.
    """
    if norm not in (Norm.L1, Norm.L2):
        raise InputError(f"norm is {shown(norm)}; it must be 'l1' or 'l2'.")
    power = 1 if norm == Norm.L1 else 2
    most = Fraction(validate.positive(bound=bound))
    if not step <= most <= LARGEST:
        raise InputError(f"bound is {shown(bound)}; it must be from one step to 2^53.")
    limit = (most / step) ** power
    radius = int(most / step)

    def within(row: list[int]) -> list[int]:
        size = sum(abs(each) ** power for each in row)
        if size <= limit:
            return row
        top, bottom = limit.numerator, limit.denominator * size
        scaled = [abs(each) ** power * top // bottom for each in row]
        lengths = scaled if power == 1 else map(math.isqrt, scaled)
        return [-new if old < 0 else new for old, new in zip(row, lengths, strict=True)]

    def of(arrays: Whole) -> Whole:
        found = arrays.copy()
        sizes = (np.abs(arrays.astype(np.float64)) ** power).sum(axis=1)
        for place in np.flatnonzero(sizes > float(limit) * (1 - 1e-9)):  # others are within it
            found[place] = within(arrays[place].tolist())
        return found

    return Encoded(np.minimum(np.maximum(ends, -radius), radius), step, of)


def outer(ends: NDArray[Any], step: Fraction, /) -> Encoded:
    """The products of all pairs of entries: x xᵀ of each array x, row after row.

    Its norm is that of x squared, exactly, in L1 and in L2; so clipped arrays have a tight bound,
    and a Gram matrix of clipped features is the sum of these (Dubey 2021, "No-regret algorithms for
    private Gaussian process bandit optimization").

    Raises:
        InputError: if there are too many pairs.
    """
    if len(ends) ** 2 > MOST_COLUMNS:
        raise InputError(f"outer has {len(ends)}^2 entries; at most {MOST_COLUMNS} may be.")
    products = ends[:, None, :, None] * ends[None, :, None, :]
    least, most = products.min(axis=(2, 3)), products.max(axis=(2, 3))
    np.fill_diagonal(least, 0)  # of squares
    return Encoded(
        np.stack([least.ravel(), most.ravel()], axis=1),
        step**2,
        lambda arrays: (arrays[:, :, None] * arrays[:, None, :]).reshape(-1, len(ends) ** 2),
    )


ENCODERS: dict[str, Callable[..., Encoded]] = {each.__name__: each for each in (clip, outer)}


def encode(by: object, options: Mapping[str, Any], ends: NDArray[Any], step: Fraction) -> Encoded:
    """Arrays as the encoder of a name makes them.

    Raises:
        InputError: if there is none, it takes other options, or refuses these.
    """
    encoder = ENCODERS.get(by) if isinstance(by, str) else None
    if encoder is None:
        raise InputError(f"encoder is {shown(by)}; it must be one of {', '.join(ENCODERS)}.")
    try:
        inspect.signature(encoder).bind(ends, step, **options)
    except TypeError:
        raise InputError(f"{by} takes other options than {shown([*options])}.") from None
    return encoder(ends, step, **options)


def _matrix(matrix: object, columns: int) -> NDArray[Any]:
    """A matrix of Python's whole numbers, which cannot overflow."""
    try:
        found = np.array(matrix, dtype=object)
    except ValueError:
        found = np.array(None)
    if found.ndim != 2 or found.shape[1] != columns or not 1 <= len(found) <= MOST_COLUMNS:
        raise InputError(f"matrix must be a list of rows of {columns} whole numbers each.")
    if any(type(each) is not int or abs(each) > LARGEST for each in found.ravel().tolist()):
        raise InputError("matrix must be of whole numbers of at most 2^53.")
    return found
