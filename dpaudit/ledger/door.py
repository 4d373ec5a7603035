"""One release at a time, of one thread, in the process that opened the ledger.

Admitting, charging, writing and drawing are one critical section: two threads cannot both be the
last admitted one, and a forked process, which has a copy of the noise's state and of the charges,
gets nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

from dpaudit.errors import ClosedLedgerError, InputError, PlanMismatchError


class _Process:
    """Stands for this process; a fork has another one, even where its number is the same."""


_process = _Process()


def _another_process() -> None:
    global _process
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_another_process)


class Door:
    """A lock that belongs to a process, that nobody passes twice, and that can be shut for good.

    ``with door.lock, door:`` is the critical section. The lock is entered and left by the
    interpreter itself, so that an interrupt at any place (Ctrl-C, a signal's handler) can neither
    leave it taken for ever nor slip past it.

    Attributes:
        refused: how often the plan admitted nobody.
    """

    def __init__(self) -> None:
        self._process = _process
        self._number = os.getpid()
        self._lock = threading.RLock()
        self._holder: FrameType | None = None
        self._shut = ""
        self.refused = 0

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock, for a thread of this process.

        Raises:
            ClosedLedgerError: if this is another process: it would wait for ever.
        """
        self.require_own_process()
        return self._lock

    def require_own_process(self) -> None:
        """Refuse a process that did not open the door, before anything else happens.

        Raises:
            ClosedLedgerError: if this is another one.
        """
        if self._process is not _process or self._number != os.getpid():
            raise ClosedLedgerError(
                f"the ledger belongs to process {self._number}; let that process release, as a "
                "copy would draw its noise again."
            )

    @property
    def is_shut(self) -> bool:
        """Whether nobody is let in any more."""
        return bool(self._shut)

    def shut(self, sentence: str) -> None:
        """Let nobody in any more; the first reason stays."""
        self._shut = self._shut or sentence

    def __enter__(self) -> None:
        caller = sys._getframe(1)
        if self._holder is not None and _is_above(self._holder, caller):
            raise InputError(
                "a release was asked for while another one is made; make one after the other."
            )
        if self._shut:
            raise ClosedLedgerError(self._shut)
        self._holder = caller  # what an interrupt has left behind is above nobody

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._holder = None
        self.refused += isinstance(error, PlanMismatchError)


def _is_above(frame: FrameType, caller: FrameType) -> bool:
    """Whether a frame is the caller, or among those that called it."""
    at: FrameType | None = caller
    while at is not None:
        if at is frame:
            return True
        at = at.f_back
    return False
