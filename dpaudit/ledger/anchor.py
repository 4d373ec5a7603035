"""Anchors: where the head of a journal is kept apart from the journal.

Whoever can write to a journal can drop its last lines, or go on with an older copy of it. An anchor
on another disk, or with somebody else, remembers how far the journal had come.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpaudit.base import files
from dpaudit.base.chain import lock
from dpaudit.base.errors import InputError, JournalError, TamperedError


@dataclass(frozen=True)
class AnchorState:
    """How far a journal had come.

    Attributes:
        journal: its identifier.
        lines: how many lines it had.
        head: hash of the last of them.
    """

    journal: str
    lines: int
    head: str


class Anchor(Protocol):
    """Keeps the head of a journal."""

    def state(self, journal: str) -> AnchorState | None:
        """What is known of a journal, or None."""

    def advance(self, state: AnchorState, after: AnchorState | None = None) -> None:
        """Remember how far a journal has come; raise JournalError if that cannot be done.

        ``after`` is what this writer last made it remember: where it remembers something else,
        another copy of the journal went on, and nothing is changed. None for the first line.
        """


class FileAnchor:
    """An anchor in a small file of its own, for one journal.

    Two records of fixed length are written in turn, so that one of them is whole at any time. Each
    has its check before and after what it says: a write that was cut off leaves two that differ,
    and the record before it counts; where they are one, and not that of what stands between them,
    the file was damaged, which is an error.

    Args:
        path: of the file; made with the first journal that uses it.
    """

    _LENGTH = 256

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def state(self, journal: str) -> AnchorState | None:
        """What the file says, if it is of that journal.

        Raises:
            InputError: if the file belongs to another journal, or is no anchor.
        """
        known = self.read()
        if known is not None and known.journal != journal:
            raise InputError(
                f"anchor {files.shown(self.path)} belongs to another journal; give each "
                "journal an anchor of its own."
            )
        return known

    def read(self) -> AnchorState | None:
        """What the file says, or None where there is not a file.

        Raises:
            InputError: if it is no anchor, or was damaged.
        """
        if not self.path.exists():
            return None
        return self._newest()[0]

    def _newest(self) -> tuple[AnchorState, int]:
        """The newest whole record, and its place."""
        data = files.read_bytes(self.path, what="anchor", limit=2 * self._LENGTH)
        records = data[: self._LENGTH], data[self._LENGTH :]
        if any(map(_is_damaged, records)):
            raise InputError(
                f"anchor {files.shown(self.path)} was damaged: a record has changed since it "
                "was written; restore the file."
            )
        states = [(state, n) for n, each in enumerate(records) if (state := _parsed(each))]
        if not states:
            raise InputError(
                f"anchor {files.shown(self.path)} is not an anchor; give the right file."
            )
        return max(states, key=lambda found: found[0].lines)

    def advance(self, state: AnchorState, after: AnchorState | None = None) -> None:
        """Write the record that is not the newest; see :class:`Anchor`.

        Raises:
            JournalError: if it cannot be written, or another copy of the journal went on.
        """
        text = f" {state.journal} {state.lines} {state.head} ".ljust(self._LENGTH - 2 * _CHECK - 1)
        check = hashlib.sha256(text.encode()).hexdigest()
        record = f"{check}{text}{check}\n"
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                lock(descriptor)
                known, place = self._newest() if os.fstat(descriptor).st_size else (None, 1)
                if after is not None and known != after:
                    raise JournalError(
                        f"anchor {files.shown(self.path)} has another line than this journal: "
                        "another copy of the journal continued."
                    )
                written = os.pwrite(descriptor, record.encode(), self._LENGTH * (1 - place))
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise JournalError(
                f"anchor {files.shown(self.path)} cannot be written: {error.strerror}."
            ) from None
        if written != self._LENGTH:
            raise JournalError(f"anchor {files.shown(self.path)} has no room for a whole record.")


_CHECK = 64


def _is_damaged(record: bytes) -> bool:
    """Whether both checks are one, so that it was written to its end, and not that of its text."""
    first, text, last = _parts(record)
    return first == last != _check(text) and bool(record)


def _parsed(record: bytes) -> AnchorState | None:
    """A record, if it is whole: one check does, as the other may be what was damaged."""
    first, text, last = _parts(record)
    try:
        if _check(text) not in (first, last):  # as they were until 0.1: with one check at the end
            text, _, last = record.rstrip().rpartition(b" ")
            if _check(text) != last:
                return None
        journal, lines, head = text.decode("ascii").split()
        return AnchorState(journal, int(lines), head)
    except ValueError:
        return None


def _parts(record: bytes) -> tuple[bytes, bytes, bytes]:
    return record[:_CHECK], record[_CHECK : -_CHECK - 1], record[-_CHECK - 1 : -1]


def _check(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


class AnchorCheck:
    """Compares a journal, line by line as it is read, with what an anchor knows of it.

    The journal may be one write ahead, as lines are written before their anchor is: of one line, or
    of several that say how many of the same write follow.

    Args:
        journal: its identifier.
        anchor: what kept its head.

    Attributes:
        known: what it knows.

    Raises:
        InputError: if the anchor knows nothing of this journal.
    """

    def __init__(self, journal: str, anchor: Anchor) -> None:
        known = anchor.state(journal)
        if known is None:
            raise InputError("the anchor does not know this journal; give the right anchor.")
        self.known = known
        self._ahead = known.lines + 1

    def see(self, line: int, head: str, more: int = 0) -> None:
        """One more line, counted from 1, its hash, and how many follow it of the same write.

        Raises:
            TamperedError: if it is not the one that was anchored.
        """
        if line == self.known.lines + 1:
            self._ahead = line + more
        if line == self.known.lines and head != self.known.head:
            raise TamperedError(
                f"line {line} of the journal is not the one that was anchored: this is a copy "
                "that continued differently."
            )

    def finish(self, lines: int) -> None:
        """The journal ends here.

        Raises:
            TamperedError: if lines that the anchor knows are missing, or the journal went on
                without its anchor.
        """
        if lines < self.known.lines:
            raise TamperedError(
                f"the journal has {lines} lines, and the anchor knows {self.known.lines}: its "
                "last lines were dropped, or this is an older copy."
            )
        if lines > self._ahead:
            raise TamperedError(
                f"the journal has {lines - self.known.lines} more lines than were anchored: "
                "it continued without its anchor."
            )
