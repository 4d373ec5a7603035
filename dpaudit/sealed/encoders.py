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
_MOST_STEPS = 2**32
"""Of an entry that is added without another bound: floats hold sums of two million of them."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """What is public of encoded arrays, and how they are made.

    Attributes:
        ends: smallest and largest whole number of each entry, shape (entries, 2), 0 among them.
        step: what one whole number stands for.
        of: makes arrays, shape (n, entries), of arrays, shape (n, d).
        diameter: an upper bound of the Euclidean distance of two such arrays, 0 among them, in
            natural units; None where none is known that is better than that of the norm.
    """

    ends: NDArray[Any]
    step: Fraction
    of: Callable[[Whole], Whole]
    diameter: float | None = None


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
        raise InputError(f"outer has {len(ends)}^2 entries; at most {MOST_COLUMNS} are allowed.")
    products = ends[:, None, :, None] * ends[None, :, None, :]
    least, most = products.min(axis=(2, 3)), products.max(axis=(2, 3))
    np.fill_diagonal(least, 0)  # of squares
    return Encoded(
        np.stack([least.ravel(), most.ravel()], axis=1),
        step**2,
        lambda arrays: (arrays[:, :, None] * arrays[:, None, :]).reshape(-1, len(ends) ** 2),
    )


def regression(
    ends: NDArray[Any], step: Fraction, /, weight: object, packed: object = False
) -> Encoded:
    """What a linear regression adds up of one row (φ, v): w φφᵀ beside v φ, with ‖φ‖ <= 1.

    With h the largest |v| and w² <= h²/2, two rows lie no further apart than 2h, as v φ alone may:
    the matrix costs nothing. For features a ψ and b ψ' of unit vectors with |ψᵀψ'| = k the squared
    distance is at most

        w² (a⁴ + b⁴ − 2 a² b² k²) + h² (a² + b² + 2 a b k),

    which grows in k, as h² >= 2 w² a b k; and where k is 1, in a and in b, up to 4h². As entries
    are rounded, features are scaled to a little less than 1: the bound holds with rounding.

    Args:
        ends: of φ, and as the last entry of v.
        step: of these, and of the results.
        weight: w.
        packed: whether the result is the triangle of w φφᵀ, row by row and times √2 off the
            diagonal, and then v φ; else it is [[w φφᵀ, v φ/√2], [·, 0]], row after row.

    Raises:
        InputError: if w² is above h²/2, or there are too many entries.
    """
    size = len(ends) - 1
    high = Fraction(max(map(abs, ends[-1].tolist()))) * step
    w = Fraction(validate.positive(weight=weight))
    if size < 1 or not isinstance(packed, bool):
        raise InputError("regression needs features and a value, and packed must be true or false.")
    if 2 * w**2 > high**2 * (1 + Fraction(1, 10**12)):  # of a root that was rounded
        raise InputError(f"weight is {shown(weight)}; it must be at most {float(high):g}/√2.")
    rows, columns = np.triu_indices(size)
    entries = len(rows) + size if packed else (size + 1) ** 2
    if entries > MOST_COLUMNS:
        raise InputError(f"regression has {entries} entries; at most {MOST_COLUMNS} are allowed.")
    unit = 1 / step
    room = Fraction(2 * (size + 1)) * step / high  # an entry is off by a step and a bit at most
    if room > Fraction(1, 100):
        raise InputError("regression needs a smaller step of the features.")
    within = clip(ends[:-1], step, 1 - room)
    scale, half = float(w * step), math.sqrt(0.5) * float(step)
    scales = scale * np.where(rows == columns, 1.0, math.sqrt(2.0))

    def of(arrays: Whole) -> Whole:
        phi, value = within.of(arrays[:, :-1]).astype(np.float64), arrays[:, -1:]
        crossed = phi * value * (float(step) if packed else half)
        if packed:
            products = phi[:, rows] * phi[:, columns] * scales
            return np.concatenate([products, crossed], axis=1).astype(np.int64)
        block = np.zeros((len(arrays), size + 1, size + 1))
        np.multiply(phi[:, :, None], phi[:, None, :], out=block[:, :-1, :-1])
        block[:, :-1, :-1] *= scale
        block[:, :-1, -1] = block[:, -1, :-1] = crossed
        return block.reshape(len(arrays), entries).astype(np.int64)

    most = math.ceil(max(w, high) * unit)
    if most > _MOST_STEPS:
        raise InputError(
            f"regression has entries of {most:.3g} steps; at most 2^32 are allowed, so that sums "
            "are exact; take a larger step."
        )
    whole = np.tile(np.array([[-most, most]], dtype=object), (entries, 1))
    return Encoded(whole, step, of, float(2 * high))


ENCODERS: dict[str, Callable[..., Encoded]] = {
    each.__name__: each for each in (clip, outer, regression)
}


def encode(by: object, options: Mapping[str, Any], ends: NDArray[Any], step: Fraction) -> Encoded:
    """Arrays as the encoder of a name makes them.

    Raises:
        InputError: if there is none, it takes other options, or refuses these.
    """
    encoder = ENCODERS.get(by) if isinstance(by, str) else None
    if encoder is None:
        raise InputError(f"encoder is {shown(by)}; it must be one of {', '.join(ENCODERS)}.")
    signature = inspect.signature(encoder)
    try:
        signature.bind(ends, step, **options)
    except TypeError:
        own = ", ".join([*signature.parameters][2:])
        raise InputError(f"{by} has options {shown([*options])}; it takes {own}.") from None
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
        raise InputError("matrix must hold whole numbers of at most 2^53.")
    return found
