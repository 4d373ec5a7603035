"""What draws noise, or has it drawn, belongs to one process, and there is one of it.

A copy of a generator, by a fork, a pickle or ``copy.deepcopy``, draws the same noise again, and the
difference of two releases with equal noise is that of the values. So ledgers, streams and whatever
draws for them inherit from here.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, NoReturn

from dpaudit.base.errors import ClosedLedgerError, InputError


class _Process:
    """Stands for this process; a fork has another one, even where its number is the same."""


_process = _Process()


def _another_process() -> None:
    global _process
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_another_process)


class Uncopied:
    """What nobody may copy or send."""

    called: ClassVar[str]
    """With an article, for the sentence."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InputError(
            f"{self.called} cannot be copied or sent to another process: a copy would draw "
            "the same noise again."
        )


class ProcessBound(Uncopied):
    """What nobody may copy or send, and no other process may use."""

    def __init__(self) -> None:
        self._process = _process
        self._number = os.getpid()

    def require_own_process(self) -> None:
        """Refuse a process that did not make this, before anything else happens.

        Raises:
            ClosedLedgerError: if this is another one.
        """
        if self._process is not _process or self._number != os.getpid():
            raise ClosedLedgerError(
                f"{self.called} belongs to process {self._number}; release in that process, "
                "because a copy would draw the same noise again."
            )
