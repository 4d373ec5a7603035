"""One function for each way of measuring a row; rows name it as ``module.function``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from audits.paper_rows.measured import Measured
from dpaudit.base.errors import InputError

__all__ = ["measuring"]


def measuring(name: str) -> Callable[..., Measured]:
    """The function of that name, such as ``local.panel``.

    Raises:
        InputError: if there is none.
    """
    module, _, function = name.partition(".")
    try:
        found: Any = getattr(import_module(f"{__name__}.{module}"), function)
    except (ImportError, AttributeError):
        raise InputError(
            f"measure is {name!r}; it must be module.function of {__name__}."
        ) from None
    return found  # type: ignore[no-any-return]
