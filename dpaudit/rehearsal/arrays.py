"""Sequences of values as arrays with one entry for each, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def column(values: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers or of truth values, of equal arrays, or of objects."""
    kinds = {type(value) for value in values}
    if kinds in ({int}, {float}, {bool}):
        made = np.array(values)
        if made.dtype.kind == {int: "i", float: "f", bool: "b"}[kinds.pop()]:
            return made
    if kinds == {np.ndarray} and len({(each.shape, each.dtype) for each in values}) == 1:
        made = np.stack(values)
        if made.ndim > 1 and made.dtype.kind in "fiub":
            return made
    objects = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        objects[place] = value
    return objects


def entries(values: NDArray[Any]) -> list[Any]:
    """The rows of a column as they were in a list: plain numbers, arrays or objects."""
    return values.tolist() if values.ndim == 1 else list(values)


def numeric(values: NDArray[Any]) -> NDArray[Any] | None:
    """The numbers of a column, with another one in place of each missing; None if it has others."""
    if values.dtype.kind == "O" and values.ndim == 1:
        there = [each for each in values if each is not None]
        if not there or not all(_is_number(kind) for kind in {type(each) for each in there}):
            return None
        values = np.array([there[0] if each is None else each for each in values])
    known = values.dtype.kind in "fiu" and not np.isnan(values).all()
    return values if known else None


def _is_number(kind: type) -> bool:
    return kind in (int, float) or issubclass(kind, np.integer | np.floating)


def hashable(label: Any) -> Any:
    """Return what equals itself and other labels as this one does, and can be a key."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if type(label).__hash__ is not None and label == label else repr(label)


def labels_like(values: NDArray[Any]) -> Iterable[Any]:
    """Return what may be new names among some, of their type; nothing where none can be made up."""
    first: Any = next((each for each in values if each is not None), None)
    numbers = numeric(values)
    if numbers is not None:
        top = int(np.nan_to_num(numbers).max())
        return chain(range(top + 1, top + 99), range(1000))
    if isinstance(first, str):
        return ("a new unit", *map(str, range(1000)))
    if values.dtype.kind == "M":
        return np.datetime64("2101-01-01") + np.arange(99)
    if hasattr(first, "replace") and hasattr(first, "year"):
        return (first.replace(year=2101, month=1, day=day) for day in range(1, 29))
    return ()
