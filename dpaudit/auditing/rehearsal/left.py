"""What code leaves behind when it returns, which no report of the interpreter shows in time.

Threads that go on, writes through files that were open before, and calls at the process's end.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import stat
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["Left", "importing"]

SETTLE = 0.2
"""Seconds that threads are waited for which code has left behind, once for each thread."""
_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
OPEN, STANDARD = 256, 3
"""Numbers of open files that are looked at, and of the streams among them."""


class Left:
    """What is there before any code runs, so that what is new is the code's."""

    def __init__(self) -> None:
        self._threads = {each.native_id for each in threading.enumerate()}
        self._waited: set[int | None] = set()
        weakref.finalize(self, int)  # the first one of a process asks for a call at its end
        self._buffers = [each for each in gc.get_objects() if issubclass(type(each), _BUFFERED)]

    def is_new(self, thread: int | None) -> bool:
        """Whether a thread, by its native identifier, has begun since."""
        return thread not in self._threads

    @contextmanager
    def seen(self, outside: list[str]) -> Iterator[None]:
        """Add what the code left that runs meanwhile, after waiting for its threads."""
        before, calls, modules = self._files(), atexit._ncallbacks(), len(sys.modules)
        try:
            yield
        finally:
            self._wait()
            after = self._files()
            if any(after.get(file, state) != state for file, state in before.items()):
                outside.append("writes to a file that was open before")
            if atexit._ncallbacks() > calls and len(sys.modules) == modules:  # or a library's
                outside.append("asks for a call at the end of the process")

    def _wait(self) -> None:
        end = time.monotonic() + SETTLE
        for each in threading.enumerate():
            if self.is_new(each.native_id) and each.native_id not in self._waited:
                self._waited.add(each.native_id)
                with suppress(RuntimeError):  # this thread itself, where it has begun since
                    each.join(max(0.0, end - time.monotonic()))

    def _files(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """Size and time of regular files open for writing, but for those of standard streams.

        Nothing else says so early that a file was written to which code keeps open.
        """
        for each in self._buffers:
            with suppress(Exception):  # closed meanwhile, or nobody's to flush
                each.flush()
        found, standard = {}, set()
        for number in range(OPEN):
            with suppress(OSError):  # not open
                held = os.fstat(number)
                file = (held.st_dev, held.st_ino)
                if number < STANDARD:
                    standard.add(file)
                elif stat.S_ISREG(held.st_mode) and file not in standard and _writable(number):
                    found[number, *file] = (held.st_size, held.st_mtime_ns)
        return found


def _writable(number: int) -> bool:
    try:
        from fcntl import F_GETFL, fcntl
    except ImportError:
        return True
    return fcntl(number, F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def importing() -> bool:
    """Whether a module is being loaded, which may do what it likes: it has seen no data."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("importlib._bootstrap"):
            return True
        frame = frame.f_back
    return False
