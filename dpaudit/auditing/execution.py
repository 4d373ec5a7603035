"""Where an audit runs: in this process, in worker processes of this machine, or on a cluster.

Tasks are mapped over items, and their results come in the order of the items. What a task gives
depends on its item alone, so it does not matter where it runs. Code travels by cloudpickle: what
another process could import goes by its name, and what it could not (a notebook's functions, a file
that was loaded by its path) with its content.

Where stderr is a terminal, it shows the progress of what takes longer than two seconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from datetime import timedelta
from functools import lru_cache, partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import cloudpickle
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import Progress as Bars
from rich.progress import Task
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.numbers import plain
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import printable
from dpaudit.project.audit_request import DEFAULTS as DEFAULTS
from dpaudit.project.audit_request import Execution as Execution
from dpaudit.project.audit_request import ExecutionFields as ExecutionFields
from dpaudit.project.audit_request import Progress as Progress
from dpaudit.project.foreign import place_of
from dpaudit.project.targets import FOLDERS

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4
"""Items a worker that are under way before their results are asked for."""
GRACE = 0.5
"""Seconds that a worker may take to finish what nobody waits for any more."""
ONE_THREAD = {
    f"{each}_THREADS": "1"
    for each in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
}
"""What libraries for linear algebra read when they are loaded."""


class TaskMap(Protocol):
    """Maps tasks over items, as the built-in ``map`` does."""

    def __call__(
        self, task: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Iterator[Result]:
        """The results in the order of the items; those that nobody asks for may not be made."""


@contextlib.contextmanager
def workers(execution: Execution) -> Iterator[TaskMap]:
    """Map tasks over items where an execution says; its processes end with the context.

    Raises:
        InputError: if the code cannot be sent to other processes, one of these ends by itself, or
            no scheduler answers.
        UnsupportedError: if dask is wanted and not installed.
    """
    if execution.dask is not None:
        with _cluster(execution.dask) as mapped:
            yield mapped
    elif execution.workers > 1:
        with _processes(execution.workers) as mapped:
            yield mapped
    else:
        yield map


# -- processes ------------------------------------------------------------------------------------


class Worker(SpawnProcess):
    """A fresh interpreter with one thread for linear algebra, which does not run ``__main__``.

    A script that starts an audit would start it again in every worker; its functions travel by
    their content instead.
    """

    def start(self) -> None:
        """Start it, with an empty ``__main__`` and one thread."""
        main, kept = sys.modules["__main__"], {name: os.environ.get(name) for name in ONE_THREAD}
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ.update(ONE_THREAD)
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class _Workers(SpawnContext):
    """A context of multiprocessing that knows whom it started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """A worker process that has not been started yet."""
        self.started.append(Worker(*args, **kwargs))
        return self.started[-1]


