"""What rides on an object beside what it shows: whoever is handed the object is handed it too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

_OWN = __name__.partition(".")[0]
_PLAIN: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, list, dict, tuple, set, frozenset),
    *(np.generic, np.ndarray),
)
"""What a class may hold for all of its objects, beside its methods."""
_EXACT = {
    *(type(None), bool, int, float, complex, str, bytes, bytearray, list, dict, tuple, set),
    *(frozenset, np.ndarray, np.ma.MaskedArray, date, datetime, time, timedelta, Decimal, Fraction),
}
_HOLDING = (list, tuple, dict, set, frozenset)
_LIBRARIES = ("pandas", "polars", "scipy", "torch")
"""Whose tables, matrices and tensors are read."""


def is_plain(value: Any) -> bool:
    """Tell whether an object is of a kind that is read to the end: data, and nothing that computes.

    Classes of one's own may hold anything out of sight; records are read, of a dataclass or a named
    tuple that a module defines and that hold their fields alone.
    """
    kind = type(value)
    if kind in _EXACT:
        return kind not in _HOLDING or not any(map(_is_disguised, value))
    if isinstance(value, np.generic) and kind.__module__ == "numpy":
        return True
    if isinstance(value, type | ModuleType):
        return False
    if kind.__module__.partition(".")[0] in _LIBRARIES:
        return hasattr(value, "shape")
    own = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    if not own or any(isinstance(held, property) for held in vars(kind).values()):
        return False
    if kind.__bases__ == (tuple,):
        return hasattr(kind, "_fields")
    names = {each.name for each in fields(kind)} if is_dataclass(kind) else None
    return kind.__bases__ == (object,) and type(kind) is type and names == set(_held(value))


def _is_disguised(value: Any) -> bool:
    """Tell whether it is a number or a text that may show another one."""
    kind = type(value)
    known = kind in _EXACT or kind.__module__ == "numpy"
    return isinstance(value, int | float | str | bytes) and not known


class Unread:
    """Stands for what no test can read."""


def riding(value: Any) -> dict[str, Any]:
    """Return what an object carries that its numbers, text or fields do not show, by name."""
    if isinstance(value, type | ModuleType):
        return {}  # which are unread as they are
    if isinstance(value, np.ndarray | np.generic):
        return _of_array(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(value)
    found = dict(_of_class(type(value)))
    if any(hasattr(value, shown) for shown in ("to_numpy", "to_dict", "__array__")):
        found |= {name: each for name, each in _held(value).items() if not name.startswith("_")}
        found |= {"attrs": attrs} if (attrs := getattr(value, "attrs", None)) else {}
    return found


def _held(value: Any) -> Mapping[str, Any]:
    return getattr(value, "__dict__", {})


def _of_array(value: Any) -> dict[str, Any]:
    whole: Any = getattr(value, "base", None)
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    size = getattr(whole, "nbytes", None)
    found: dict[str, Any] = {} if whole is None or size == value.nbytes else {"base": whole}
    metadata = value.dtype.metadata
    return found | ({"dtype.metadata": dict(metadata)} if metadata else {})


def _of_tensor(value: Any) -> dict[str, Any]:
    found = dict(_held(value))
    if value.layout is sys.modules["torch"].strided:
        store = value.untyped_storage()
        if store.nbytes() != value.numel() * value.element_size():
            found["storage"] = bytes(store)
    if value.is_leaf and value.grad is not None:
        found["grad"] = value.grad
    if value.grad_fn is not None:
        found["graph"] = Unread()  # holds what it was computed from
    return found


def _of_class(kind: type) -> dict[str, Any]:
    """Return what classes of one's own hold, as text or numbers."""
    own = (each for each in kind.__mro__ if not _of_library(each))
    return {
        f"{each.__name__}.{name}": held
        for each in own
        for name, held in vars(each).items()
        if isinstance(held, _PLAIN) and not name.startswith("__")
    }


@cache
def _of_library(kind: type) -> bool:
    """Tell whether a class is Python's, or was installed."""
    package = kind.__module__.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in (*sys.stdlib_module_names, _OWN) or "site-packages" in file
