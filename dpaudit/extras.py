"""Libraries that are no part of the core: imported where they are used, and told if missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpaudit.errors import UnsupportedError

__all__ = ["needed"]

_NAMES = {"sklearn": "scikit-learn"}
"""What libraries are called where it is not as they are imported."""


def needed(extra: str, module: str, *, what: str) -> Any:
    """A module of an optional library.

    Args:
        extra: of dpaudit, which installs the library.
        module: to import.
        what: cannot be done without it, for the sentence.

    Raises:
        UnsupportedError: if the library, or one that it needs itself, is not installed.

    Example:
        >>> needed("learn", "no_such_library", what="a learned score")
        Traceback (most recent call last):
            ...
        dpaudit.errors.UnsupportedError: a learned score needs no_such_library, which is not
        installed; install dpaudit[learn].
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise UnsupportedError(
            f"{what} needs {_NAMES.get(missing, missing)}, which is not installed; install "
            f"dpaudit[{extra}]."
        ) from None
