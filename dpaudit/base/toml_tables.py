"""Tables that people write: unknown keys are refused with the nearest right one.

Plan files, project files and policies are read by it; every error names the place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown

_LONGEST = 100
"""Of a longer word no other is near, and to compare it would take long."""
_NAMED = 20


class KeysError(InputError):
    """A key or a kind is unknown or missing, so that an example helps more than a rule."""


def nearest(word: object, words: Collection[str]) -> str:
    """Return the end of a sentence that says what would be right.

    >>> nearest("epsilom", ["delta", "epsilon"]), nearest("x", ["delta", "epsilon"])
    ("did you mean 'epsilon'?", 'it must be one of delta, epsilon.')
    """
    if not words:
        return "it takes none."
    if isinstance(word, str) and len(word) <= _LONGEST and len(words) <= 10 * _LONGEST:
        known = {str(each).lower(): str(each) for each in words}
        for close in get_close_matches(word.lower(), known, n=1):
            return f"did you mean {known[close]!r}?"
    named = ", ".join(f"{each:.80}" for each in sorted(set(words))[:_NAMED])
    return f"it must be one of {named}{' …' if len(words) > _NAMED else '.'}"


def chosen(words: Collection[str], **field: Any) -> str:
    """Return a text that is one of the words.

    Raises:
        InputError: if it is not; with the nearest word.
    """
    ((name, value),) = field.items()
    if isinstance(value, str) and value in words:
        return value
    raise KeysError(f"{name} is {shown(value)}; {nearest(value, words)}")


def table(place: str, value: object, keys: Collection[str]) -> dict[str, Any]:
    """Return a table of known keys.

    Raises:
        InputError: if it is none, or has another key.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is {shown(value)}; it must be a table.")
    for unknown in value.keys() - set(keys):
        raise KeysError(f"{place} has an unknown key {shown(unknown)}; {nearest(unknown, keys)}")
    return dict(value)


def tables(place: str, value: object) -> list[Any]:
    """Return an array of tables, each still unread.

    Raises:
        InputError: if it is none.
    """
    if not isinstance(value, list):
        raise InputError(f"{place} is {shown(value)}; it must be an array of tables, [[{place}]].")
    return value


@contextmanager
def within(place: str) -> Iterator[None]:
    """Tell errors inside with the place where they are."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


@contextmanager
def with_example(example: str) -> Iterator[None]:
    """End errors inside that concern keys or kinds with a correct example."""
    try:
        yield
    except KeysError as error:
        raise InputError(f"{str(error).removesuffix('.')}; for example: {example}.") from None


def inline(value: object) -> str:
    """Return a value as TOML, on one line.

    >>> inline({"scheme": "poisson", "rate": 0.01}), inline([1, 2.5, True])
    ('{ scheme = "poisson", rate = 0.01 }', '[1, 2.5, true]')
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key(name)} = {inline(each)}' for name, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    # The texts and numbers of JSON are those of TOML, but for infinities and one character.
    return (
        "inf"
        if value == math.inf
        else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    )


def key(name: str) -> str:
    """Return a key as TOML: bare where it may be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else inline(name)
