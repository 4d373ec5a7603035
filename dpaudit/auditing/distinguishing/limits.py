"""A time limit for foreign code that may hang.

In the main thread of a process (also of a worker process) an interval timer interrupts the code
itself. In any other thread, or where there are no such timers, the code runs in a helper thread
that is given up. Compiled code that never returns to the interpreter, and code that swallows every
exception, are stopped in neither way; the parent of a child process then ends that.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn, TypeVar

from dpaudit.auditing.children import watched

T = TypeVar("T")


class TrialTimeoutError(BaseException):
    """The limit has passed. Not an ``Exception``, so that foreign code does not swallow it."""


def within_time(limit: float | None, call: Callable[[], T]) -> T:
    """The result of a call that may take at most ``limit`` seconds (None for any time).

    Raises:
        TrialTimeoutError: if it takes longer.
    """
    with watched(limit):
        if limit is None:
            return call()
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
            return _with_timer(limit, call)
        return _in_thread(limit, call)


def _with_timer(limit: float, call: Callable[[], T]) -> T:
    def stop(*_: object) -> NoReturn:
        raise TrialTimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    # An outer timer, such as a test runner's, is put back with what it had left.
    started = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            left -= time.monotonic() - started
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), interval)  # 0 switches it off


def _in_thread(limit: float, call: Callable[[], T]) -> T:
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            future.set_exception(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit)
    if not future.done():
        raise TrialTimeoutError
    return future.result()
