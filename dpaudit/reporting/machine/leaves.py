"""A JSON record as a flat list, for formats that know only names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpaudit.base import files


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a record with its path, mappings in alphabetical order.

    Lists of numbers alone, and what is empty, count as one value.

    >>> list(leaves({"b": [{"c": None}], "a": [1, 2.5], "d": {}}))
    [('a', '[1,2.5]'), ('b[0].c', 'null'), ('d', '{}')]
    """
    if isinstance(value, Mapping) and value:
        for name, item in sorted(value.items()):
            yield from leaves(item, f"{path}.{name}" if path else str(name))
    elif _is_nested(value):
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}[{place}]")
    else:
        yield path, scalar(value)


def scalar(value: Any) -> str:
    """A text as it is, everything else as JSON."""
    return value if isinstance(value, str) else files.canonical_json(value)


def _is_nested(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return any(isinstance(item, bool) or not isinstance(item, int | float) for item in value)
