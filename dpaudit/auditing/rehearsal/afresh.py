"""The same subject with the state of a process that has just begun.

What a first run has left in its module (a cache, a counter) would answer for every later run, and
hide that the answer came from private data.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import fields
from typing import cast

from dpaudit.fields import kinds_restored
from dpaudit.project import Subject

__all__ = ["afresh"]


def afresh(subject: Subject) -> Subject | None:
    """An equal subject of a new copy of its module, or None where there can be none.

    Other modules that it imports are shared, as they are. There is none where the module defines a
    mechanism of the plan: that of the copy would be another one.
    """
    try:
        with kinds_restored():
            made = _of_a_copy(subject)
            return made if made is not None and made.plan() == subject.plan() else None
    except Exception:  # noqa: BLE001 - code that cannot be loaded twice is rehearsed as it is
        return None


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
