"""Checks of single values, each with a sentence that names field, value and remedy.

Every check takes one keyword argument, the field's name with its value, and returns the value::

    >>> positive(scale=2)
    2.0
    >>> positive(scale=-1)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: scale is -1; it must be a finite number above 0.
"""

from __future__ import annotations

import math
import re
import reprlib
from contextlib import suppress
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from dpaudit.base.errors import InputError

_Member = TypeVar("_Member", bound=StrEnum)
_Kind = TypeVar("_Kind")


def _only(fields: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = fields.items()
    return name, value


def shown(value: object) -> str:
    """Return a value as a sentence repeats it: of a long one, or of one within it, the beginning.

    >>> shown(0.5), shown("ab" * 50_000)[-5:], shown(10**5000), shown(None)
    ('0.5', "a...'", 'a number of 16610 bits', 'missing')
    """
    if value is None:
        return "missing"
    if isinstance(value, str | bytes) and len(value) > 60:
        text = repr(value[:60])
        return f"{text[:60]}...{text[-1]}"
    if isinstance(value, int) and value.bit_length() > 256:  # its digits take quadratic time
        return f"a number of {value.bit_length()} bits"
    try:
        text = _brief.repr(value)
    except Exception:  # noqa: BLE001  # foreign code, or a number of too many digits
        return f"a {type(value).__name__:.40}"
    return text if len(text) <= 60 else text[:57] + "..."


class _Brief(reprlib.Repr):
    """A representation that leaves out most of long containers, texts and numbers."""

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x)


_brief = _Brief()
_brief.maxlevel = 3
_brief.maxstring = _brief.maxother = _brief.maxlong = 200
_brief.maxdict = _brief.maxlist = _brief.maxtuple = _brief.maxset = 12


def printable(text: str) -> str:
    r"""A text whose characters can all be seen, so that none of them moves a cursor or a row.

    >>> printable("a\x1b[2J\n"), printable("é")
    ('a\\x1b[2J\\n', 'é')
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _number(name: str, value: object, wanted: str) -> float:
    """Return the value as a finite float, refusing booleans, text, NaN and infinities."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    return number


def _within(fields: dict[str, Any], wanted: str, accept: Any) -> float:
    name, value = _only(fields)
    number = _number(name, value, wanted)
    if not accept(number):
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    return number


def finite(**field: Any) -> float:
    """Return a finite real number."""
    return _within(field, "a finite number", lambda _: True)


def positive(**field: Any) -> float:
    """Return a finite number above 0."""
    return _within(field, "a finite number above 0", lambda number: number > 0)


def non_negative(**field: Any) -> float:
    """Return a finite number of at least 0."""
    return _within(field, "a finite number of at least 0", lambda number: number >= 0)


def probability(**field: Any) -> float:
    """Return a number in [0, 1)."""
    return _within(field, "a number in [0, 1)", lambda number: 0 <= number < 1)


def open_fraction(**field: Any) -> float:
    """Return a number in (0, 1)."""
    return _within(field, "a number in (0, 1)", lambda number: 0 < number < 1)


def fraction(**field: Any) -> float:
    """Return a number in (0, 1]."""
    return _within(field, "a number in (0, 1]", lambda number: 0 < number <= 1)


def integer_at_least(minimum: int, maximum: int | None = None, /, **field: Any) -> int:
    """Check an integer (no float, no boolean) from ``minimum`` to ``maximum``."""
    name, value = _only(field)
    wanted = f"an integer of at least {minimum}"
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, Integral)
        or int(value) < minimum
    ):
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    if maximum is not None and int(value) > maximum:
        raise InputError(f"{name} is {shown(value)}; it must be {wanted} and at most {maximum}.")
    return int(value)


def text(**field: Any) -> str:
    """Return a non-empty string of characters."""
    name, value = _only(field)
    if not isinstance(value, str) or not value or _HALVES.search(value):
        raise InputError(f"{name} is {shown(value)}; it must be a non-empty text.")
    return value


_HALVES = re.compile("[\ud800-\udfff]")
"""Of surrogate pairs: JSON can name them, and no file or database takes them."""


def label(**field: Any) -> str:
    """Return a string of at most 300 characters, which may be empty."""
    name, value = _only(field)
    if not isinstance(value, str) or len(value) > 300 or _HALVES.search(value):
        raise InputError(f"{name} is {shown(value)}; it must be a text of at most 300 characters.")
    return value


def interval(**field: Any) -> tuple[float, float]:
    """Return a pair (lower, upper) of finite numbers with lower < upper."""
    name, value = _only(field)
    wanted = "a pair of finite numbers (lower, upper) with lower < upper"
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    lower, upper = (_number(name, end, wanted) for end in value)
    if not lower < upper:
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    return lower, upper


def member(kind: type[_Member], **field: Any) -> _Member:
    """Return a member of a text enumeration, given as itself or by its value."""
    name, value = _only(field)
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind)
        raise InputError(f"{name} is {shown(value)}; it must be one of {names}.") from None


def instance(kind: type[_Kind], **field: Any) -> _Kind:
    """Return the value, if it is of a class; the sentence tells its class alone."""
    name, value = _only(field)
    if not isinstance(value, kind):
        raise InputError(f"{name} is a {type(value).__name__:.60}; it must be a {kind.__name__}.")
    return value


def private(value: Any) -> np.ndarray[Any, Any]:
    """Return a private value as an array of numbers of its own; no error shows what it is.

    >>> private("HIV+ positive")
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: value is of type str; it must be a number or an array of finite
    numbers.
    """
    kind, array = type(value).__name__, None
    if type(value) is np.ndarray:
        array = value.copy("K")
    else:
        with suppress(Exception):  # conversion may run foreign code, whose words may show the value
            array = None if _masked(value) else np.array(value)
    if array is None or array.dtype.kind not in "iuf":
        raise InputError(
            f"value is of type {kind:.60}; it must be a number or an array of finite numbers."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError("value has an entry that is NaN or infinite; it must be finite.")
    return array


def _masked(value: Any) -> bool:
    """Tell whether an entry is missing; under its mask numpy would find a number."""
    parts = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, np.ma.MaskedArray) and np.ma.is_masked(each) for each in parts)


def real_array(**field: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a new float array without NaN or infinities, of any shape, () for a number."""
    return np.array(real_view(**field))


def real_view(**field: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Check the same, which may be the given array itself: who takes it writes nothing to it."""
    ((name, value),) = field.items()
    wanted = "a number or an array of finite numbers"
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.") from None
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    if array.dtype.kind != "f" and (array > 2**53).any() | (array < -(2**53)).any():
        raise InputError(
            f"{name} has a whole number beyond ±2^53, which a float cannot hold exactly; scale it."
        )
    if array.dtype != np.float64:
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{name} has a value that is NaN or infinite; it must be {wanted}.")
    return array
