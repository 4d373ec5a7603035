"""Hash-chained files: JSON lines, each with the hash of the line before.

A line is in the file before its writer goes on, or an error is raised and the file is as it was. An
edited, removed, added or moved line breaks the chain. A last line that was cut off, by a crash
while it was written, is told apart from one that was edited.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.base import files
from dpaudit.base.errors import InputError, JournalError, TamperedError

_WHOLE_LINE = re.compile(rb'"hash":"[0-9a-f]{64}".')
_LONGEST_LINE = files.MAX_JSON_BYTES
"""The first line of a journal holds a plan; no other is nearly so long."""


class Durability(StrEnum):
    """The accidents that a written line survives."""

    PROCESS = "process"
    """The end of the process, however violent: the operating system has the line."""
    POWER = "power"
    """The loss of power too: the line is synced to the disk, which takes milliseconds."""


class _End(NamedTuple):
    """The place of a writer: hash of the last line, number of lines, bytes of the file."""

    head: str
    number: int
    length: int


class Chain:
    """A chained file that is open for appending, by one process at a time.

    Attributes:
        path: of the file.
        durability: what a written line survives.
    """

    def __init__(
        self, path: Path, descriptor: int, head: str, number: int, durability: Durability
    ) -> None:
        self.path = path
        self.durability = durability
        self._descriptor = descriptor
        # One value, so that an interrupt after a write leaves all of it behind, which the length
        # of the file then shows.
        self._end = _End(head, number, os.fstat(descriptor).st_size)

    @classmethod
    def create(cls, path: Path | str, header: Mapping[str, Any], durability: Durability) -> Chain:
        """Start a file with its first line.

        Raises:
            InputError: if the file exists or cannot be created.
            JournalError: if the line cannot be written; no file is left then.
        """
        path = Path(path)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o666)
        except FileExistsError:
            raise _there(path) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not a path"
            raise _not_created(path, reason) from None
        chain = cls(path, descriptor, "", 0, durability)
        try:
            chain._lock()
            chain.append(header)
            if durability is Durability.POWER:
                _sync_folder(path.parent)
        except BaseException:
            chain.release()
            path.unlink(missing_ok=True)
            raise
        return chain

    @classmethod
    def resume(cls, path: Path | str, durability: Durability) -> tuple[Chain, ChainEnd]:
        """Hold a file in order to go on with it; :meth:`trim` it before anything is appended.

        Raises:
            TamperedError: if the chain is broken.
            InputError: if the file is missing, cannot be written, or is open elsewhere.
        """
        path = Path(path)
        check_chain(path)  # a sentence for what is no chained file, before anything is opened
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(
                f"journal {files.shown(path)} cannot be opened: {error.strerror}; give a "
                "writable path."
            ) from None
        chain = cls(path, descriptor, "", 0, durability)
        try:
            chain._lock()
            end = check_chain(path)  # nobody writes to it from here on
        except BaseException:
            chain.release()
            raise
        chain._end = chain._end._replace(head=end.head, number=end.lines)
        return chain, end

    @property
    def head(self) -> str:
        """Hash of the last line."""
        return self._end.head

    @property
    def number(self) -> int:
        """How many lines there are."""
        return self._end.number

    def trim(self, end: ChainEnd) -> None:
        """Drop a last line that was cut off, so that the next one follows a whole one.

        Raises:
            JournalError: if the file cannot be changed.
        """
        try:
            os.ftruncate(self._descriptor, end.whole_bytes)
            self._end = self._end._replace(length=end.whole_bytes)
            if not end.ends:
                self._write(b"\n", self.head, self.number)
        except OSError as error:
            raise JournalError(
                f"journal {files.shown(self.path)} cannot be written: {error.strerror}."
            ) from None

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write a line for each record, all of them or none.

        Raises:
            JournalError: if they cannot be written; the file is then as it was before, as far as
                the operating system allows.
        """
        head, lines = self.head, []
        for number, record in enumerate(records, start=self.number):
            line, head = chained_line(record, number, head)
            lines.append(line)
        self._write(b"".join(lines), head, self.number + len(lines))

    def release(self) -> None:
        """Close the file, and let others have it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)  # which gives the lock back
            self._descriptor = -1

    def _write(self, data: bytes, head: str, number: int) -> None:
        reason = ""
        try:
            state = os.fstat(self._descriptor)
            if state.st_size != self._end.length or state.st_nlink == 0:
                reason = "somebody else changed or removed it"
            elif os.write(self._descriptor, data) != len(data):
                reason = "there is no room for a whole line"
            elif self.durability is Durability.POWER:
                os.fdatasync(self._descriptor)
        except OSError as error:
            reason = error.strerror or type(error).__name__
        if reason:
            self._cut_back()
            raise JournalError(f"journal {files.shown(self.path)} cannot be written: {reason}.")
        self._end = _End(head, number, self._end.length + len(data))

    def _cut_back(self) -> None:
        """Take half a line away again; a reader would take it for a crash, which it was."""
        with suppress(OSError):
            if os.fstat(self._descriptor).st_size > self._end.length:
                os.ftruncate(self._descriptor, self._end.length)

    def _lock(self) -> None:
        """Keep other writers out, in this process and in others."""
        try:
            lock(self._descriptor, wait=False)
        except OSError:
            raise InputError(
                f"journal {files.shown(self.path)} is open elsewhere; it has one writer at a time."
            ) from None


def require_new(path: Path | str) -> None:
    """Refuse a path at which no file can be started.

    Raises:
        InputError: if something is there, or its folder is missing or cannot be written.
    """
    path = Path(path)
    if "\0" in str(path):
        raise _not_created(path, "it is not a path")
    if os.path.lexists(path):
        raise _there(path)
    if not path.parent.is_dir():
        raise _not_created(path, "its folder does not exist")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _not_created(path, "its folder cannot be written")


def _there(path: Path) -> InputError:
    other = "resume it (Ledger.resume), give a new path, or remove it if its run released nothing"
    return InputError(f"journal {files.shown(path)} already exists; {other}.")


def _not_created(path: Path, reason: str) -> InputError:
    return InputError(
        f"journal {files.shown(path)} cannot be created: {reason}; give a writable path."
    )


def lock(descriptor: int, *, wait: bool = True) -> None:
    """Hold a file until it is closed, where the system can; then only its length tells.

    Raises:
        OSError: if it is held elsewhere, and one does not wait.
    """
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@dataclass(frozen=True)
class ChainEnd:
    """The end of a chained file, after the whole chain was checked.

    Attributes:
        head: hash of the last whole line.
        lines: how many whole lines there are.
        cut: whether a last line was cut off (and left out here).
        ends: whether the last whole line has its end; if not, only that is missing.
        whole_bytes: length of the whole lines.
    """

    head: str
    lines: int
    cut: bool
    ends: bool
    whole_bytes: int


def walk_chain(path: Path | str) -> Generator[Mapping[str, Any], None, ChainEnd]:
    """Yield the lines of a chained file, each with ``number``, ``previous`` and ``hash``.

    Memory is that of one line, however long the file is.

    Raises:
        TamperedError: naming the first line that does not follow from the one before.
        InputError: if the file is missing or is none.
    """
    head, number, whole, ends, cut = "", 0, 0, True, False
    name = f"journal {files.shown(path)}"
    with files.opened(path, what="journal") as file:
        while line := file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise InputError(f"{name} is no journal: a line has over {_LONGEST_LINE} bytes.")
            ends = line.endswith(b"\n")
            cut = not ends and not _WHOLE_LINE.search(line)
            if cut:
                ends = True
                break
            # All but its end may have been written, so what it says may have happened.
            record = checked_line(line.removesuffix(b"\n"), number, head, name)
            head, number, whole = record["hash"], number + 1, whole + len(line)
            yield record
    if not number:
        raise InputError(f"{name} has no first line; give one of a run.")
    return ChainEnd(head, number, cut, ends, whole)


def check_chain(path: Path | str) -> ChainEnd:
    """Return the end of a chained file whose chain holds.

    Raises:
        TamperedError: naming the first line that does not follow from the one before.
        InputError: if the file is missing or is none.
    """
    lines = walk_chain(path)
    while True:
        try:
            next(lines)
        except StopIteration as stop:
            end: ChainEnd = stop.value
            return end


def chained_line(record: Mapping[str, Any], number: int, previous: str) -> tuple[bytes, str]:
    """Return one line: canonical JSON, to which its own hash is added; and that hash."""
    text = files.canonical_json({**record, "number": number, "previous": previous}).encode()
    own = hashlib.sha256(text).hexdigest()
    return text[:-1] + f',"hash":"{own}"}}\n'.encode(), own


def checked_line(line: bytes, number: int, head: str, name: str) -> dict[str, Any]:
    """Check that a line of a file, without its end, is whole and follows the one before.

    Raises:
        TamperedError: naming the line.
    """
    place = f"line {number + 1} of {name}"
    try:
        record: dict[str, Any] = files.parse_json(line.decode(), what="line")
        claimed = record.pop("hash")
        own = {name: value for name, value in record.items() if name not in ("number", "previous")}
        written, computed = chained_line(own, record["number"], record["previous"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        hint = " (it ends as lines of Windows do)" if line.endswith(b"\r") else ""
        raise TamperedError(f"{place} is not a line of a journal{hint}.") from None
    if claimed != computed or written != line + b"\n":
        raise TamperedError(f"{place} was edited: its hash does not match; restore a copy.")
    if record["number"] != number or record["previous"] != head:
        raise TamperedError(
            f"{place} does not follow line {number}: lines are missing or moved; restore a copy."
        )
    return record | {"hash": claimed}


def _sync_folder(folder: Path) -> None:
    """Return the name of a new file is in its folder for good."""
    with suppress(OSError):  # not every system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
