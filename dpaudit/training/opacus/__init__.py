"""Trainings with opacus in a ledger.

Names load when they are asked for, as opacus and torch take seconds; a missing one is a sentence.
"""

from typing import Any

import lazy_loader

from dpaudit.base.optional_import import lacking

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is asked for.

    Raises:
        UnsupportedError: if it needs opacus or torch, and that is not installed.
    """
    try:
        return _loaded(name)
    except ModuleNotFoundError as error:
        raise lacking(error, f"opacus.{name}") or error from None
