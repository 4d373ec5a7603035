"""Reading tables that people write: unknown keys are refused with the nearest right one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from dpaudit.errors import InputError

__all__ = ["chosen", "nearest", "table", "tables", "within"]


def nearest(word: str, words: Collection[str]) -> str:
    """The end of a sentence that says what would be right.

    >>> nearest("epsilom", ["delta", "epsilon"]), nearest("x", ["delta", "epsilon"])
    ("did you mean 'epsilon'?", 'it must be one of delta, epsilon.')
    """
    close = get_close_matches(word, [str(each) for each in words], n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"it must be one of {', '.join(sorted(words))}."


def chosen(words: Collection[str], **field: Any) -> str:
    """A text that is one of the words.

    Raises:
        InputError: if it is not; with the nearest word.
    """
    ((name, value),) = field.items()
    if isinstance(value, str) and value in words:
        return value
    raise InputError(f"{name} is {value!r:.80}; {nearest(str(value), words)}")


def table(place: str, value: object, keys: Collection[str]) -> dict[str, Any]:
    """A table of known keys.

    Raises:
        InputError: if it is none, or has another key.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is {value!r:.60}; it must be a table.")
    for unknown in value.keys() - set(keys):
        raise InputError(f"{place} has an unknown key {unknown!r:.80}; {nearest(unknown, keys)}")
    return dict(value)


def tables(place: str, value: object) -> list[Any]:
    """An array of tables, each still unread.

    Raises:
        InputError: if it is none.
    """
    if not isinstance(value, list):
        raise InputError(f"{place} is {value!r:.60}; it must be an array of tables, [[{place}]].")
    return value


@contextmanager
def within(place: str) -> Iterator[None]:
    """Errors inside are told with the place where they are."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
