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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any
from unittest import mock

__all__ = ["Left", "importing"]

SETTLE = 0.2
"""Seconds that threads are waited for which code has left behind, once for each thread."""
_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_STANDARD = range(3)


class Left:
    """What is there before any code runs, so that what is new is the code's."""

    def __init__(self) -> None:
        self._threads = {each.native_id for each in threading.enumerate()}
        self._waited: set[int | None] = set()
        self._buffers = [each for each in gc.get_objects() if issubclass(type(each), _BUFFERED)]

    def is_new(self, thread: int | None) -> bool:
        """Whether a thread, by its native identifier, has begun since."""
        return thread not in self._threads

    @contextmanager
    def seen(self, outside: list[str]) -> Iterator[None]:
        """Add what the code left that runs meanwhile, after waiting for its threads."""
        excused = 0
        register, before, calls = atexit.register, self._files(), atexit._ncallbacks()

        def registered(*arguments: Any, **options: Any) -> Any:
            nonlocal excused
            asking = str(sys._getframe(1).f_globals.get("__name__", ""))
            excused += asking.partition(".")[0] in sys.stdlib_module_names or importing()
            return register(*arguments, **options)

        try:
            with mock.patch.object(atexit, "register", registered):
                yield
        finally:
            self._wait()
            after = self._files()
            if any(after.get(file, state) != state for file, state in before.items()):
                outside.append("writes to a file that was open before")
            if atexit._ncallbacks() > calls + excused:
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
        for number in _open_numbers():
            with suppress(OSError):
                held = os.fstat(number)
                file = (held.st_dev, held.st_ino)
                if number in _STANDARD:
                    standard.add(file)
                elif stat.S_ISREG(held.st_mode) and file not in standard and _writable(number):
                    found[number, *file] = (held.st_size, held.st_mtime_ns)
        return found


def _writable(number: int) -> bool:
    try:
        import fcntl
    except ImportError:  # where there is none
        return True
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def _open_numbers() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return sorted(int(each.name) for each in os.scandir(folder))
    return list(range(64))


def importing() -> bool:
    """Whether a module is being loaded, which may do what it likes: it has seen no data."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("importlib._bootstrap"):
            return True
        frame = frame.f_back
    return False
