"""Processes that foreign code runs in: none is lost by Ctrl-C, none outlives its parent.

Audits, rehearsals and the commands' own child are started by it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator

CAN_FORK = hasattr(os, "fork")
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C until the end, so that no process is started that nobody knows of.

    The signal is put off by its handler: a mask would leave it to another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if pending and callable(before):
            before(signal.SIGINT, None)


def fork() -> int:
    """Return a copy of this process: 0 in the copy, which ends with its parent, and its id here."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: a copy has one
        child = os.fork()
    if child == 0:
        end_with(parent)
    return child


def end_with(parent: int) -> None:
    """End this process when its parent does, however that ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.5)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
    if os.getppid() != parent:  # it ended before this was known
        os._exit(1)


def ending(code: int | None) -> str:
    """Tell how a process ended, by its exit status, or its signal if that is negative."""
    if code is None:
        return "in an unknown way"
    if code >= 0:
        return f"exit status {code}"
    known = {each.value: each.name for each in signal.Signals}
    return known.get(-code, f"signal {-code}")
