"""A watch on the ways around the ledger, while code is rehearsed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

from dpaudit.auditing.replaying import recording
from dpaudit.auditing.replaying.runs import given_beside
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import FloatNoise, Ledger
from dpaudit.ledger.checks import caller
from dpaudit.mechanisms import Mechanism
from dpaudit.rehearsal.side_effects import SideEffects, importing

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
