"""Budgets of very many people, whose names are in files, one a line."""

from __future__ import annotations

import os
import secrets
import tempfile
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.book import Book, charge_people
from dpaudit.book.people import KEY_BYTES, person
from dpaudit.plan import Plan

_LONGEST = 4000
"""Of a line that may be a name with blanks around it."""


def key_of(path: Path, *, make: bool = False) -> bytes:
    """The key that names people, of a file of its hexadecimal digits; made if there is none.

    Raises:
        InputError: if there is no key.
    """
    if make and not path.exists():
        with _new(path) as file:
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
    with _new(output) as file:

        def take(names: list[str]) -> None:
            file.writelines(f"{each}\n".encode() for each in names)

        charge_people(book, name, plan, _names(people), take, key=key_of(key), **told)
    return output


def _names(path: Path) -> Iterator[str]:
    with files.opened(path, what="people") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=1):
            own = line.removeprefix(BOM_UTF8) if number == 1 else line
            own = own.removesuffix(b"\n").removesuffix(b"\r")
            place = f"line {number} of people {files.shown(path)}"
            yield person(own.decode(errors="replace"), place)


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """A file that its owner alone can read, and that is there once all is well."""
    name = ""
    try:
        descriptor, name = _temporary(path.parent)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            _link(name or f"/proc/self/fd/{descriptor}", path)
    except FileExistsError:
        raise InputError(f"output {files.shown(path)} exists already; give a new path.") from None
    except OSError as error:
        raise InputError(f"{files.shown(path)} cannot be written: {error.strerror}.") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _temporary(folder: Path) -> tuple[int, str]:
    """A file without a name, where there are such, so that no call that is killed leaves people."""
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        if Path(f"/proc/self/fd/{descriptor}").exists():
            return descriptor, ""
        os.close(descriptor)
    return tempfile.mkstemp(dir=folder, prefix=".people-")


def _link(source: str, path: Path) -> None:
    """Give a file its name, in the place of no other."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # what /proc points to is linked only where the folder is given
        os.link(source, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
