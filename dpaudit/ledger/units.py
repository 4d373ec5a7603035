"""Names of units: the one place where a label becomes a name, so that two units are never one.

A name is a text or a whole number, of exactly these types, and all names of one query are of one
of the two. Numpy makes texts of numbers and floats of integers that stand in one list, and loses
zeros at the end of a text; Python takes ``True`` for 1; and a class of its own may compare as it
likes. So lists never become arrays here, and no other type is a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError

Name = str | int
Whole = NDArray[np.int64]


def name_of(unit: object) -> str:
    """A unit's name as it is written to a journal.

    Raises:
        InputError: if it is no text, or one that cannot be written.
    """
    if type(unit) is np.str_:
        unit = str(unit)
    if type(unit) is not str or not unit:
        raise InputError(f"unit is a {type(unit).__name__:.60}; it must be a non-empty text.")
    try:
        unit.encode()
    except UnicodeEncodeError:
        raise InputError(
            "unit has half of a surrogate pair; it must be a text of whole characters."
        ) from None
    return unit


def names_of(units: Iterable[object]) -> list[str]:
    """The names of several units as they are written to a journal.

    Raises:
        InputError: if one of them is no text, or one that cannot be written.
    """
    return [name_of(unit) for unit in units]


class DistinctNames(tuple[str, ...]):
    """Names of units, each once; made by :meth:`of`, and checked there for good."""

    __slots__ = ()

    @classmethod
    def of(cls, units: Iterable[object]) -> DistinctNames:
        """Units by name, as a ledger samples them.

        Raises:
            InputError: if one of them is no text, or is named twice.
        """
        if type(units) is cls:
            return units
        names = names_of(units)
        if len(set(names)) != len(names):
            raise InputError("units names a unit twice; name each once.")
        return cls(names)


def labels_of(units: object) -> NDArray[Any] | list[Name]:
    """The label of each row: an array of integers as it is, else exact texts or whole numbers.

    Raises:
        InputError: if they are of no or several types, or no list.
    """
    listed = _entries(units)
    if isinstance(listed, np.ndarray):
        return listed
    plain = [_plain(each) for each in listed]
    kinds = set(map(type, plain))
    if len(kinds) > 1 or not kinds <= {str, int}:
        found = ", ".join(sorted(f"{kind.__name__:.60}" for kind in kinds))
        raise InputError(
            f"units has labels of type {found:.200}; give texts alone or whole numbers alone, one "
            "for each row."
        )
    return plain


def _plain(label: Any) -> Any:
    """A text or an integer of numpy as that of Python."""
    numpys = isinstance(label, np.generic) and label.dtype.kind in "iuU"
    return label.item() if numpys else label


def _entries(units: object) -> NDArray[Any] | list[Any]:
    """Of a sequence what it holds, as numpy would make one type of it; else those of an array."""
    shape = ""
    with suppress(Exception):  # foreign code may run, whose words may show a label
        if isinstance(units, Sequence) and not isinstance(units, str | bytes | bytearray):
            return list(units)
        if hasattr(units, "__array__"):
            array = np.asarray(units)
            if array.ndim == 1:
                return array if array.dtype.kind in "iu" else list(array.tolist())
            shape = f" of shape {array.shape}"
    raise InputError(
        f"units is a {type(units).__name__:.60}{shape}; it must have one entry for each row."
    )


def distinct_names(units: object) -> tuple[list[Name], Whole]:
    """The names that are there, each once, and the place among them of each row's.

    Raises:
        InputError: as :func:`labels_of`.
    """
    labels = labels_of(units)
    if isinstance(labels, np.ndarray):
        known, places = np.unique(labels, return_inverse=True)
        return known.tolist(), places.astype(np.int64, copy=False)
    numbers: dict[Name, int] = {}
    codes = [numbers.setdefault(each, len(numbers)) for each in labels]
    return list(numbers), np.array(codes, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Units:
    """To whom each row belongs, as integer codes; None where every row is a unit of its own.

    Attributes:
        codes: of the rows, shape (n,), from 0.
        count: how many codes there can be.
    """

    codes: Whole | None
    count: int

    @classmethod
    def of(cls, units: ArrayLike | None, rows: int) -> Units:
        """From labels of one kind; small non-negative integers in an array are taken as codes.

        Raises:
            InputError: if there is not one for each row, or they may be confused.
        """
        if units is None:
            return cls(None, rows)
        codes, count = _coded(units, rows)
        if codes.size != rows:
            raise InputError(
                f"units has {codes.size} entries; it must have one entry for each row, {rows}."
            )
        return cls(codes, count)

    @classmethod
    def alone(cls, units: ArrayLike) -> Units:
        """From labels that say themselves how many rows there are.

        Raises:
            InputError: if they may be confused.
        """
        return cls(*_coded(units, None))

    def where(self, kept: NDArray[np.bool_]) -> Units:
        """Those of some of the rows."""
        if self.codes is None:
            return Units(None, int(kept.sum()))
        return Units(self.codes[kept], self.count)


def _coded(units: ArrayLike, rows: int | None) -> tuple[Whole, int]:
    labels = labels_of(units)
    if isinstance(labels, np.ndarray) and labels.size:
        few = 4 * (labels.size if rows is None else rows)
        if labels.min() >= 0 and labels.max() < few:
            return labels.astype(np.int64, copy=False), int(labels.max()) + 1
    names, codes = distinct_names(labels)
    return codes, len(names)
