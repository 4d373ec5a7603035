"""Functions of users, whose errors may hold private values in their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpaudit.base.errors import InputError


class Hushed:
    """A function of which an error tells no more than its kind.

    Args:
        function: what is called.

    >>> Hushed(lambda age: age / 0)(39)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: <lambda> raised ZeroDivisionError; it must take whatever it is
    given.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *given: Any) -> Any:
        """As the function.

        Raises:
            InputError: in place of whatever it raises, which is no part of this one's context; it
                names the kind of Python's own, as other names are the user's words too.
            KeyboardInterrupt: without words, if it is interrupted.
        """
        try:
            return self.function(*given)
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything
            kind = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
        if issubclass(kind, KeyboardInterrupt):
            raise KeyboardInterrupt
        raise InputError(f"{self.name} raised {kind.__name__}; it must take whatever it is given.")

    @property
    def name(self) -> str:
        """Of the function, or of its class."""
        return str(getattr(self.function, "__qualname__", type(self.function).__name__))


def hushed(function: Callable[..., Any]) -> Hushed:
    """A function hushed, once."""
    return function if isinstance(function, Hushed) else Hushed(function)
