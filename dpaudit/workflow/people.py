"""Budgets of very many people, whose names are in files, one a line."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dpaudit import files
from dpaudit.book import Book, charge_people
from dpaudit.book.people import KEY_BYTES
from dpaudit.errors import InputError
from dpaudit.plan import Plan

_LONGEST = 1000


def key_of(path: Path, *, make: bool = False) -> bytes:
    """The key that names people, of a file of its hexadecimal digits; made if there is none.

    Raises:
        InputError: if there is no key.
    """
    if make and not path.exists():
        with _beside(path) as file:
            file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
    text = files.read_text(path, what="key")
    with suppress(ValueError):
        if len(key := bytes.fromhex(text)) == KEY_BYTES:
            return key
    raise InputError(
        f"key {files.shown(path)} cannot be read; it must have {2 * KEY_BYTES} hexadecimal digits."
    )


def charge_file(
    book: Book, name: str, plan: Plan, people: Path, output: Path, *, key: Path, **told: Any
) -> Path:
    """Charge a plan to all people of a file, and write who of them may take part.

    The other arguments, and what may be wrong, are those of :func:`dpaudit.book.charge_people`.
    """
    if output.exists():
        raise InputError(f"output {files.shown(output)} exists already; give a new path.")
    with _beside(output) as file:

        def take(names: list[str]) -> None:
            file.writelines(f"{each}\n".encode() for each in names)

        charge_people(book, name, plan, _names(people), take, key=key_of(key), **told)
    return output


def _names(path: Path) -> Iterator[str]:
    with files.opened(path, what="people") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST + 3), b""), start=1):
            own = line.rstrip(b"\r\n")
            name = own.decode(errors="replace")
            if not 0 < len(own) <= _LONGEST or "\ufffd" in name:
                raise InputError(
                    f"line {number} of people {files.shown(path)} is no name; it must be UTF-8 "
                    f"text of 1 to {_LONGEST} bytes."
                )
            yield name


@contextmanager
def _beside(path: Path) -> Iterator[IO[bytes]]:
    """A file that its owner alone can read, and that is there once all is well."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".people-")
    except OSError as error:
        raise InputError(f"{files.shown(path)} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
