"""Methods whose bodies stand in another module, one for each class.

A law says what a mechanism costs. What draws it is the ledger's, and what tries to tell it apart is
the auditors'; so a base class names the module that has the bodies, which is imported when one is
first asked for: what only computes costs never loads it. A class from outside the package defines
the method instead, as any subclass may. The nearest class counts, whichever way it has the method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Bodies:
    """The bodies of one method, by class."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module
        self.known: dict[type, Callable[..., Any]] = {}
        self.chosen: dict[type, Callable[..., Any]] = {}  # as found, until more is known

    def of(self, kind: type, method: Callable[..., Any]) -> Callable[..., Any]:
        """The implementation for a class, or else the method itself."""
        if kind not in self.chosen:
            own = self.owner(kind, methods=False)
            self.chosen[kind] = method if own is None else self.known[own]
        return self.chosen[kind]

    def owner(self, kind: type, *, methods: bool) -> type | None:
        """The nearest base with an implementation, or a method of its own; None where none has."""
        import_module(self.module)
        for each in kind.__mro__:
            own = vars(each).get(self.name)
            if each in self.known or (methods and own is not None and not hasattr(own, "bodies")):
                return each
        return None


def by_class(module: str) -> Callable[[_Method], _Method]:
    """Let a method run the implementation that a module has for the class of the object, if any.

    Args:
        module: its dotted name; it registers them with :func:`implementation`.
    """

    def made(method: _Method) -> _Method:
        bodies = _Bodies(method.__name__, module)

        @wraps(method)
        def run(instance: Any, *arguments: Any, **options: Any) -> Any:
            return bodies.of(type(instance), method)(instance, *arguments, **options)

        run.bodies = bodies  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return made


def implementation(method: Any, *kinds: type) -> Callable[[_Method], _Method]:
    """Register a function as the implementation of a method :func:`by_class`, for these classes."""

    def register(function: _Method) -> _Method:
        method.bodies.known.update(dict.fromkeys(kinds, function))
        method.bodies.chosen.clear()
        return function

    return register


def owner(method: Any, kind: type) -> type | None:
    """The nearest base that says what a method :func:`by_class` does for a class; None if none."""
    found: type | None = method.bodies.owner(kind, methods=True)
    return found
