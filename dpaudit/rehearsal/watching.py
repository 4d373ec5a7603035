"""What code does beside its ledger while it is rehearsed, and runs of it that leave nothing here.

A :class:`Watch` keeps what the interpreter reports of files, processes and connections. Runs are
made in copies of this process in which nothing has run, as what a run leaves (a cache, a counter,
an attribute) answers for later ones, and would hide that the answer came from private data.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from dpaudit.auditing.children import Child, TrialTimeoutError, within_time
from dpaudit.auditing.replaying.recording import Runnable
from dpaudit.auditing.replaying.replay import EVERYTHING, RecordedRun, ReplayReport, Telling, record
from dpaudit.base import processes
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger.checks import caller
from dpaudit.project import Move


def importing() -> bool:
    """Tell whether a module is being loaded, which may do what it likes: it has seen no data."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("importlib._bootstrap"):
            return True
        frame = frame.f_back
    return False


class Watch:
    """The record of what code did to files, processes and the network, by place in the code.

    Attributes:
        outside: what was seen.
    """

    def __init__(self) -> None:
        self.outside: list[str] = []
        self._threads = {each.native_id for each in threading.enumerate()}
        self._made: dict[str, str] = {}

    def is_new(self, thread: int | None) -> bool:
        """Tell whether a thread, by its native identifier, has begun since."""
        return thread not in self._threads

    def saw(self, deed: str, place: str, path: str = "") -> None:
        """Keep what reached the world; of a new file, when the run is over."""
        if path and deed in _MAKES and not os.path.lexists(path):
            self._made[path] = f"{deed} at {place}"
        elif path not in self._made or deed not in _OF_FILES:
            self.outside.append(f"{deed} at {place}")

    def settle(self) -> None:
        """Forget files that were written and are gone."""
        self.outside += [what for path, what in self._made.items() if os.path.lexists(path)]
        self._made.clear()

    def findings(self) -> tuple[Finding, ...]:
        """One finding, if anything was seen."""
        seen = self.outside[:1]
        return tuple(FindingTable(__name__)("beside-the-ledger", first=each) for each in seen)


_watches: list[tuple[int, Watch]] = []
"""By thread; those of the rehearsals that are running."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
_WRITES = "writes a file"
_MAKES = (_WRITES, "makes a folder")
_OF_FILES = (*_MAKES, "removes a file", "removes a folder")
_STARTS, _CHANGES, _SENDS = "starts a process", "changes a file", "sends a message"
_DEEDS = {
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "os.rename": "renames a file",
    "os.remove": "removes a file",
    **dict.fromkeys(("os.link", "os.symlink"), "links a file"),
    **dict.fromkeys(("os.utime", "os.chmod", "os.chown", "os.chflags", "os.truncate"), _CHANGES),
    **dict.fromkeys(("os.setxattr", "os.removexattr", "os.lockf", "fcntl.flock"), _CHANGES),
    **dict.fromkeys(("os.system", "os.fork", "os.forkpty", "os.posix_spawn"), _STARTS),
    **dict.fromkeys(("os.spawn", "os.exec", "os.startfile", "subprocess.Popen"), _STARTS),
    **dict.fromkeys(("os.kill", "os.killpg"), "sends a signal"),
    **dict.fromkeys(("socket.sendto", "socket.sendmsg", "syslog.syslog"), _SENDS),
    **dict.fromkeys(("socket.connect", "socket.bind"), "opens a connection"),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), "changes the environment"),
    "socket.getaddrinfo": "looks up a name on the network",
    "sqlite3.connect": "opens a database",
}
_NOWHERE = str((os.devnull,))
_IN_MEMORY = str((":memory:",))


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """The interpreter's own report of what code does to the world; it can never be taken back."""
    if not _watches:
        return
    deed = _DEEDS.get(event, "")
    if event == "open":
        _, mode, flags = arguments
        deed = _WRITES if (flags & _WRITING if mode is None else set(mode) & set("wax+")) else ""
    if not deed or importing():
        return
    nowhere = _IN_MEMORY if event == "sqlite3.connect" else _NOWHERE
    if "__pycache__" not in (about := str(arguments[:1])) and about != nowhere:
        thread = threading.get_native_id()
        # A thread that is watched for itself is no helper of another one.
        own = [watch for ident, watch in _watches if ident == thread]
        for watch in own or [watch for _, watch in _watches if watch.is_new(thread)]:
            watch.saw(deed, caller(()), _path(event, arguments))


def _path(event: str, arguments: tuple[Any, ...]) -> str:
    """The whole path of a file that is opened, made or removed; empty where it is not known."""
    try:
        folder = Path()
        if event != "open" and isinstance(arguments[-1], int) and arguments[-1] >= 0:
            folder = Path(f"/proc/self/fd/{arguments[-1]}").readlink()  # where the path begins
        return str((folder / os.fsdecode(arguments[0])).absolute())
    except (TypeError, ValueError, OSError):
        return ""


@cache
def _listen() -> None:
    """Hear what the interpreter reports from now on, once."""
    sys.addaudithook(_heard)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Watch what code does, in this thread and in new ones."""
    _listen()
    own = (threading.get_native_id(), watch)
    _watches.append(own)
    try:
        yield
    finally:
        _watches.remove(own)
        watch.settle()


MOST_APART = 3
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

    def answer(_: None) -> tuple[_T, list[str]]:
        with watched(seen):
            given = within_time(limit or PATIENCE, call)
        return given, seen.outside

    try:
        with Child(answer) as child:
            given, seen.outside[:] = child.ask(None)
    except (Exception, SystemExit, TrialTimeoutError):  # noqa: BLE001 - it is run here as well
        return None
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
    for place, move in enumerate(islice(near, MOST_APART)):
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
