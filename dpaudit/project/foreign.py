"""Running code that is not ours: whatever it raises becomes one sentence without its data.

Programs are called as functions: data as JSON on stdin, the answer on stdout.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from dpaudit.base import errors
from dpaudit.base.errors import DpAuditError, InputError, PublicError
from dpaudit.base.optional_import import lacking
from dpaudit.base.validate import shown
from dpaudit.ledger.checks import DEBUG, of_python

_OWN = Path(__file__).parents[1]
_DOOR = _OWN / "ledger"


@contextmanager
def foreign(name: str, *, public: bool = False) -> Iterator[None]:
    """Run a user's code.

    The message of an exception may hold a value of the data, so only its type and place are told.

    Args:
        name: of the code, for the sentence.
        public: whether it has seen no data, so that the message is told too.

    Raises:
        DpAuditError: in place of whatever the code raises, Ctrl-C apart. An error of dpaudit stays
            one of its kind, and keeps its text where it :func:`speaks_for_itself`.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if os.environ.get(DEBUG) or (isinstance(error, DpAuditError) and not _passed(error)):
            raise
        if isinstance(error, DpAuditError) and (public or speaks_for_itself(error)):
            place = "" if public or isinstance(error, PublicError) else place_of(error).strip()
            place = place and f" ({place})"
            said = f"{str(error).removesuffix('.')}{place}."
            raise _kind(error)(said) from None  # another one, without foreign frames
        missing = lacking(error, name) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            raise missing from None
        why = f": {_shortened(error)}" if public else ""
        raise _kind(error)(f"{name} raised {_named(error, why=why)}") from None


def error_summary(error: BaseException, where: str = "") -> str:
    """Say what may be said of an error of foreign code: its text, if ours, or type and place.

    Args:
        error: what was raised.
        where: it was raised, for the sentence.
    """
    if speaks_for_itself(error):
        return str(error)
    return _named(error, where, f": {_shortened(error)}" if os.environ.get(DEBUG) else "")


def _named(error: BaseException, where: str = "", why: str = "") -> str:
    hint = "" if os.environ.get(DEBUG) else f" ({DEBUG}=1 shows the rest)"
    return f"{type(error).__name__}{where}{place_of(error)}{why.rstrip('.')}{hint}."


def _shortened(error: BaseException) -> str:
    """Its words on one line, without half a one at the end."""
    return textwrap.shorten(f"{error!s:.2000}", 300, placeholder=" …")


def speaks_for_itself(error: BaseException) -> bool:
    """Tell whether an error is dpaudit's own, with nothing in its text that foreign code gave it.

    So are those with no foreign code beneath which they were raised, those of the ledger, whose
    sentences show no argument, and each :class:`~dpaudit.base.errors.PublicError`. What else of
    this package foreign code calls may be given a value of the data, and says what it was given.
    """
    if not _is_own_module(type(error).__module__):
        return False
    if isinstance(error, PublicError):
        return True
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = max((at for at, frame in enumerate(frames) if _is_foreign(frame)), default=-1)
    files = [frame.f_code.co_filename for frame in frames[last + 1 :]]
    return last < 0 or any(Path(file).is_relative_to(_DOOR) for file in files)


def _passed(error: BaseException) -> bool:
    """Tell whether an error passed through foreign code, or is of a class of it."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(map(_is_foreign, frames)) or not _is_own_module(type(error).__module__)


def _is_foreign(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file.startswith("<"):  # of no file, such as the constructor of a dataclass
        return not _is_own_module(str(frame.f_globals.get("__name__", "")))
    return not (Path(file).is_relative_to(_OWN) or of_python(file))


def _is_own_module(name: str) -> bool:
    return name.partition(".")[0] == __name__.partition(".")[0]


def _kind(error: BaseException) -> type[DpAuditError]:
    """The kind of error of this package that it is, which decides what a command ends with."""
    public = (each for each in type(error).__mro__ if each.__module__ == errors.__name__)
    kind: type[DpAuditError] = next(public, InputError)
    return InputError if kind is DpAuditError else kind  # which is raised by nobody but others


def place_of(error: BaseException) -> str:
    """Tell where in the user's code it was raised, or in a library's: " at FILE:LINE".

    Nothing is told where neither was on the way: a line of Python or of this package helps nobody.
    """
    frames = traceback.extract_tb(error.__traceback__)
    others = [
        f for f in frames if not (Path(f.filename).is_relative_to(_OWN) or of_python(f.filename))
    ]
    own = [f for f in others if "site-packages" not in f.filename and "<" not in f.filename]
    last = (own or others)[-1:]
    return f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""


class ProgramError(Exception):
    """A program ended with another exit status than 0.

    Attributes:
        said: the last line that it wrote on stderr, if any.
    """

    said: Sequence[str] = ()


@dataclass(frozen=True)
class Program:
    """A program and its arguments, started anew for every run.

    >>> Program.of("awk '{print $1 + 1}'")(2)
    3
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> Self:
        """The program of a command line, which no shell reads.

        Raises:
            InputError: if a quote is open, or there is no such program.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise InputError(f"--command is {shown(line)}: {error}; close its quotes.") from None
        if not words:
            raise InputError(f"--command is {shown(line)}; it must begin with a program.")
        if shutil.which(words[0]) is None:
            raise InputError(
                f"--command begins with {shown(words[0])}, which is no program on the PATH; check "
                "its name, or give its whole path."
            )
        return cls(tuple(words))

    def __call__(self, data: Any) -> Any:
        """Return what it prints: JSON, or else text.

        Raises:
            ProgramError: if it fails; what it wrote on stderr, which may be of the data, is beside
                its text.
        """
        given = json.dumps(data, ensure_ascii=False, default=_plain).encode()
        done = subprocess.run(self.words, input=given, capture_output=True, check=False)
        if done.returncode:
            failed = ProgramError(f"exit status {done.returncode}.")
            failed.said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise failed
        text = done.stdout.decode(errors="replace")
        try:
            return json.loads(text)
        except ValueError:
            return text.removesuffix("\n")


def _plain(value: Any) -> Any:
    """Arrays as lists, frames as rows."""
    return value.to_dict("records") if hasattr(value, "to_dict") else value.tolist()
