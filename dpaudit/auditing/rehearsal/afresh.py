"""The same subject with the state of a process that has just begun.

What a first run has left in its module (a cache, a counter) would answer for every later run, and
hide that the answer came from private data.
"""

from __future__ import annotations

import importlib.util
import inspect
import pickle
import sys
from dataclasses import fields
from io import BytesIO
from typing import Any, cast

from dpaudit.fields import kinds_restored
from dpaudit.project import Subject

__all__ = ["afresh"]


def afresh(subject: Subject, *held: Any) -> Subject | None:
    """An equal subject of a new copy of its module, or None where there can be none.

    Other modules that it imports are shared, as they are. There is none where the module defines a
    mechanism of the plan, or a class of which an instance is in a field or in what is held, or
    where that cannot be seen: an instance of the copy's class would be another one.

    Args:
        subject: whose module is loaded again.
        *held: data that it runs on, and results that are compared with those of the copy.
    """
    try:
        with kinds_restored():
            own = [getattr(subject, each.name) for each in fields(subject)]  # type: ignore[arg-type]
            _Foreign(type(subject).__module__).dump([own, held])
            made = _of_a_copy(subject)
            return made if made is not None and made.plan() == subject.plan() else None
    except Exception:  # noqa: BLE001 - code that cannot be loaded twice is rehearsed as it is
        return None


class _Foreign(pickle.Pickler):
    """Sees all that objects hold, and refuses classes of one module and their instances."""

    def __init__(self, module: str) -> None:
        super().__init__(BytesIO(), protocol=5, buffer_callback=lambda _: None)  # copies no array
        self.module = module

    def persistent_id(self, held: Any) -> None:
        kind = held if isinstance(held, type) else type(held)
        if kind.__module__ == self.module:
            raise pickle.PicklingError("of the module that is loaded again")


def _of_a_copy(subject: Subject) -> Subject | None:
    kind = type(subject)
    file = inspect.getsourcefile(kind)
    if file is None or kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        return None
    spec = importlib.util.spec_from_file_location(kind.__module__, file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(kind.__module__)
    sys.modules[kind.__module__] = module
    try:
        spec.loader.exec_module(module)
    finally:
        if before is not None:
            sys.modules[kind.__module__] = before
    again = module
    for name in kind.__qualname__.split("."):
        again = getattr(again, name)
    named = [each.name for each in fields(subject) if each.init]  # type: ignore[arg-type]
    values = {name: getattr(subject, name) for name in named}
    return cast("Subject", again(**values))  # type: ignore[operator]
