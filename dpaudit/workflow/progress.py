"""The progress of an attack, and how long a slow one will take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from dpaudit.auditing import progress_bar
from dpaudit.project import Execution
from dpaudit.project.audit_request import AuditRequest, Notice, Progress

_SLOW, _LONG = 3.0, 30.0
"""Seconds of an attack after which it is said how long all will take, if that is so many."""


@contextmanager
def attack_progress(request: AuditRequest, label: str) -> Iterator[Execution]:
    """The execution of a request, whose progress is drawn unless somebody else is told of it."""
    if request.execution.progress is not None:
        yield request.execution
        return
    with progress_bar(label) as progress:
        yield request.execution.updated({"progress": _forecasting(request.notice, progress)})


def _forecasting(notice: Notice | None, progress: Progress | None) -> Progress | None:
    """Progress that also says once, of slow runs, how long all of them will take."""
    if notice is None:
        return progress
    start, told = time.monotonic(), False

    def heard(done: int, total: int) -> None:
        nonlocal told
        took = time.monotonic() - start
        if not told and took > _SLOW and done:
            told, whole = True, took * total / done
            if whole > _LONG:
                notice(
                    f"{done} of {total} runs a side took {took:.0f} s, so that all take about "
                    f"{whole:.0f} s; --runs takes fewer."
                )
        if progress is not None:
            progress(done, total)

    return heard
