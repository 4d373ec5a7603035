"""Files that the analyst may read, apart from the table that it may not.

Each is opened once, by a path without links; what is compared, copied and hashed is what was read
then. So a file of the folder that somebody swaps meanwhile is copied as it was, or not at all. A
file that not everybody on the machine may read is not public. The table is known by its inode,
whatever its names; before the first release it is compared again with all that was handed out, so
that it is none of these under another name either.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dpaudit.base import file_content
from dpaudit.base.errors import InputError
from dpaudit.base.file_content import FileContent, Identity
from dpaudit.sealed import sandbox
from dpaudit.sealed.store import ReadTable
from dpaudit.tables.engines.sources import identities

_MOST_PUBLIC = 100_000_000
"""Bytes of a public file."""
_OWNER = "owner.json"
"""What earlier runs told the owner alone; older versions let everybody read it."""


def table_files(table: ReadTable, readable: Sequence[Path]) -> frozenset[Identity]:
    """Which files the table is: its own, and the log of a database.

    Args:
        table: that is read.
        readable: what all code can read: Python, its packages, and those that come with this one.

    Raises:
        InputError: if it lies among these.
    """
    path, exists = getattr(table.source, "path", None), False
    with suppress(OSError):  # of a name that is too long for a file
        exists = path is not None and path.exists()
    if path is None or not exists:
        return frozenset()
    place = sandbox.refuse_within(path, readable)
    if place is not None:
        raise InputError(f"the table is in {place}, which all code can read; move it.")
    return identities(table.source)


def require_apart(table: frozenset[Identity], readable: Mapping[str, Identity]) -> None:
    """Refuse a file that is the table itself.

    Args:
        table: as :func:`table_files` finds it.
        readable: files that the code may read, by their names.

    Raises:
        InputError: if it is one of these.
    """
    for name, identity in readable.items():
        if identity in table:
            raise InputError(f"file {name!r:.80} is the table itself; code may not read it.")


def read_public(folder: Path, name: str) -> tuple[Path, FileContent]:
    """A file beside the code that the analyst may read: its place below the folder, and content.

    Raises:
        InputError: if it is another.
    """
    root = folder.resolve()
    path = root
    with suppress(OSError, ValueError):  # of a text that names no path
        path = (root / name).resolve()
    if path.is_relative_to(root) and path.name == _OWNER:
        raise InputError(f"file {name!r:.80} is the owner's alone; it cannot be public.")
    try:
        if path == root or not path.is_relative_to(root):
            raise FileNotFoundError
        content = file_content.read_without_links(path, _MOST_PUBLIC)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(f"file {name!r:.80} is larger than {_MOST_PUBLIC} bytes.") from None
        raise InputError(
            f"file {name!r:.80} is not a file in the folder of the code; name one."
        ) from None
    if not content.mode & stat.S_IROTH:  # as of what was written for the owner of the data alone
        raise InputError(
            f"file {name!r:.80} has mode {content.mode:04o}, but everybody must be able to read a "
            "public file; if nothing in it is private, let them by chmod o+r."
        )
    return path.relative_to(root), content
