"""Files that are opened once, so that what was compared is what is copied and hashed.

Whoever can write in a folder could else exchange a file between two looks at its name.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode, which all names of one file share."""


@dataclass(frozen=True)
class FileContent:
    """What a file held when it was read, which file it was, and who might read it.

    Attributes:
        data: all its bytes.
        identity: which file it was.
        mode: its permissions.
    """

    data: bytes
    identity: Identity
    mode: int


def identity_of(status: os.stat_result) -> Identity:
    """Device and inode of a file."""
    return status.st_dev, status.st_ino


def read_without_links(path: Path, limit: int) -> FileContent:
    """Read a regular file once, by a path of which no part is a link.

    Each folder is opened in the one before, so that a link that comes in meanwhile leads nowhere.

    Args:
        path: absolute, as ``Path.resolve`` returns it.
        limit: of its bytes.

    Raises:
        OSError: if there is no such file, or a link; EINVAL if it is not regular, EFBIG if larger.
    """
    descriptor = _open_without_links(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit} bytes")
    return FileContent(data, identity_of(status), stat.S_IMODE(status.st_mode))


def _open_without_links(path: Path) -> int:
    entering = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY  # a folder need not be listed
    *folders, name = path.parts
    held = os.open(folders[0], entering | os.O_CLOEXEC)
    try:
        for each in folders[1:]:
            inner = os.open(each, entering | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            os.close(held)
            held = inner
        reading = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no pipe is awaited
        return os.open(name, reading, dir_fd=held)
    finally:
        os.close(held)
