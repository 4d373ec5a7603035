"""Foreign code within limits: in child processes, and within a time.

A child is a copy of this process (where there is no ``fork``, a fresh one), which answers one
question after the other over a pipe. What it prints goes to stderr. Whatever it does to itself, the
parent goes on: a death, a call that does not end and an answer that cannot be read are errors that
say what happened. A child has one thread for linear algebra, global generators that are seeded from
the operating system, and a process group of its own, which ends with it.

*Time.* In the main thread of a process (also of a worker process) an interval timer interrupts the
code itself. In any other thread, or where there are no such timers, the code runs in a helper
thread that is given up. Compiled code that never returns to the interpreter, and code that swallows
every exception, are stopped in neither way; the parent of a child process then ends that.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import lru_cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawValue
from typing import Any, NoReturn, Self, TypeVar

import numpy as np

from dpaudit.auditing.execution import ONE_THREAD, Worker, packed, unpacked
from dpaudit.base import processes
from dpaudit.base.errors import UnsupportedError

SLICE = 0.1
"""Seconds between two looks at a child that does not answer."""
GRACE = 1.0
"""Seconds that a child may be late in keeping a time limit by itself."""
LOST = 71
"""Exit status of a child whose pipe was closed by the code that it calls."""

_deadline: Any = None
"""In a child, the time at which the parent loses patience."""


class EndedError(Exception):
    """A child ended, or answered what cannot be read; the message says how."""


class HangsError(Exception):
    """A child went past its time limit, and was killed."""


class Child:
    """A process that calls a task on whatever it is asked.

    Args:
        task: what it calls.
        memory: MB that it may take beyond what it starts with; None for any.
        reseeded: generators that get fresh seeds in it.

    Raises:
        UnsupportedError: if memory is limited where that is impossible.
    """

    def __init__(
        self,
        task: Callable[[Any], Any],
        memory: float | None = None,
        reseeded: Sequence[Any] = (),
    ) -> None:
        if memory is not None and not sys.platform.startswith("linux"):
            raise UnsupportedError("memory is given; it can be limited on Linux only.")
        self._deadline = RawValue("d", 0.0)
        self._connection, theirs = Pipe()
        self._process: _Copy | Worker
        if processes.CAN_FORK:
            _thread_pools(len(sys.modules))
            pid = processes.fork()
            if pid == 0:
                self._connection.close()
                _live(theirs, task, self._deadline, memory, reseeded)
            self._process = _Copy(pid)
        else:
            given = (theirs, packed(task), self._deadline)
            self._process = Worker(target=_start, args=given)
            self._process.start()
        theirs.close()

    def ask(self, item: Any) -> Any:
        """Return what the task gives for an item.

        Raises:
            EndedError: if the child ends, or its answer cannot be read.
            HangsError: if it does not keep a limit that :func:`watched` was told.
            Exception: that the task raises.
        """
        try:
            self._connection.send(item)
            while not self._connection.poll(SLICE):
                if 0 < self._deadline.value < time.monotonic() - GRACE:
                    raise HangsError
                if self._process.exitcode is not None and not self._connection.poll():
                    raise EOFError
            answer = self._connection.recv_bytes()
        except (EOFError, OSError):
            raise EndedError(self._how()) from None
        try:
            done, result = pickle.loads(answer)  # of our own child
        except Exception:  # noqa: BLE001 - foreign classes may do anything
            raise EndedError("its answer could not be read") from None
        if not done:
            raise result
        return result

    def _how(self) -> str:
        for _ in range(20):
            code = self._process.exitcode
            if code is not None:
                lost = code == LOST
                return "it closed the files of its process" if lost else processes.ending(code)
            time.sleep(GRACE / 20)
        return "it closed the files of its process"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


@contextlib.contextmanager
def watched(limit: float | None) -> Iterator[None]:
    """In a child, tell the parent that what follows should end within so many seconds.

    A copy that the code makes of the child ends here: else each further call would copy it again.
    """
    if _deadline is None:
        yield
        return
    process, before = os.getpid(), _deadline.value
    _deadline.value = before if limit is None else time.monotonic() + limit
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)
        _deadline.value = before


def generators() -> list[Any]:
    """Every generator that some code keeps: copies of a process would all draw the same from it."""
    kinds = np.random.Generator, np.random.RandomState, random.Random
    return [each for each in gc.get_objects() if issubclass(type(each), kinds)]


class _Copy:
    """A copy of this process, in a group with the processes that it starts."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)

    @property
    def exitcode(self) -> int | None:
        """Its exit status, or minus its signal; None while it runs."""
        return self._reap(os.WNOHANG)

    def join(self) -> None:
        """Wait for its end."""
        self._reap(0)

    def kill(self) -> None:
        """End it, and what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:  # foreign code of the parent waits for any process
                pid, status = self._pid, 0
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


# -- in the child ---------------------------------------------------------------------------------


def _start(connection: Connection, task: bytes, deadline: Any) -> None:
    _live(connection, unpacked(task), deadline, None, ())


def _live(
    connection: Connection,
    task: Callable[[Any], Any],
    deadline: Any,
    memory: float | None,
    reseeded: Sequence[Any],
) -> None:
    """Answer until nobody asks any more, and end; never return to the code that made the copy."""
    global _deadline
    try:
        _deadline = deadline
        _settle(memory, reseeded)
        process, pipe = os.getpid(), _identity(connection)
        while True:
            answer = _answer(task, connection.recv())
            if os.getpid() != process:  # a copy that the code made: the first one answers
                os._exit(0)
            if _identity(connection) != pipe:
                os._exit(LOST)
            connection.send_bytes(answer)
    except EOFError:
        os._exit(0)
    except OSError:
        os._exit(LOST)
    finally:
        os._exit(1)


def _identity(connection: Connection) -> tuple[int, int]:
    """Tell the identity of a pipe, whose number may have become that of another file."""
    state = os.fstat(connection.fileno())
    return state.st_dev, state.st_ino


def _answer(task: Callable[[Any], Any], item: Any) -> bytes:
    try:
        answer = True, task(item)
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        answer = False, error
    try:
        return pickle.dumps(answer, protocol=5)
    except Exception as error:  # noqa: BLE001 - foreign objects may raise anything
        return pickle.dumps(
            (False, EndedError(f"{type(error).__name__} when it should have answered"))
        )


def _settle(memory: float | None, reseeded: Sequence[Any]) -> None:
    global _timed
    _timed = False  # as the handler goes too
    gc.freeze()  # pages of old objects stay shared
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    _own_streams()
    os.environ.update(ONE_THREAD)
    if (pools := _thread_pools(len(sys.modules))) is not None:
        pools.limit(limits=1)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
        torch.seed()
    random.seed()
    np.random.seed()  # noqa: NPY002 - foreign code may draw from it
    for generator in reseeded:
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = type(generator.bit_generator)().state
        else:
            generator.seed()
    if memory is not None:
        _limit(memory)


def _own_streams() -> None:
    """Nothing on stdin; what is printed goes to stderr, by objects that no thread has locked."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # stderr is closed
            os.dup2(null, 1)
            os.dup2(null, 2)
    raw = io.FileIO(2, "w", closefd=False)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the process
    sys.stdout = sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True
    )


@lru_cache(maxsize=1)
def _thread_pools(_: int) -> Any:
    """Return what limits threads of libraries; looked for again when more modules are loaded."""
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:
        return None
    return ThreadpoolController()


def _limit(memory: float) -> None:
    import resource

    with open("/proc/self/statm", encoding="ascii") as state:  # noqa: PTH123
        now = int(state.read().split()[0]) * resource.getpagesize()
    most = now + int(memory * 2**20)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


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


_timed = False
"""Whether a call within this one has found the handler of the timer in its place: to set that
takes longer than many a run."""


def _stop(*_: object) -> NoReturn:
    raise TrialTimeoutError


def _with_timer(limit: float, call: Callable[[], T]) -> T:
    global _timed
    outer, _timed = _timed, True
    before = None if outer else signal.signal(signal.SIGALRM, _stop)
    # An outer timer, such as a test runner's, is put back with what it had left.
    started = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _timed = outer
        if not outer:
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
