"""One release at a time, of one thread, in the process that opened the ledger.

Admitting, charging, writing and drawing are one critical section: two threads cannot both be the
last admitted one, nor can two greenlets of one thread, and a forked process, which has a copy of
the noise's state and of the charges, gets nothing.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar

from dpaudit.base.errors import ClosedLedgerError, InputError, PlanMismatchError
from dpaudit.ledger.process_bound import ProcessBound


class ReleaseGate(ProcessBound):
    """A lock that belongs to a process, that nobody passes twice, and that can be shut for good.

    ``with door.lock, door:`` is the critical section. The lock is entered and left by the
    interpreter itself, so that an interrupt at any place (Ctrl-C, a signal's handler) can neither
    leave it taken for ever nor slip past it. Nothing that runs in the thread within the section, a
    budget, a handler or another greenlet, is let in.

    Attributes:
        refused: how often the plan admitted nobody.
        unfinished: whether a charge, or a step of a stream, is being written and counted. What an
            interrupt cuts off in the middle stays so, and nobody is let in any more.
    """

    called: ClassVar[str] = "the ledger"

    def __init__(self) -> None:
        super().__init__()
        self._lock: Any = threading.RLock()
        self._shut = ""
        self.refused = 0
        self.unfinished = False

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock, for a thread of this process that does not hold it.

        Raises:
            ClosedLedgerError: if this is another process: it would wait for ever.
            InputError: if a release of this thread is not done yet.
        """
        self.require_own_process()
        if self._lock._is_owned():  # of the thread, whichever of its stacks has it
            raise InputError(
                "a release was requested while another one is being made; make one after the other."
            )
        return self._lock  # type: ignore[no-any-return]

    @property
    def is_shut(self) -> bool:
        """Whether nobody is let in any more."""
        return bool(self._shut) or self.unfinished

    def shut(self, sentence: str) -> None:
        """Let nobody in any more; the first reason stays."""
        self._shut = self._shut or sentence

    def __enter__(self) -> None:
        if self.unfinished:
            self.shut(
                "the ledger is closed, because a release was interrupted while it was "
                "charged; resume from its journal, or open a new ledger."
            )
        if self._shut:
            raise ClosedLedgerError(self._shut)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.refused += isinstance(error, PlanMismatchError)
