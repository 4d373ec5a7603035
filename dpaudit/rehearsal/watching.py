"""What code does beside its ledger while it is rehearsed, and what it leaves behind.

A :class:`Watch` keeps what the interpreter reports of files, processes and connections, and where a
ledger or a mechanism is used by the code itself. :class:`SideEffects` finds what no report shows in
time: threads that go on, calls at the process's end, and what was written to a file that was open
before. Runs are made in copies of this process in which nothing has run, as what a run leaves (a
cache, a counter, an attribute) answers for later ones, and would hide that the answer came from
private data. A rehearsal calls all of it; that every thread and file is its own run's must stay so.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache, partial, wraps
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from unittest import mock

import numpy as np

from dpaudit.auditing.children import Child, TrialTimeoutError, within_time
from dpaudit.auditing.replaying import recording
from dpaudit.auditing.replaying.recording import Runnable
from dpaudit.auditing.replaying.replay import EVERYTHING, RecordedRun, ReplayReport, Telling, record
from dpaudit.auditing.replaying.runs import given_beside
from dpaudit.base import processes
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import FloatNoise, Ledger
from dpaudit.ledger.checks import caller
from dpaudit.mechanisms import Mechanism
from dpaudit.project import Move

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


_DRAWS = ("sample", "start")
"""What every draw of a mechanism's noise goes through."""
_OWN = __name__.partition(".")[0]


class Watch:
    """The record of what was seen, by place in the code.

    Args:
        files: whether the run may read files, as where it is given their names.

    Attributes:
        ledgers: where ledgers were opened by the code itself.
        releases: where a mechanism was used without a ledger.
        outside: what reached files, processes or the network, and where.
        reads: where files were read that are no code.
        scratch: where files were written that are gone when the run ends.
    """

    def __init__(self, *, files: bool = False) -> None:
        self.files = files
        self.ledgers: list[str] = []
        self.releases: list[str] = []
        self.outside: list[str] = []
        self.reads: list[str] = []
        self.scratch: list[str] = []
        self.left = SideEffects()
        self._made: dict[str, str] = {}

    @property
    def places(self) -> list[list[str]]:
        """All that was seen."""
        return [self.ledgers, self.releases, self.outside, self.reads, self.scratch]

    def saw(self, deed: str, place: str, path: str = "") -> None:
        """Keep what reached the world; of a new file, when the run is over."""
        if path and deed in _MAKES and not os.path.lexists(path):
            self._made[path] = f"{deed} at {place}"
        elif path in self._made and deed in _OF_FILES:
            return
        elif deed != _READS:
            self.outside.append(f"{deed} at {place}")
        elif not self.files and not importing():
            self.reads.append(f"{deed} at {place}")

    def settle(self) -> None:
        """Tell what was written and is gone from what is still there."""
        for path, what in self._made.items():
            (self.outside if os.path.lexists(path) else self.scratch).append(what)
        self._made.clear()

    def findings(self, *, private: bool = True) -> tuple[Finding, ...]:
        """One finding for each kind of thing that was seen.

        Args:
            private: whether ledgers and mechanisms may have been given what one unit moves.
        """
        seen = {
            _SECOND: self.ledgers,
            _RELEASE: self.releases,
            "beside-the-ledger": self.outside,
            "reads-beside-load": self.reads,
        }
        found = FindingTable(__name__)
        notes = {"scratch-files": [] if self.outside else self.scratch}
        if not private:
            notes["public-second-ledger"] = seen.pop(_SECOND)
            notes["public-release-beside-the-ledger"] = seen.pop(_RELEASE)
        return tuple(
            found(rule, first=places[0]) for rule, places in (seen | notes).items() if places
        )


_SECOND, _RELEASE = "second-ledger", "release-beside-the-ledger"
_watches: list[tuple[int, Watch]] = []
"""By thread; those of the rehearsals that are running."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
_WRITES, _READS = "writes a file", "reads a file"
_MAKES = (_WRITES, "makes a folder")
_OF_FILES = (*_MAKES, _READS, "removes a file", "removes a folder")
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
    "socket.getaddrinfo": "asks for a name on the network",
    "sqlite3.connect": "opens a database",
}
_NOWHERE = str((os.devnull,))
_IN_MEMORY = str((":memory:",))
_CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib", ".pth", ".zip")
_PLACES = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev", "/etc", "/usr", "/lib")
_SYSTEM = tuple({f"{os.path.realpath(place)}{os.sep}" for place in _PLACES})


def _holds_data(path: Any) -> bool:
    """Tell whether a file could be a user's data: neither code nor part of an installation."""
    if isinstance(path, int):
        return False
    text = os.fsdecode(path)
    return not text.endswith(_CODE) and not os.path.realpath(text).startswith(_SYSTEM)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """The interpreter's own report of what code does to the world; it can never be taken back."""
    if not _watches:
        return
    deed = _DEEDS.get(event, "")
    if event == "open":
        path, mode, flags = arguments
        writes = flags & _WRITING if mode is None else set(mode) & set("wax+")
        deed = _WRITES if writes else _READS if _holds_data(path) else ""
    if not deed or importing():
        return
    nowhere = _IN_MEMORY if event == "sqlite3.connect" else _NOWHERE
    if "__pycache__" not in (about := str(arguments[:1])) and about != nowhere:
        thread = threading.get_native_id()
        # A thread that is watched for itself is no helper of another one.
        own = [watch for ident, watch in _watches if ident == thread]
        for watch in own or [watch for _, watch in _watches if watch.left.is_new(thread)]:
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
    """Watch what code does, in this thread and in new ones.

    Ledgers of the rehearsal itself are no finding.
    """

    def opened(ledger: Any, *arguments: Any, **options: Any) -> None:
        if not _from_within():
            watch.ledgers.append(caller(()))
            if options.get("rng") is None:  # what draws there is not watched
                given_beside(None)
        begin(ledger, *arguments, **options)

    def used(original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(original)  # with the bodies that a method by class has
        def wrapper(mechanism: Any, *arguments: Any, **options: Any) -> Any:
            if not _among_callers(FloatNoise.__module__):
                watch.releases.append(caller(()))
            if not _among_callers(recording.__name__):
                values = arguments[0] if name == "sample" and arguments else None
                given_beside(values if isinstance(values, np.ndarray) else None)
            return original(mechanism, *arguments, **options)

        return wrapper

    begin = Ledger.__init__
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Ledger, "__init__", opened))
        for kind in _classes():
            for name in _DRAWS:
                if name in kind.__dict__:
                    own = kind.__dict__[name]
                    stack.enter_context(mock.patch.object(kind, name, used(own, name)))
        _listen()
        own = (threading.get_native_id(), watch)
        _watches.append(own)
        stack.callback(_watches.remove, own)
        stack.callback(watch.settle)
        with watch.left.seen(watch.outside):
            yield


def _classes() -> set[type[Mechanism]]:
    """Every class that a mechanism may take its draws from."""
    lines = (kind.__mro__ for kind in Mechanism.kinds().values())
    return {each for line in lines for each in line if issubclass(each, Mechanism)}


def _from_within() -> bool:
    """Tell whether the next caller outside this module is code of the package itself."""
    return _module(sys._getframe(2)).partition(".")[0] == _OWN


def _among_callers(module: str) -> bool:
    """Tell whether code of a module is, as the source of a ledger's noise."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if _module(frame) == module:
            return True
        frame = frame.f_back
    return False


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


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
