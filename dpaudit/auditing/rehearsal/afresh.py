"""The same subject with the state of a process that has just begun.

What a first run has left in its modules (a cache, a counter) would answer for every later run, and
hide that the answer came from private data.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Collection
from dataclasses import fields
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from dpaudit.fields import kinds_restored
from dpaudit.project import Subject
from dpaudit.project.sources import own_files

BY_A_COPY = ", by a new copy of the module"
"""What is added to the recipe of a neighbour on which the copy runs."""


def afresh(subject: Subject, *held: Any) -> Subject | None:
    """An equal subject of new copies of the project's modules, or None where there can be none.

    The modules are those that its code consists of. Only the subject's own is new where one of the
    others defines a mechanism of the plan, or a class of which an instance is in
    a field or in what is held, or where that cannot be seen: an instance of the copy's class would
    be another one. There is none where that holds of its own.

    Args:
        subject: whose module is loaded again.
        *held: data that it runs on, and results that are compared with those of the copy.
    """
    kind = type(subject)
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:  # of no module
        return None
    if file is None or kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        return None
    for modules in (_project(kind.__module__, Path(file)), {kind.__module__}):
        try:
            with kinds_restored():
                own = [getattr(subject, each.name) for each in fields(subject)]  # type: ignore[arg-type]
                _Foreign(modules).dump([own, held])
                made = _of_a_copy(subject, file, modules)
                if made.plan() == subject.plan():
                    return made
        except Exception:  # noqa: BLE001 - code that cannot be loaded twice stays as it is
            continue
    return None


class _Foreign(pickle.Pickler):
    """Sees all that objects hold, and refuses classes of some modules and their instances."""

    def __init__(self, modules: Collection[str]) -> None:
        super().__init__(BytesIO(), protocol=5, buffer_callback=lambda _: None)  # copies no array
        self.modules = modules

    def persistent_id(self, held: Any) -> None:
        kind = held if isinstance(held, type) else type(held)
        if kind.__module__ in self.modules:
            raise pickle.PicklingError("of a module that is loaded again")


@lru_cache(maxsize=8)  # code does not change while it is rehearsed
def _project(name: str, file: Path) -> set[str]:
    """The loaded modules that the code of a module consists of."""
    own, loaded = own_files(name, file), list(sys.modules.items())
    places = {each: getattr(module, "__file__", None) for each, module in loaded}
    return {name} | {each for each, at in places.items() if at and Path(at).resolve() in own}


def _of_a_copy(subject: Subject, file: str, modules: Collection[str]) -> Subject:
    kind = type(subject)
    before = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    try:
        again: Any = _loaded(kind.__module__, file)
    finally:
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(before)
    for name in kind.__qualname__.split("."):
        again = getattr(again, name)
    named = [each.name for each in fields(subject) if each.init]  # type: ignore[arg-type]
    values = {name: getattr(subject, name) for name in named}
    return cast("Subject", again(**values))


def _loaded(name: str, file: str) -> ModuleType:
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