@contextlib.contextmanager
def _processes(number: int) -> Iterator[TaskMap]:
    context, futures = _Workers(), list[Future[Any]]()

    def submit(content: bytes, item: Any) -> Future[Any]:
        futures[:] = [each for each in futures if not each.done()]
        futures.append(executor.submit(_run, content, item))
        return futures[-1]

    def mapped(task: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        return _in_order(partial(submit, packed(task)), items, AHEAD * number, "a worker process")

    executor = ProcessPoolExecutor(number, mp_context=context, initializer=_begin)
    try:
        yield mapped
    finally:
        busy = {future for future in futures if not future.cancel()}
        try:
            busy = wait(busy, timeout=GRACE).not_done
        finally:
            if busy:
                for process in context.started:
                    process.terminate()
            executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """In a new worker: leave Ctrl-C to the parent, end with it, and leave stdout to its answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout = sys.stderr


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


# -- a cluster ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[TaskMap]:
    distributed = optional_import("cluster", "distributed", what=f"dask = {address!r}")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(
            f"dask is {address!r}; no scheduler answers there ({type(error).__name__})."
        ) from None

    def mapped(task: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        content = client.scatter(packed(task), broadcast=True)
        submit = partial(client.submit, _run, content, pure=False)
        ahead = AHEAD * max(1, sum(client.nthreads().values()))
        return _in_order(submit, items, ahead, f"dask at {address}")

    with client:
        yield mapped


# -- both -----------------------------------------------------------------------------------------


def _in_order(
    submit: Callable[[Item], Any], items: Iterable[Item], ahead: int, where: str
) -> Iterator[Any]:
    """The results of futures in their order, a few of them under way at a time."""
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(submit(item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except DpAuditError:
        raise
    except Exception as error:
        raise InputError(
            f"{where} gave up ({type(error).__name__}): the code ends or crashes its process, or "
            "memory ran out; try it with workers = 1."
        ) from error
    finally:
        for future in waiting:
            future.cancel()


def packed(task: Callable[[Any], Any]) -> bytes:
    """A task as bytes, with the content of modules that another process could not import.

    Raises:
        InputError: if it cannot be sent.
    """
    known = cloudpickle.list_registry_pickle_by_value()
    foreign = [
        module
        for name, module in [*sys.modules.items()]
        if name not in known and _foreign(name, module)
    ]
    for module in foreign:
        cloudpickle.register_pickle_by_value(module)
    try:
        content: bytes = cloudpickle.dumps(task)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise InputError(
            f"the code cannot be sent to another process ({type(error).__name__}{place_of(error)}"
            "); run it with workers = 1."
        ) from None
    finally:
        for module in foreign:
            cloudpickle.unregister_pickle_by_value(module)
    return content


def _foreign(name: str, module: ModuleType) -> bool:
    """Tell whether a module was loaded from a file that its name does not lead to."""
    place = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    if "." in name or not place.endswith(".py") or module.__name__ != name or name == "__main__":
        return False  # what is in __main__ goes with its content anyway
    found = (finder.find_spec(name, None) for finder in sys.meta_path)
    origin = next((each.origin for each in found if each is not None), None)
    return origin != place or str(Path(place).parent) in FOLDERS


unpacked = lru_cache(maxsize=1)(cloudpickle.loads)


def _run(content: bytes, item: Any) -> Any:
    """In a worker: the task on an item."""
    try:
        task = unpacked(content)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise InputError(
            f"the code cannot be loaded in another process ({type(error).__name__}"
            f"{place_of(error)}); run it with workers = 1."
        ) from None
    return task(item)


PATIENCE = 2.0
"""Seconds until anything is drawn."""
_drawn: list[_Bars] = []
"""The bars that are drawn: a step draws its own below that of the whole."""


@contextlib.contextmanager
def progress_bar(
    label: str, counted: Callable[[], tuple[int, int]] | None = None
) -> Iterator[Progress | None]:
    """A callback that draws a bar, with rate and remaining time; None where nobody would see it.

    Args:
        label: what runs, for people.
        counted: gives what is done and all that is to be done, where nobody calls back.
    """
    if not sys.stderr.isatty():
        yield None
        return
    if not _drawn:
        # What the code itself prints goes its own way: nothing is to wait for a lock of ours.
        own: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": False}
        _drawn.append(_Bars(console=Console(stderr=True), transient=True, **own))
    (bars,) = _drawn
    task = bars.add_task(printable(label), total=None, counted=counted)
    bars.start()
    try:
        yield lambda done, total: bars.update(task, completed=done, total=total)
    finally:
        bars.remove_task(task)
        if not bars.tasks:
            _drawn.clear()
            bars.stop()


_SLOW, _LONG = 3.0, 30.0
"""Seconds after which it is said how long all runs will take, if that is so many."""


def forecast(progress: Progress | None, notice: Callable[[str], None]) -> Progress:
    """Progress that also says once, of slow runs, how long all of them will take."""
    start, told = time.monotonic(), False

    def heard(done: int, total: int) -> None:
        nonlocal told
        took = time.monotonic() - start
        if not told and took > _SLOW and done:
            told, whole = True, took * total / done
            if whole > _LONG:
                notice(
                    f"{done} of {total} runs a side took {took:.0f} s, so all of them will take "
                    f"about {whole:.0f} s; --runs N asks for fewer."
                )
        if progress is not None:
            progress(done, total)

    return heard


class _Bars(Bars):
    def get_renderables(self) -> Iterable[RenderableType]:
        for each in self.tasks:
            if counted := each.fields.get("counted"):
                done, total = counted()
                self.update(each.id, completed=done, total=total)
        shown = [each for each in self.tasks if (each.elapsed or 0.0) > PATIENCE]
        names, told = [each.description for each in shown], [_told(each) for each in shown]
        rows: list[tuple[RenderableType, ...]] = [
            *zip(map(Text, names), map(_bar, shown), map(Text, told), strict=True)
        ]
        widths = [max(map(cell_len, texts), default=0) for texts in (names, told)]
        if not shown or sum(widths) + _BAR + 2 <= self.console.width:
            yield _grid(rows)
            return
        for name, *others in rows:  # a name that leaves no room for the numbers stands above them
            yield name
            yield _grid([others])


_BAR = 10


def _grid(rows: Iterable[Iterable[RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 1))
    for row in rows:
        table.add_row(*row)
    return table


def _bar(task: Task) -> ProgressBar:
    return ProgressBar(task.total, task.completed, _BAR, pulse=task.total is None)


def _told(task: Task) -> str:
    """What is done, the rate and the time that is left; without a total the time that has passed.

    The rate has three digits and no exponent.
    """
    if task.total is None:
        return _time(task.elapsed)
    rate = f", {plain(float(f'{task.speed:.3g}'))}/s" if task.speed else ""
    left = "" if task.time_remaining is None else f", {_time(task.time_remaining)} left"
    return f"{int(task.completed)} of {int(task.total)}{rate}{left}"


def _time(seconds: float | None) -> str:
    return str(timedelta(seconds=int(seconds or 0)))
