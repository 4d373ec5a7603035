"""Programs as functions: data as JSON on stdin, the answer on stdout."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown


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
        if not words or shutil.which(words[0]) is None:
            raise InputError(f"--command is {shown(line)}; it must begin with a program.")
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
