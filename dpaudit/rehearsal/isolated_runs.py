"""Runs apart: in copies of this process, made before anything has run in it.

What a run leaves behind (a cache, a counter, an attribute) answers for every later run of the same
process, and would hide that the answer came from private data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from dpaudit.auditing.children import Child
from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.replaying.checks import EVERYTHING, Telling
from dpaudit.auditing.replaying.recording import Runnable
from dpaudit.auditing.replaying.replay import RecordedRun, ReplayReport, record
from dpaudit.base import processes
from dpaudit.project import Move
from dpaudit.rehearsal.watching import Watch, watched

MOST = 3
"""So many neighbours are run apart."""
PATIENCE = 60.0
"""Seconds that a run apart may take where runs have no limit: a copy of threads may hang."""
_CLOSE = 1e-3
"""Of what is declared: libraries that compute with another number of threads round otherwise."""

_T = TypeVar("_T")


def apart(call: Callable[[], _T], limit: float | None = None, watch: Watch | None = None) -> Any:
    """Return what a call gives in a copy of this process, which ends then; this one stays as it is.

    Args:
        call: foreign code; what it gives must travel.
        limit: seconds that it may take.
        watch: on the ways around the ledger; it learns what was seen in the copy.

    Returns:
        None where there can be no copy, or the call gives nothing there.
    """
    if not processes.CAN_FORK:
        return None
    seen = watch or Watch()

    def answer(_: None) -> tuple[_T, list[list[str]]]:
        with watched(seen):
            return within_time(limit or PATIENCE, call), seen.places

    try:
        with Child(answer) as child:
            given, places = child.ask(None)
    except (Exception, SystemExit, TrialTimeoutError):  # noqa: BLE001 - it is run here as well
        return None
    for own, found in zip(seen.places, places, strict=True):
        own[:] = found
    return given


def first_apart(
    algorithm: Runnable,
    data: Any,
    seed: int,
    limit: float | None = None,
    telling: Telling = EVERYTHING,
    watch: Watch | None = None,
) -> RecordedRun | None:
    """A run on the data that leaves nothing here; None where there can be none."""
    run = apart(lambda: record(algorithm, data, seed).run, limit, watch)
    return None if run is None else RecordedRun(algorithm, seed, run, telling)


def neighbours_apart(
    base: RecordedRun,
    near: Iterator[Move],
    limit: float | None = None,
    watch: Watch | None = None,
) -> dict[int, ReplayReport]:
    """The first neighbours compared with a run on the data, each in a process of its own.

    Args:
        base: the run on the data, made apart too.
        near: the neighbours.
        limit: seconds that one may take.
        watch: as for :func:`apart`.

    Returns:
        By place. Those with a base of their own, and those that could not be run, are left out.
    """
    made: dict[int, ReplayReport] = {}
    for place, move in enumerate(islice(near, MOST)):
        compared = partial(base.against, move.data, hops=move.hops)
        report = apart(compared, limit, watch) if move.base is None else None
        if report is not None:
            made[place] = report
    return made


def alike(one: ReplayReport, two: ReplayReport) -> bool:
    """Tell whether two comparisons with the same neighbour show the same, but for rounding."""
    rules = [[each.rule for each in report.findings] for report in (one, two)]
    if one.raised != two.raised or rules[0] != rules[1]:
        return False
    return len(one.comparisons) == len(two.comparisons) and all(
        x.observed == y.observed
        or math.isclose(x.observed, y.observed, rel_tol=_CLOSE, abs_tol=_CLOSE * x.declared)
        for x, y in zip(one.comparisons, two.comparisons, strict=True)
    )
