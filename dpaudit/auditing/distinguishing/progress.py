"""Progress on stderr, where stderr is a terminal, of what takes longer than two seconds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

if TYPE_CHECKING:
    from dpaudit.auditing.execution import Progress

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
        columns = TextColumn("{task.description:.30}"), BarColumn(10), _Told()
        _drawn.append(_Bars(*columns, console=Console(stderr=True), transient=True, **own))
    (bars,) = _drawn
    task = bars.add_task(label, total=None, counted=counted)
    bars.start()
    try:
        yield lambda done, total: bars.update(task, completed=done, total=total)
    finally:
        bars.remove_task(task)
        if not bars.tasks:
            _drawn.clear()
            bars.stop()


class _Bars(Bars):
    def get_renderables(self) -> Iterable[RenderableType]:
        for each in self.tasks:
            if counted := each.fields.get("counted"):
                done, total = counted()
                self.update(each.id, completed=done, total=total)
        yield self.make_tasks_table([t for t in self.tasks if (t.elapsed or 0.0) > PATIENCE])


class _Told(ProgressColumn):
    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(_time(task.elapsed))
        rate = f", {task.speed:.3g}/s" if task.speed else ""
        left = "" if task.time_remaining is None else f", {_time(task.time_remaining)} left"
        return Text(f"{task.completed:g} of {task.total:g}{rate}{left}")


def _time(seconds: float | None) -> str:
    return str(timedelta(seconds=int(seconds or 0)))
