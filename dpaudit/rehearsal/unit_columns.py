"""Which column says whose row it is, by its name; and which one might, by its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.rehearsal.arrays import hashable

_ENDING = re.compile(r"(identifier|number|name|hash|uuid|guid|key|num|nr|no|id)s?$")
_WORD = re.compile(r"[^\W\d_]+")
SHORT = 3
"""So many letters stand for a whole word, as in ``cust_no``."""
REPEATS, WIDE = 10, 100
"""At most so many rows are one unit's, on average; so many columns of an array are looked at."""


def column_of(
    columns: Mapping[str, NDArray[Any]], unit: str | None, *, near: bool = True
) -> str | None:
    """The column that has the name of the unit, or the nearest to it; None if none has.

    Where it may be ``near``, case, separators, plurals and words for a label do not count, and the
    unit may be cut short.

    Example:
        >>> ids = np.array([3, 1, 3])
        >>> [column_of({"amount": ids, name: ids}, "customer")
        ...  for name in ("Customer", "customerID", "cust_no", "customers", "customer age")]
        ['Customer', 'customerID', 'cust_no', None, None]
    """
    if unit is None or unit in columns or not near:
        return unit if unit in columns else None
    apart = {name: _apart(name, unit) for name, each in columns.items() if _is_label(each)}
    found = [(far, name) for name, far in apart.items() if far is not None]
    return min(found)[1] if found else None


def _apart(name: str, unit: str) -> int | None:
    """Tell how far a name is from that of a unit; None if it is another one."""
    plain, own = _joined(name), _ENDING.sub("", _joined(unit)).removesuffix("s")
    core = _ENDING.sub("", plain)
    if plain in (own, _joined(unit)):
        return 0
    if core == plain or not own:
        return None
    if core.removesuffix("s") == own:
        return 1
    words = [word.removesuffix("s") for word in _words(name)]
    if own in words[:-1]:
        return 2
    return 3 if len(core) >= SHORT and own.startswith(core) else None


def _words(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")
    return [word.casefold() for word in _WORD.findall(apart)]


def _joined(name: str) -> str:
    return "".join(_words(name))


def shared(columns: Mapping[str, NDArray[Any]]) -> str:
    """A column beside others of labels that few rows share, as if each were of one who has several.

    Empty where there is none. It need not say whose rows they are: ages repeat too.
    """
    parts = dict(_parts(columns))
    counts = {name: len(set(map(hashable, e))) for name, e in parts.items() if _is_label(e)}
    many = {n: count for n, count in counts.items() if len(parts[n]) / REPEATS <= count}
    repeated = [name for name, count in many.items() if count < len(parts[name])]
    return max(repeated, key=many.__getitem__) if len(parts) > 1 and repeated else ""


def _parts(columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Columns, and those of tables within them."""
    for name, each in columns.items():
        if each.ndim == 1:
            yield name, each
        elif each.ndim == 2:
            yield from ((f"{name} {n}", part) for n, part in enumerate(each.T[:WIDE]))


def _is_label(column: NDArray[Any]) -> bool:
    """Tell whether whole numbers or names are there, some of which may be missing."""
    if column.dtype.kind == "O":
        there = [each for each in column if each is not None]
        kinds = {type(each) for each in there}
        return bool(there) and not kinds & {bool, float, list, dict, set, tuple, np.ndarray}
    if column.dtype.kind == "f":
        known = column[np.isfinite(column)]
        return column.ndim == 1 and known.size > 0 and bool((known == np.floor(known)).all())
    return column.ndim == 1 and column.dtype.kind in "iuUS"
