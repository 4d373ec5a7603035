"""A sealed subject that tries to learn what nobody released, or to tell it to somebody.

Each attempt has what must stop it. What an attempt observes is a result, so that it would be seen
if it were another one on a neighbour.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import multiprocessing
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Ledger,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Table,
    TrustModel,
)
from dpaudit.sealed import handles

Attempt = Callable[[Any, Any, Path], Any]
ATTEMPTS: dict[str, tuple[Attempt, str]] = {}
"""By name: what is tried with rows, a ledger and the path of the table, and what stops it."""


def stopped(by: str) -> Callable[[Attempt], Attempt]:
    def known(attempt: Attempt) -> Attempt:
        ATTEMPTS[attempt.__name__] = (attempt, by)
        return attempt

    return known


def short(name: str, by: str, attempt: Attempt) -> None:
    ATTEMPTS[name] = (attempt, by)


GONE = "FileNotFoundError"
"""A root of its own, in which the file is not there."""
REFUSED = "PermissionError"
"""Seccomp, Landlock."""
HANDLE = "InputError: .* have no length, order or content"
NO_LABEL = "PlanMismatchError: the plan declares nothing at"


def at_import() -> str:
    try:
        return Path(__file__).with_name("rows.csv").read_text()
    except OSError as error:
        return type(error).__name__


READ_AT_IMPORT = at_import()

# -- files -------------------------------------------------------------------------------------

short("read at import", GONE, lambda data, ledger, path: READ_AT_IMPORT)
short("read by its path", GONE, lambda data, ledger, path: path.read_text())
short("read beside the code", GONE, lambda data, ledger, path: Path("rows.csv").read_text())
short("its size", GONE, lambda data, ledger, path: path.stat().st_size)
short("its folder", GONE, lambda data, ledger, path: list(path.parent.iterdir()))
short("link to it", REFUSED, lambda data, ledger, path: Path("x").symlink_to(path))
short("root of proc", GONE, lambda data, ledger, path: Path(f"/proc/self/root{path}").read_text())
short("the parent", "got -1", lambda data, ledger, path: os.getppid())
short("all processes", GONE, lambda data, ledger, path: list(Path("/proc").iterdir()))
short("numpy", GONE, lambda data, ledger, path: np.loadtxt(path, dtype=str))
short("write", REFUSED, lambda data, ledger, path: Path("found.txt").write_text("x"))
short("write outside", REFUSED, lambda data, ledger, path: Path("/tmp/found").write_text("x"))
short("devices", GONE, lambda data, ledger, path: Path("/dev/shm/found").read_text())


@stopped(r"got \[\]")
def every_table(data: Any, ledger: Any, path: Path) -> Any:
    """All that is called as the table, anywhere."""
    return [str(Path(folder) / name) for folder, _, names in os.walk("/") for name in names
            if name == path.name]  # fmt: skip


@stopped("IOException|IO Error|PermissionError|RuntimeError|ImportError|OSError")
def duckdb(data: Any, ledger: Any, path: Path) -> Any:
    import duckdb

    return duckdb.connect(config={"threads": "1"}).execute(f"FROM '{path}'").fetchall()


# -- network and other processes ---------------------------------------------------------------

for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_VSOCK"):
    short(
        f"socket {family}",
        REFUSED,
        lambda data, ledger, path, family=family: socket.socket(getattr(socket, family)),
    )
short("DNS", "gaierror|PermissionError", lambda d, e, p: socket.getaddrinfo("rows.example", 80))
short("HTTP", "URLError", lambda data, ledger, path: urllib.request.urlopen("http://127.0.0.1/"))
short("fork", REFUSED, lambda data, ledger, path: os.fork())
short("exec", REFUSED, lambda data, ledger, path: os.execv("/bin/cat", ["cat", str(path)]))
short("program", "PermissionError|FileNotFound", lambda d, e, p: subprocess.run(["cat", str(p)]))
short("shell", "got -1|got 32512|got 127", lambda d, e, p: ctypes.CDLL(None).system(b"cat *"))
short("thread", "RuntimeError", lambda data, ledger, path: threading.Thread(target=int).start())
short("process", REFUSED, lambda data, ledger, path: multiprocessing.Process(target=int).start())
short("signal", REFUSED, lambda data, ledger, path: os.kill(os.getppid(), signal.SIGUSR1))
short("all signals", REFUSED, lambda data, ledger, path: os.kill(-1, signal.SIGUSR1))
short("limits", "PermissionError|ValueError", lambda d, e, p: resource.setrlimit(
    resource.RLIMIT_CPU, (10**6, 10**6)))  # fmt: skip
short("shared memory", "PermissionError|OSError|ImportError", lambda d, e, p: (
    shared_memory.SharedMemory("found", create=True, size=8)))  # fmt: skip
short("memory file", REFUSED, lambda data, ledger, path: os.memfd_create("found"))
short("namespace", "PermissionError|AttributeError", lambda d, e, p: os.unshare(0x10000000))


def called(number: int, *arguments: Any) -> int:
    """A call of the kernel that Python does not know."""
    library = ctypes.CDLL(None, use_errno=True)
    found = library.syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return found


CALLS = {"io_uring": 425, "open_by_handle": 304, "bpf": 321, "ptrace": 101, "shmget": 29}
CALLS |= {"userfaultfd": 323, "process_vm_readv": 310, "pidfd_getfd": 438, "openat2": 437}
CALLS |= {"perf_event": 298, "keyctl": 250, "mq_open": 240, "kcmp": 312, "sendmsg": 46}
for name, number in CALLS.items():
    short(f"call {name}", REFUSED, lambda d, e, p, number=number: called(number, 0, 0, 0, 0, 0))


@stopped(r"got \['null', 'null', 'null', 'socket'\]")
def descriptors(data: Any, ledger: Any, path: Path) -> Any:
    """What was inherited."""
    kinds = []
    for number in range(256):
        with contextlib.suppress(OSError):
            mode = os.fstat(number).st_mode
            kinds.append("socket" if mode & 0o170000 == 0o140000 else "null")
    return sorted(kinds)


@stopped("BlockingIOError|PermissionError")
def unasked(data: Any, ledger: Any, path: Path) -> Any:
    """What the custodian says without being asked."""
    with socket.socket(fileno=os.dup(line(data).fileno())) as again:
        return again.recv(1, socket.MSG_DONTWAIT)


@stopped(r"got \[\]")
def environment(data: Any, ledger: Any, path: Path) -> Any:
    known = ("_THREADS", "LC_ALL", "GLIBC_TUNABLES", "TORCHINDUCTOR_CACHE_DIR")
    return [name for name in os.environ if not any(each in name for each in known)]


# -- handles -----------------------------------------------------------------------------------

for operation in (len, iter, bool, list, sorted, float, int, copy.copy, copy.deepcopy, np.asarray):
    short(f"{operation.__name__} of rows", HANDLE, lambda d, e, p, do=operation: do(d))
short("pickle", HANDLE, lambda data, ledger, path: pickle.dumps(data))
short("order", HANDLE, lambda data, ledger, path: data < data.filter("age > 3"))
short("equality", HANDLE, lambda data, ledger, path: data == data.filter("age > 3"))
short("membership", HANDLE, lambda data, ledger, path: "zed" in data)
short("content", HANDLE, lambda data, ledger, path: data[0])
short("hash", "TypeError: unhashable", lambda data, ledger, path: hash(data))
short("array", HANDLE, lambda data, ledger, path: np.sum(data.vector("age")))
short("repr", "got '<rows 0 of private data>'", lambda data, ledger, path: repr(data))
short("state", "got ", lambda data, ledger, path: [data._number, sys.getsizeof(data)])
short("attribute", "AttributeError", lambda data, ledger, path: data.values)


def line(data: Any) -> socket.socket:
    """The socket itself, of the closure that asks."""
    return data._ask.__closure__[0].cell_contents._socket


@stopped(r"got 0")
def memory(data: Any, ledger: Any, path: Path) -> Any:
    """Objects of this process that speak of a person of the table."""
    return sum("zed-the" + "-loner" in each for each in gc.get_objects() if type(each) is list)


# -- requests ----------------------------------------------------------------------------------


def asked(op: str, **request: Any) -> Attempt:
    return lambda data, ledger, path: data._ask({"op": op} | request)


short("no such handle", "rows; give a handle", asked("count", of=99, at="visits"))
short("negative handle", "rows; give a handle", asked("count", of=-1, at="visits"))
short("truth as handle", "must be of another type", asked("count", of=True, at="visits"))
short("the ledger's insides", "there is no operation", asked("__getattribute__", of=0))
short("the owner's numbers", "there is no operation", asked("owner", of=0))
short("another label", NO_LABEL, lambda data, ledger, path: ledger.count(data, at="mine"))
short("answers of all", "local trust", lambda d, e, p: e.answers(d.vector("age"), at="visits"))
short("subquery", "InputError", lambda d, e, p: d.filter("age > (SELECT avg(age) FROM stored)"))
short("file of SQL", "InputError", lambda d, e, p: d.filter("age IN (FROM read_csv('rows.csv'))"))
short("end of a text", "InputError", lambda d, e, p: d.filter("age > 1) UNION SELECT * FROM units"))
short("attach", "InputError", lambda d, e, p: d.filter("1=1; ATTACH 'x.db'"))
short("error of a value", "InputError", lambda d, e, p: d.with_columns(x="error(person)"))
short("division", "InputError", lambda data, ledger, path: data.with_columns(x="1 / age"))
short("the unit as column", "InputError", lambda d, e, p: d.filter("person = 'zed'"))
short("beyond integers", "InputError", lambda d, e, p: d.vector(["age"]).linear([[2**60]]))
short("no integers", "InputError", lambda d, e, p: d.vector(["age"]).linear([[0.5]]))
short("told to the owner", "got None", lambda d, e, p: d.filter("age > 100").tell_owner("a"))
short("own ledger", "InputError", lambda d, e, p: Ledger(PLAN, rng=np.random.default_rng()).sum(
    d.vector("age"), at="visits"))  # fmt: skip


@stopped(NO_LABEL)
def another_plan(data: Any, ledger: Any, path: Path) -> Any:
    """The plan of the proxy is no plan of the ledger."""
    ledger.plan = Plan.of(*(each for each in PLAN.invocations), used("mine", 1e9))
    handles.SealedLedger.count = lambda self, rows, at: self._released("count", rows, at=at)
    return ledger.count(data, at="mine")


@stopped("PlanMismatchError: .*(times|often|releases)")
def twice(data: Any, ledger: Any, path: Path) -> Any:
    """One label, more often than declared."""
    return [ledger.count(data.filter("age > 900"), at="once") for _ in range(2)]


@stopped("got 'harmless'")
def import_hooks(data: Any, ledger: Any, path: Path) -> Any:
    """The custodian imports nothing that this process has touched."""
    sys.meta_path.insert(0, type("Finder", (), {"find_spec": lambda *_: None})())
    sys.modules["dpaudit.sealed.operations"] = sys.modules[__name__]
    data.filter("age > 1")
    return "harmless"


@stopped("got ")
def kept_state(data: Any, ledger: Any, path: Path) -> Any:
    """A sequence of handles, whose numbers follow from requests alone."""
    return [data.filter(f"age > {age}")._number for age in range(3)]


ABOUT = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)


def used(at: str, epsilon: float = 0.1) -> Invocation:
    part = Contribution(1, rows=1)
    return Invocation.bounded(DiscreteLaplace(1 / epsilon), part, *ABOUT, at=at)


PLAN = Plan.of(used("visits"), used("once"))


@dataclass(frozen=True)
class Attempts(SealedSubject):
    """Tries all of them."""

    path: str = "rows.csv"

    def table(self) -> Table:
        return Table("rows.csv", "person", {"age": {"type": "integer", "range": [0, 110]}})

    def plan(self) -> Plan:
        return PLAN

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        found = {}
        for name, (attempt, _) in ATTEMPTS.items():
            try:
                found[name] = f"got {attempt(data, ledger, Path(self.path))!r}"
            except BaseException as error:  # noqa: BLE001
                found[name] = f"{type(error).__name__}: {error}"
        print("found", found)  # noqa: T201
        os.write(1, b"found")
        ledger.count(data.filter("age > 900"), at="visits")  # of nobody
        return RunResult(found)
