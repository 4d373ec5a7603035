"""No class compares by less than it holds: a cache would take two laws for one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass
from functools import cache

import dpaudit
import private_bo

ARRAY = re.compile(r"\b(Floats|NDArray|ndarray|Tails|Masses)\b")


@cache
def classes() -> tuple[type, ...]:
    """Every class that a module of the packages defines, where the module can be imported."""
    found: set[type] = set()
    for package in (dpaudit, private_bo):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if each.name.endswith("__main__"):
                continue
            try:
                module = importlib.import_module(each.name)
            except ImportError:  # of an extra that is not installed
                continue
            own = (one for one in vars(module).values() if inspect.isclass(one))
            found.update(one for one in own if one.__module__ == each.name)
    return tuple(sorted(found, key=lambda one: (one.__module__, one.__qualname__)))


def owner(kind: type) -> type:
    """The class whose equality an instance has."""
    return next(base for base in kind.__mro__ if "__eq__" in vars(base))


def names(kind: type) -> list[str]:
    return [each.name for each in fields(kind)] if is_dataclass(kind) else []


def generated(kind: type) -> bool:
    """Whether instances compare as the fields of a dataclass do."""
    made = vars(owner(kind)).get("__dataclass_params__")
    return made is not None and made.eq


def test_the_walk_sees_the_laws() -> None:
    seen = {one.__qualname__ for one in classes()}
    assert {"FinitePair", "VastPair", "AtomsPair", "GaussianPair", "RemovedPair"} <= seen
    assert len(seen) > 500


def test_no_class_inherits_an_equality_that_knows_other_fields() -> None:
    found = [one for one in classes() if generated(one) and names(owner(one)) != names(one)]
    assert found == []


def test_where_there_are_fields_some_are_compared() -> None:
    found = [one for one in classes() if generated(one) and names(one)]
    assert [one for one in found if not any(each.compare for each in fields(one))] == []


def test_no_arrays_are_compared_as_if_they_were_numbers() -> None:
    """Calls are compared by identity, whatever they take."""
    wrong = [
        f"{one.__qualname__}.{each.name}"
        for one in classes()
        if generated(one) and is_dataclass(one)
        for each in fields(one)
        if each.compare and "Callable" not in str(each.type) and ARRAY.search(str(each.type))
    ]
    assert wrong == []
