"""Values, errors and seeds in the messages of a sealed run, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.base import errors
from dpaudit.base.errors import DpAuditError, InputError

_NUMBERS = {"bool", *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))}
_WRITTEN = ({"array", "type", "shape"}, {"counts"}, {"list"})
_NUMBERS |= {"float16", "float32", "float64"}


def written(value: Any) -> Any:
    """A released value as JSON: a number, an array with its type, or counts of keys.

    >>> read(written(np.array([1, 2]))).dtype
    dtype('int64')
    """
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {"counts": [[key, count] for key, count in value.items()]}
    if isinstance(value, list):
        return {"list": [written(each) for each in value]}
    return value.item() if isinstance(value, np.generic) else value


def read(value: Any) -> Any:
    """What :func:`written` wrote."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["type"]).reshape(value["shape"])
    if "counts" in value:
        return dict(map(tuple, value["counts"]))
    return [read(each) for each in value["list"]]


def require_readable(value: Any) -> None:
    """Refuse what :func:`read` could not read, or not as numbers, texts and lists of these.

    Raises:
        InputError: if it is such a value.
    """
    try:
        if isinstance(value, dict) and value.keys() not in _WRITTEN:
            raise InputError("a parameter is not a number, text, list or array.")
        if isinstance(value, dict) and "array" in value and value["type"] not in _NUMBERS:
            raise InputError(
                "an array holds something other than numbers; it must hold integers, floats or "
                "booleans."
            )
        for each in value["list"] if isinstance(value, dict) and "list" in value else ():
            require_readable(each)
        read(value)
        json.dumps(value, allow_nan=False)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("a parameter is not a number, text, list or array.") from None


def field(message: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """A field of a message.

    Raises:
        InputError: if it lacks, or is of another type.
    """
    value = message.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{name} is a {type(value).__name__}; it must be of another type.")
    return value


def refusal(error: DpAuditError) -> dict[str, str]:
    """An error as a message; :func:`error_of` reads it."""
    return {"error": str(error), "kind": type(error).__name__}


def error_of(said: Mapping[str, Any]) -> DpAuditError:
    """The error of a message, of the kind that it says if this package has it."""
    kind = getattr(errors, str(said.get("kind")), InputError)
    known = isinstance(kind, type) and issubclass(kind, DpAuditError)
    return (kind if known else InputError)(str(said["error"]))


def generator(seed: Mapping[str, Any]) -> np.random.Generator:
    """The generator of a seed that is sent: its entropy, and which child of it."""
    return np.random.default_rng(np.random.SeedSequence(**seed))
