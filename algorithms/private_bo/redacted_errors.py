"""Functions of users: their errors may hold private values in their words, and are not told.

An error raised inside a user's function is told by its kind and line alone. A function that is
named in a project file is known by its name and the bytes of its code, so that a certificate can
say which one was run.
"""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError

_RECORDS = (
    "give records of the kind that the line works with (where no data are named, they are the "
    "numbers 0, 1, …)"
)
_WANTED: dict[type, str] = {
    KeyError: ", so give each record the key that the line reads",
    IndexError: ", so give each record the entry that the line reads",
    TypeError: f", so let it take the arguments that it is called with, and {_RECORDS}",
    AttributeError: f", so {_RECORDS}",
}
"""What is likely to be wrong, by the kind of an error alone."""


class ExitError(PublicError):
    """A user's function asked for the end of the process, which no study may go on after."""


_OF_A_SCRIPT = 1 << 9
"""Flag of classes that a ``class`` statement made: their names, and modules, are the user's."""


def python_kind(value: object) -> type:
    """The nearest class of Python's own: names of others may hold a user's words."""
    own = (each for each in type(value).__mro__ if not each.__flags__ & _OF_A_SCRIPT)
    return next(each for each in own if each.__module__ == "builtins")


class RedactedFunction:
    """A function of which an error tells no more than its kind, and the line of a file.

    Args:
        function: what is called.

    >>> RedactedFunction(lambda age: age / 0)(39)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.PublicError: <lambda> raised ZeroDivisionError; it must take whatever it is
    given.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *given: Any) -> Any:
        """As the function.

        Raises:
            PublicError: in place of whatever it raises, which is no part of this one's context; it
                names the kind of Python's own, as other names are the user's words too. It is an
                ExitError in place of a SystemExit.
            KeyboardInterrupt: without words, if it is interrupted.
        """
        try:
            return self.function(*given)
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything
            kind = python_kind(error)
            place = self._place(error)
        if issubclass(kind, KeyboardInterrupt):
            raise KeyboardInterrupt
        raise (ExitError if issubclass(kind, SystemExit) else PublicError)(
            f"{self.name} raised {kind.__name__}{place}; it must take whatever it is given"
            f"{_WANTED.get(kind, '')}."
        )

    def _place(self, error: BaseException) -> str:
        """The last line of the function's own file that ran; of what has no file nothing."""
        file = getattr(getattr(self.function, "__code__", None), "co_filename", "<")
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == file]
        return "" if file.startswith("<") or not lines else f" at {Path(file).name}:{lines[-1]}"

    @property
    def name(self) -> str:
        """Of the function, or of its class."""
        return str(getattr(self.function, "__qualname__", type(self.function).__name__))


def redact(function: Callable[..., Any]) -> RedactedFunction:
    """A function redacted, once."""
    return function if isinstance(function, RedactedFunction) else RedactedFunction(function)


class NamedFunction(RedactedFunction):
    """A function that a certificate tells by its name and the hash of its source.

    Args:
        function: what is called.
    """

    def __repr__(self) -> str:
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            return f"{self.name}, without source"
        return f"{self.name}, sha256 of its source {hashlib.sha256(source.encode()).hexdigest()}"


def as_named(**given: Any) -> NamedFunction | None:
    """The value as a named function, or None."""
    ((name, value),) = given.items()
    if value is None or isinstance(value, NamedFunction):
        return value
    if not callable(value):
        raise InputError(f"{name} is {validate.shown(value)}; it must be a function.")
    return NamedFunction(value)
