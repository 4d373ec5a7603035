"""Trainings of models through a ledger, and attacks on members.

``fit`` and ``Trainer`` take a loss of one example; beside them are trainings with opacus, Hugging
Face and Flower. An application: it goes with this folder and its line in
:mod:`dpaudit.base.applications`. Names load when they are asked for, as torch takes seconds.
"""

from typing import Any

import lazy_loader

from dpaudit.base.optional_import import lacking

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is asked for.

    Raises:
        UnsupportedError: if it needs torch, and that is not installed.
    """
    try:
        return _loaded(name)
    except ModuleNotFoundError as error:
        raise lacking(error, f"training.{name}") or error from None
