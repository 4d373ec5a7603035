"""What code leaves behind when it returns, which no report of the interpreter shows in time.

Threads that go on, calls at the process's end, and what was written to a file that was open before.
"""

from __future__ import annotations

import atexit
import gc
import io
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

SETTLE = 0.2
"""Seconds that threads are waited for which code has left behind, once for each thread."""


class SideEffects:
    """Files and threads that are there before any code runs: what is new is the code's."""

    def __init__(self) -> None:
        self._threads = {each.native_id for each in threading.enumerate()}
        self._waited: set[int | None] = set()
        weakref.finalize(self, int)  # the first one of a process asks for a call at its end

    def is_new(self, thread: int | None) -> bool:
        """Tell whether a thread, by its native identifier, has begun since."""
        return thread not in self._threads

    @contextmanager
    def seen(self, outside: list[str]) -> Iterator[None]:
        """Add what the code left that runs meanwhile, after waiting for its threads."""
        calls, modules, before = atexit._ncallbacks(), len(sys.modules), _written()
        try:
            yield
        finally:
            self._wait()
            if atexit._ncallbacks() > calls and len(sys.modules) == modules:  # or a library's
                outside.append("asks for a call at the end of the process")
            after = _written() if before else {}
            if any(place != after.get(file) for file, place in before.items()):
                outside.append("writes to a file that was open before")

    def _wait(self) -> None:
        end = time.monotonic() + SETTLE
        for each in threading.enumerate():
            if self.is_new(each.native_id) and each.native_id not in self._waited:
                self._waited.add(each.native_id)
                with suppress(RuntimeError):  # this thread itself, where it has begun since
                    each.join(max(0.0, end - time.monotonic()))


def importing() -> bool:
    """Tell whether a module is being loaded, which may do what it likes: it has seen no data."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("importlib._bootstrap"):
            return True
        frame = frame.f_back
    return False


_DESCRIPTORS = Path("/proc/self/fd")


def _written() -> dict[tuple[int, str], int]:
    """Tell how far this process has come in each file that it holds open for writing; Linux alone.

    Not in those that it was given when it began: their place moves with what others write.
    """
    if not _DESCRIPTORS.is_dir():
        return {}
    own: list[tuple[int, str]] = []
    given = _targets(Path(f"/proc/{os.getppid()}/fd")) | _targets(_DESCRIPTORS, 2)
    for entry in _DESCRIPTORS.iterdir():
        with suppress(OSError):
            path, number = entry.readlink(), entry.name
            if path.is_absolute() and path not in given and path.is_file():
                flags = int(Path(f"/proc/self/fdinfo/{number}").read_text().split()[3], 8)
                if flags & os.O_ACCMODE:
                    own.append((int(number), str(path)))
    if not all(map(_open, _writers(tuple(own)))):
        _writers.cache_clear()
    for each in _writers(tuple(own)):  # what was written to Python's objects counts as well
        with suppress(OSError, ValueError):
            each.flush()
    return {(number, path): os.lseek(number, 0, os.SEEK_CUR) for number, path in own}


@lru_cache(maxsize=1)  # to look at all objects takes long, and few runs open or close files
def _writers(own: tuple[tuple[int, str], ...]) -> list[Any]:
    """Python's objects that write to files, while the same ones are open."""
    kinds = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom
    found = [each for each in gc.get_objects() if issubclass(type(each), kinds)] if own else []
    return [each for each in found if _open(each)]


def _open(writer: Any) -> bool:
    with suppress(ValueError):  # of one that was given away
        return not writer.closed
    return False


def _targets(descriptors: Path, last: float = math.inf) -> set[Path]:
    """Return what descriptors lead to, up to one; nothing of a process that cannot be looked at."""
    found: set[Path] = set()
    with suppress(OSError):
        for entry in descriptors.iterdir():
            with suppress(OSError):
                found |= {entry.readlink()} if int(entry.name) <= last else set()
    return found
