"""What foreign code is given and gives back: fresh copies of data, and outputs that are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InputError

__all__ = ["checked_outputs", "copies"]

_EXACT = 2**53
_FLAT = frozenset({int, float, bool, str, bytes, type(None)})


def copies(data: Any) -> Callable[[], Any]:
    """A maker of copies of data as they are now, so that code may change what it is given.

    Containers and arrays are copied, whatever else they hold is shared.

    >>> fresh = copies({"rows": [1, 2]})
    >>> fresh()["rows"].append(3)
    >>> fresh()
    {'rows': [1, 2]}
    """
    kept = _copied(data)
    return lambda: _copied(kept)


def _copied(data: Any) -> Any:
    kind = type(data)
    if kind is list or kind is tuple:
        if _FLAT.issuperset(map(type, data)):  # quick, and most data are
            return kind(data)
        return kind([_copied(item) for item in data])
    if kind is dict:
        return {key: _copied(item) for key, item in data.items()}
    if kind is set or isinstance(data, np.ndarray):
        return data.copy()
    return data


def checked_outputs(raw: Any, size: int, runs: str) -> NDArray[np.float64]:
    """Outputs as floats, shape (size, …).

    Raises:
        InputError: if they are no numbers, NaN, whole numbers that are no floats, of changing
            shapes or of the wrong number.
    """
    try:
        array = np.asarray(raw)
    except ValueError:
        raise InputError(
            f"the mechanism returned outputs of changing shapes {runs}; pad them to one shape."
        ) from None
    if array.dtype.kind not in "biuf":
        shown = repr(raw if array.ndim == 0 else array.ravel()[:1].tolist())
        raise InputError(
            f"the mechanism returned {shown:.60} {runs}; every output must be a number or an array "
            "of numbers, so encode other answers as numbers."
        )
    if array.ndim == 0 or len(array) != size:
        raise InputError(
            f"the mechanism returned shape {array.shape} {runs}; its first axis must be the "
            f"{size} runs."
        )
    if array.size == 0:
        raise InputError(f"the mechanism returned nothing {runs}; every run needs an output.")
    if array.dtype.kind in "iu" and ((array > _EXACT).any() or (array < -_EXACT).any()):
        raise InputError(
            f"the mechanism returned whole numbers beyond 2^53 {runs}, which floats do not hold; "
            "return each in two parts, such as divmod(value, 2**32)."
        )
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        first = int(np.argmax(np.isnan(numbers.reshape(size, -1)).any(axis=1)))
        raise InputError(
            f"the mechanism returned NaN {runs} (the {first + 1}. of them); return a number for "
            "every input."
        )
    return numbers
