"""What a function of one unit gets that tries to tell, to remember, or to learn of other units.

Each is run for one unit as the first, and after and among others of another table. Whatever it got,
it must have got the same, bit for bit.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dpaudit.base.errors import UnsupportedError
from dpaudit.sealed import sandbox
from dpaudit.sealed import workers as workers_of
from dpaudit.sealed.workers import Call, Job, MachineError, Workers
from dpaudit.workflow.sealing import boot

REASON = sandbox.lacking()
pytestmark = pytest.mark.skipif(bool(REASON), reason=f"nothing can be sealed here: {REASON}")


def made_of(files: list[str], folders: list[str]) -> dict[str, list[str]]:
    """The code of workers: the files of functions, and from where they import."""
    return {"functions": files, "paths": folders, "packages": []}


TEMPLATE = [sys.executable, "-IB", "-c", boot("dpaudit.sealed.template")]

HEAD = """
import array, asyncio, atexit, builtins, ctypes, errno, gc, importlib, inspect, json, logging, math
import mmap, multiprocessing.shared_memory, os, pickle, platform, random, resource, select, signal
import socket, struct, subprocess, sys, tempfile, threading, time, uuid, warnings, weakref
import numpy as np

COUNT = 0
OWN = []

class Shared:
    calls = 0

def raw(x86_64, aarch64, *arguments):
    "The error of a system call, by its number; 0 if it succeeded."
    call = ctypes.CDLL(None, use_errno=True).syscall
    number = x86_64 if platform.machine() == "x86_64" else aarch64
    given = (ctypes.c_long(a) if isinstance(a, int) else a for a in (number, *arguments))
    return ctypes.get_errno() if call(*given) == -1 else 0

def own():
    "The number of its socket."
    for number in range(3, 256):
        try:
            os.write(number, b"")
        except OSError:
            continue
        return number

def message(text):
    return struct.pack(">I", len(text)) + text

class Loads:
    "Runs code where it is unpickled."
    def __reduce__(self):
        return eval, ("__import__('os').getpid()",)
"""

PERM = r"failed: \w+(\.\w+)*: \[Errno 1\] Operation not permitted.*"
"""A wall refused it."""
NOTHING = "nothing"
"""It ended, or said what is no message."""

ATTEMPTS: dict[str, tuple[str, str]] = {
    # files
    "open a file": (PERM, "return len(open('/etc/passwd').read())"),
    "list the root": (PERM, "return len(os.listdir('/'))"),
    "stat the root": (PERM, "return os.stat('/').st_ino"),
    "inode of its socket": (PERM, "return os.fstat(own()).st_ino"),
    "inode of nothing": (PERM, "return os.fstat(0).st_ino"),
    "write a file": (PERM, "open('/tmp/left', 'w')"),
    "a temporary file": (r"failed: .*", "return tempfile.TemporaryFile().fileno()"),
    "its folder": (PERM, "return len(os.getcwd())"),
    "its memory by a file": (PERM, "return len(open('/proc/self/maps').read())"),
    "load of the machine": (r"failed: OSError: .*", "return os.getloadavg()[0]"),
    # numbers of processes
    "its number": ("value: -1", "return os.getpid()"),
    "number of its parent": ("value: -1", "return os.getppid()"),
    "number of its thread": (r"value: \d+", "return threading.get_native_id() % 2**50"),
    "thread as it was noted": (r"value: [1-9]\d*", "return threading.main_thread().native_id"),
    "its group": (PERM, "return os.getsid(0)"),
    "its user": ("value: 1", "return os.getuid() in (-1, 2**32 - 1)"),
    # what the machine did
    "its use of the machine": (PERM, "return resource.getrusage(0).ru_minflt"),
    "use by its children": (PERM, "return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime"),
    "times": (r"(failed|value): .*", "return os.times().user"),
    "free memory": (r"(failed|value): .*", "return os.sysconf('SC_AVPHYS_PAGES')"),
    "pages in memory": ("value: 1", "return raw(27, 232, 0, 4096, bytes(1))"),
    "statistics of the system": ("value: 1", "return raw(99, 179, bytes(128))"),
    "processors": (PERM, "return len(os.sched_getaffinity(0))"),
    "its priority": (PERM, "return os.nice(1)"),
    "its limits": (PERM, "return resource.getrlimit(resource.RLIMIT_CPU)[0]"),
    "other limits": (
        r"failed: ValueError: not allowed to raise.*",
        "resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))",
    ),
    "name of the machine": (PERM, "return len(os.uname().nodename)"),
    # clocks by a call
    "a clock by a call": ("value: 1", "return raw(228, 113, 0, bytes(16))"),
    "time": ("value: 0.0", "return time.time()"),
    "time of its processor": ("value: 0.0", "return time.process_time()"),
    "a clock of the library": (r"failed: OSError: \[Errno 38\].*", "return time.clock_gettime(1)"),
    "a coarse clock": (r"failed: OSError: \[Errno 38\].*", "return time.clock_gettime(6)"),
    "the time of a date": (
        r"(value: 1970|failed: .*)",
        "import datetime\nreturn datetime.datetime.now().year",
    ),
    "sleep": ("value: 1", "time.sleep(0.01)\nreturn 1"),
    "the counter of cycles": (
        NOTHING,
        "import mmap\ncode = bytes.fromhex('0f3148c1e22048 09d0c3')\n"
        "page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)\npage.write(code)\n"
        "place = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "return ctypes.CFUNCTYPE(ctypes.c_uint64)(place)()",
    ),
    "an alarm": (PERM, "signal.setitimer(signal.ITIMER_REAL, 0.01)"),
    "a clock as a file": ("value: 1", "return raw(283, 85, 1, 0)"),
    # signals
    "signal all": (PERM, "os.kill(-1, 0)"),
    "signal itself": (PERM, "os.kill(1, signal.SIGKILL)"),
    "signal its thread": (PERM, "signal.raise_signal(signal.SIGUSR1)"),
    "hear signals": (PERM, "signal.signal(signal.SIGXCPU, signal.SIG_IGN)"),
    "mask signals": (PERM, "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXCPU])"),
    "process as a file": (PERM, "return os.pidfd_open(1)"),
    "trace": ("value: 1", "return raw(101, 117, 0, 0, 0, 0)"),
    "memory of another": ("value: 1", "return raw(310, 270, 2, bytes(16), 1, bytes(16), 1, 0)"),
    # what processes share
    "shared memory by a key": ("value: 1", "return raw(29, 194, 7, 4096, 0o1600)"),
    "shared memory by a name": (
        PERM,
        "multiprocessing.shared_memory.SharedMemory('a', create=True, size=9)",
    ),
    "shared pages": (PERM, "return len(mmap.mmap(-1, 4096))"),
    "memory as a file": (PERM, "return os.memfd_create('a')"),
    "messages by a key": ("value: 1", "return raw(68, 186, 7, 0o1600)"),
    "a pipe": (PERM, "return os.pipe()[0]"),
    "a socket": (PERM, "return socket.socket().fileno()"),
    "a pair of sockets": (PERM, "return socket.socketpair()[0].fileno()"),
    "an event": (PERM, "return os.eventfd(0)"),
    "a loop of events": (r"failed: .*", "asyncio.run(asyncio.sleep(0))"),
    "keys of the kernel": ("value: 1", "return raw(248, 217, b'user', b'a', b'b', 1, -3)"),
    "io_uring": ("value: 1", "return raw(425, 425, 8, bytes(120))"),
    "bpf": ("value: 1", "return raw(321, 280, 0, bytes(72), 72)"),
    "performance events": ("value: 1", "return raw(298, 241, bytes(112), 0, -1, -1, 0)"),
    "merge equal pages": ("value: 1", "return raw(28, 233, 0, 0, 12)"),
    "write pages out": ("value: 1", "return raw(28, 233, 0, 0, 21)"),
    "keep pages": ("value: 1", "return raw(149, 228, 0, 4096)"),
    # programs and processes
    "fork": (PERM, "return os.fork()"),
    "spawn": (PERM, "return os.posix_spawn('/bin/true', ['true'], {})"),
    "execute": (PERM, "os.execv(sys.executable, [sys.executable])"),
    "a program": (PERM, "return subprocess.run(['true']).returncode"),
    "a thread": (r"failed: RuntimeError: .*", "threading.Thread(target=id).start()"),
    "a clone": ("value: 1", "return raw(56, 220, 17, 0, 0, 0, 0)"),
    # walls
    "namespaces": ("value: 1", "return raw(272, 97, 0x10000000)"),
    "another filter": ("value: 1", "return raw(317, 277, 0, 0, None)"),
    "be dumpable": ("value: 1", "return raw(157, 167, 4, 1, 0, 0, 0)"),
    "live on": ("value: 1", "return raw(157, 167, 1, 0, 0, 0, 0)"),
    "capabilities": ("value: 1", "return raw(126, 91, bytes(8), bytes(24))"),
    "personality": ("value: 1", "return raw(135, 92, 0x0040000)"),
    # its socket
    "who is there": (PERM, "s = socket.socket(fileno=own())"),
    "what waits in its socket": ("value: 1", "return raw(16, 29, own(), 0x541B, bytes(4))"),
    "send a descriptor": ("value: 1", "return raw(46, 211, own(), bytes(56), 0)"),
    "receive a descriptor": ("value: 1", "return raw(47, 212, own(), bytes(56), 0)"),
    "close it": (PERM, "os.close(own())"),
    "double it": (PERM, "return os.dup(own())"),
    "end one side": ("value: 1", "return raw(48, 210, own(), 1)"),
    "wait for it": (r"failed: .*", "return len(select.select([own()], [], [], 0)[0])"),
    "read on": ("value: 0", "return len(os.read(own(), 99))"),
    "read nothing": ("value: 0", "return len(os.read(0, 99))"),
    "answer for itself": (
        "value: 5",
        'os.write(own(), message(b\'{"value": 5, "state": ""}\')); return 6',
    ),
    "answer twice": ("value: 5", "os.write(own(), 2 * message(b'{\"value\": 5}')); os._exit(0)"),
    "no message": (NOTHING, "os.write(own(), b'GET / HTTP/1.0\\r\\n\\r\\n'); return 1"),
    "no JSON": (NOTHING, "os.write(own(), message(b'\\x80\\x04K\\x01.')); return 1"),
    "no table": (NOTHING, "os.write(own(), message(b'[1]')); return 1"),
    "half a message": (NOTHING, "os.write(own(), message(b'{}')[:5]); os._exit(0)"),
    "a long message": (NOTHING, "os.write(own(), struct.pack('>I', 2**32 - 1)); return 1"),
    "an endless message": (NOTHING, "while True: os.write(own(), bytes(2**16))"),
    "a deep message": (NOTHING, "os.write(own(), message(b'[' * 900)); return 1"),
    "a deep value": (
        r"failed: RecursionError: .*",
        "v = []\nfor _ in range(10**5): v = [v]\nreturn v",
    ),
    "a long value": (NOTHING, "return [1.0] * 10**5"),
    "a value that is a text": ("value: '7'", "return '7'"),
    # ends
    "exit": (r"failed: SystemExit: 3", "sys.exit(3)"),
    "exit at once": (NOTHING, "os._exit(3)"),
    "abort": (NOTHING, "os.abort()"),
    "a fault of memory": (NOTHING, "ctypes.string_at(0)"),
    "an interrupt": (r"failed: KeyboardInterrupt: .*", "raise KeyboardInterrupt"),
    "an error with a value": (
        r"failed: ValueError: \[41, 42\]",
        "raise ValueError(records['age'])",
    ),
    "an error that fails": (NOTHING, "class E(Exception):\n    __str__ = None\nraise E"),
    "call as another machine": (NOTHING, "I386"),
    "call as x32": ("value: 1", "return raw(39 | 0x40000000, 172)"),
    # exhaustion
    "memory": (r"failed: MemoryError: .*", "return len(bytearray(2**31))"),
    "memory in small pieces": (
        r"(failed: MemoryError: .*|nothing)",
        "kept = []\nwhile True: kept.append(bytearray(2**20))",
    ),
    "stack": (r"failed: RecursionError: .*", "def f(): return f()\nreturn f()"),
    "deep stack": (
        r"(nothing|failed: .*)",
        "sys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nreturn f(0)",
    ),
    "an eternal lock": (r"nothing", "lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    "an eternal loop": (NOTHING, "while True: pass"),
    "a futex": ("value: 1", "return raw(202, 98, bytes(4), 0, 0, None)"),
    # what is left behind in Python
    "a global": ("value: 1", "global COUNT; COUNT += 1; return COUNT"),
    "a list of the module": ("value: 1", "OWN.append(1); return len(OWN)"),
    "a class": ("value: 1", "Shared.calls += 1; return Shared.calls"),
    "its own attribute": (
        "value: 1",
        "f = sys._getframe().f_globals[sys._getframe().f_code.co_name]\n"
        "f.n = getattr(f, 'n', 0) + 1; return f.n",
    ),
    "a default": ("value: 1", "def f(n=[]): n.append(1); return len(n)\nreturn f()"),
    "a module of Python": ("value: 1", "math.n = getattr(math, 'n', 0) + 1; return math.n"),
    "a module of numpy": ("value: 1", "np.n = getattr(np, 'n', 0) + 1; return np.n"),
    "builtins": ("value: 1", "builtins.n = getattr(builtins, 'n', 0) + 1; return builtins.n"),
    "modules": (
        "value: 1",
        "sys.modules['left'] = Shared(); return sum(n == 'left' for n in sys.modules)",
    ),
    "its environment": (
        "value: 1",
        "os.environ['n'] = str(int(os.environ.get('n', 0)) + 1); return int(os.environ['n'])",
    ),
    "a hook": (
        "value: 1",
        "sys.addaudithook(lambda *_: OWN.append(1)); gc.callbacks.append(id)\n"
        "sys.setprofile(lambda *_: None); return len(gc.callbacks)",
    ),
    "when it ends": ("value: 1", "atexit.register(os.write, own(), b'left'); return 1"),
    "when it is collected": (
        "value: 1",
        "weakref.finalize(Shared, os.write, own(), b'left'); return 1",
    ),
    "functions of the template": (
        "value: 1",
        "t = sys.modules['dpaudit.sealed.template']\nt.n = getattr(t, 'n', 0) + 1; return t.n",
    ),
    "code of another": (r"failed: ModuleNotFoundError: .*", "importlib.import_module('duckdb')"),
    "a module nobody named": (
        r"failed: ModuleNotFoundError: .*",
        "importlib.import_module('sqlite3')",
    ),
    "paths of imports": (
        r"failed: (ModuleNotFoundError|PermissionError): .*",
        "import importlib.machinery as m\nsys.meta_path.append(m.PathFinder)\n"
        "sys.path.append('/usr/lib/python3')\nimportlib.import_module('ftplib')",
    ),
    # what is random, and where things are
    "random": (r"value: 0\.\d+", "return random.random()"),
    "random of numpy": (r"value: 0\.\d+", "return np.random.rand()"),
    "its generator": (r"value: 0\.\d+", "return rng.random()"),
    "fresh generator": (r"failed: .*", "return np.random.default_rng().random()"),
    "fresh randomness": (r"failed: .*", "return os.urandom(1)[0]"),
    "a unique name": (r"failed: .*", "return uuid.uuid4().int % 2**50"),
    "hashes": (r"value: \d+", "return hash('ann') % 2**50"),
    "order of a set": (r"value: \d+", "return list({'a', 'b', 'c', 'd'}).index('a')"),
    "where its records are": (r"value: \d+", "return id(records) % 2**50"),
    "where new things are": (r"value: \d+", "return id(object()) % 2**50"),
    "where new pages are": (
        r"value: \d+",
        "return ctypes.addressof(ctypes.create_string_buffer(2**22)) % 2**50",
    ),
    "its stack": (
        r"value: \d+",
        "b = ctypes.c_int(); r = []\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda p: r.append(p) or 0)\n"
        "f(ctypes.addressof(b)); return r[0] % 2**50",
    ),
    "how many references to None": (r"value: \d+", "return sys.getrefcount(None)"),
    "how many objects there are": (r"value: \d+", "return len(gc.get_objects())"),
    "how much was allocated": (r"value: \d+", "return sys.getallocatedblocks()"),
    "collections so far": (
        r"value: \d+",
        "return sum(map(sum, (s.values() for s in gc.get_stats())))",
    ),
    "other records": (
        "value: 0",
        "return sum('loner' in repr(o) for o in gc.get_objects() if isinstance(o, (dict, list)))",
    ),
    "memory around it": (
        "value: 0",
        "pages = {id(each) & ~0xFFF for each in gc.get_objects()}\n"
        "text = b''.join(ctypes.string_at(page, 2**12) for page in sorted(pages))\n"
        "return text.count(b'zed-the-' + b'loner')",
    ),
    "memory that was freed": (
        r"value: \d+",
        "import zlib\nreturn zlib.crc32(bytes(np.empty(2**16, np.uint8)))",
    ),
    "frames of the template": (
        r"value: \d+",
        "f, n = sys._getframe(), 0\nwhile f: n += len(f.f_locals); f = f.f_back\nreturn n",
    ),
    "the socket of the template": (
        r"failed: .*",
        "f = sys._getframe()\nwhile 'call' not in f.f_locals: f = f.f_back\n"
        "return os.write(f.f_locals['self']._control, b's')",
    ),
    "what it was told": (
        r"value: \d+",
        "f = sys._getframe()\nwhile 'call' not in f.f_locals: f = f.f_back\n"
        "return len(json.dumps(f.f_locals['call']))",
    ),
    # what it says beside
    "print": ("value: 1", "print('left'); print('left', file=sys.stderr); return 1"),
    "print below Python": ("value: 1", "os.write(1, b'left'); os.write(2, b'left'); return 1"),
    "warn": ("value: 1", "warnings.warn('left'); logging.error('left'); return 1"),
}

I386 = """
code = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, getpid; int 0x80; ret
return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
OF_CALLS = {
    name for name in ATTEMPTS if name.startswith(("where ", "how ", "its stack", "memory that"))
}
"""What also follows from how many calls there were before, of whatever units; it is public."""
SPINS = {"an eternal lock", "an eternal loop"}
INTEL = {"call as another machine", "call as x32"}

STATES: dict[str, tuple[str, str]] = {
    "calls of its own": (r"value: [12]", "n = (state or 0) + 1; return n, n"),
    "code that runs where it is read": (
        r"value: (0|-1)",
        "return (0 if state is None else state), Loads()",
    ),
    "a huge state": (NOTHING, "return 1, bytes(2**23)"),
    "a deep state": (
        r"failed: RecursionError: .*",
        "v = []\nfor _ in range(10**5): v = [v]\nreturn 1, v",
    ),
    "a state of classes": (
        r"value: [01]",
        "Shared.calls += 1; s = state or Shared(); return Shared.calls - 1, s",
    ),
    "a state that cannot be read": (
        r"(value: 1|failed: .*)",
        'os.write(own(), message(b\'{"value": 1, "state": "!"}\')); os._exit(0)',
    ),
}

FIXED = Job({"age": [41, 42], "name": ["ann", "ann"]}, "5" * 64)
LONER = Job({"age": [101] * 50, "name": ["zed-the-loner"] * 50}, "9" * 64)
OTHER = Job({"age": [7], "name": ["ben"]}, "3" * 64)


def named(name: str) -> str:
    return "f_" + re.sub(r"\W", "_", name)


def write_code(folder: Path) -> None:
    """A file with all of them."""
    made = [HEAD]
    for name, (_, body) in ATTEMPTS.items():
        body = I386 if body == "I386" else body
        made.append(f"def {named(name)}(records, rng):\n{textwrap.indent(body, '    ')}\n")
    for name, (_, body) in STATES.items():
        made.append(f"def {named(name)}(records, rng, state):\n{textwrap.indent(body, '    ')}\n")
    (folder / "hostile.py").write_text("\n".join(made), encoding="utf-8")


OTHERS: set[int] = set()
"""Templates of other tests, by their numbers."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workers, str]]:
    folder = tmp_path_factory.mktemp("code")
    write_code(folder)
    file = str(folder / "hostile.py")
    with ExitStack() as stack:
        made = Workers(TEMPLATE, made_of([file], [str(folder)]), stack)
        _, tries = made.seal([file])
        assert {name for name, how in tries.items() if how == "succeeded"} == set()
        OTHERS.update(children())
        yield made, file


def shown(said: dict[str, Any]) -> str:
    if "value" in said:
        value = said["value"]
        return f"value: {int(value) if isinstance(value, bool) else value!r}"
    return f"failed: {said['failed']}" if "failed" in said else "nothing"


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_a_function_gets_is_the_same_whatever_other_units_there_are(
    workers, name, capfd, monkeypatch
):
    if name in INTEL and platform.machine() != "x86_64":
        pytest.skip("a call that x86_64 alone has")
    made, file = workers
    monkeypatch.setattr(workers_of, "PROCESSOR_SECONDS", 1 if name in SPINS else 10)
    monkeypatch.setattr(workers_of, "MEMORY_BYTES", 2**27)
    call = Call(file, named(name), {}, 1)
    if name in SPINS:
        first, _, second = made.run(call, [FIXED, LONER, FIXED])
        assert (shown(first), second) == (NOTHING, first)
        return
    first, _, second, _, _, third = made.run(call, [FIXED, LONER, FIXED, LONER, OTHER, FIXED])
    assert re.fullmatch(ATTEMPTS[name][0], shown(first), re.DOTALL), shown(first)
    assert first == second == third
    if name not in OF_CALLS:
        assert made.run(call, [LONER, OTHER, FIXED])[-1] == first
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", STATES)
def test_a_state_tells_of_its_own_unit_alone(workers, name):
    made, file = workers
    call = Call(file, named(name), {}, 1, keeps_state=True)

    def calls(*others: Job) -> list[dict[str, Any]]:
        told, states = [], [""] * (1 + len(others))
        for _ in range(2):
            jobs = [
                Job(job.records, job.seed, state)
                for job, state in zip((*others, FIXED), states, strict=True)
            ]
            found = made.run(call, jobs)
            states = [str(each.get("state", "")) for each in found]
            told.append(found[-1])
        return told

    alone = calls()
    assert re.fullmatch(STATES[name][0], shown(alone[0]))
    assert calls(LONER, OTHER) == alone
    assert all("loner" not in json.dumps(each) for each in alone)


def test_there_are_enough_of_them() -> None:
    assert len(ATTEMPTS) + len(STATES) >= 40


# -- the template ------------------------------------------------------------------------------

UNWALLED = """
from dpaudit.sealed import sandbox
from dpaudit.sealed import workers as workers_of
sandbox.confine_template = lambda control: ()
sandbox.confine_worker = lambda *_: None
"""
"""A template without walls, so that its workers can read where their memory is."""
MEMORY = """
import array, os, zlib
{imports}

def sums(records, rng):
    "A sum of each mapping that can be written, and one of where all of them are."
    memory, found = os.open("/proc/self/mem", os.O_RDONLY), []
    with open("/proc/self/maps", "rb") as file:
        maps = file.read()
    for line in maps.splitlines():
        place, rights, *_ = line.split()
        first, last = (int(each, 16) for each in place.split(b"-"))
        if b"w" in rights and b"[v" not in line:
            found.append(zlib.crc32(os.pread(memory, last - first, first)))
    return [zlib.crc32(maps), len(found), zlib.crc32(array.array("L", found).tobytes())]
"""


@pytest.mark.parametrize("imports", ["", "import numpy"])
def test_the_memory_of_a_worker_is_the_same_however_many_came_before(tmp_path, imports):
    """Of the same unit, bit for bit: heap, stack, and the data of all libraries."""
    (tmp_path / "memory.py").write_text(MEMORY.format(imports=imports))
    file = str(tmp_path / "memory.py")
    words = [*TEMPLATE[:-1], TEMPLATE[-1].replace("main(int", f"{UNWALLED}\nmain(int")]
    with ExitStack() as stack:
        made = Workers(words, made_of([file], [str(tmp_path)]), stack)
        made.seal([])
        call = Call(file, "sums", {}, 3)
        for jobs in ([FIXED] * 20, [FIXED, LONER, OTHER] * 10, [FIXED, *[LONER] * 7, *[FIXED] * 3]):
            found = [
                each["value"]
                for each, job in zip(made.run(call, jobs), jobs, strict=True)
                if job is FIXED
            ]
            assert found[0][1] > 5
            assert found == [found[0]] * len(found)
        (other,) = made.run(call, [LONER])
        assert other["value"] != found[0]


# -- faults ------------------------------------------------------------------------------------

SLOW = """
def spins_if_old(records, rng):
    while records["age"][0] == 101:
        pass
    return len(records["age"])
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Workers, Call]]:
    (tmp_path / "slow.py").write_text(SLOW)
    file = str(tmp_path / "slow.py")
    with ExitStack() as stack:
        made = Workers(TEMPLATE, made_of([file], [str(tmp_path)]), stack)
        made.seal([])
        yield made, Call(file, "spins_if_old", {}, 1)


def children() -> dict[int, bool]:
    """Processes of a test by their numbers, and whether each is the template."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            _, _, rest = (path / "stat").read_text().rpartition(")")
            status = (path / "status").read_text()
            own = "sealed.template" in (path / "cmdline").read_text()
            if own and int(rest.split()[1]) == os.getpid() and rest.split()[0] != "Z":
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid"))
                found[int(path.name)] = len(numbers.split()) == 2
    return {number: own for number, own in found.items() if number not in OTHERS}


def killed_soon(template: bool) -> threading.Thread:
    """Kills the template, or a worker, once there is a worker."""

    def kill() -> None:
        for _ in range(600):
            found = children()
            if False in found.values():
                os.kill(next(n for n, own in found.items() if own is template), signal.SIGKILL)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_who_spins_has_the_default_and_others_their_values(slow, monkeypatch):
    monkeypatch.setattr(workers_of, "PROCESSOR_SECONDS", 1)
    made, call = slow
    found = made.run(call, [LONER, FIXED, OTHER, LONER, FIXED])
    assert [each.get("value") for each in found] == [None, 2, 1, None, 2]
    assert found[0] == {}
    assert list(children().values()) == [True]


def test_who_used_up_its_time_beside_others_is_asked_again_alone(monkeypatch):
    """What others do to caches and memory makes it slower, and decides on no value."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    made, busy, started = Workers.__new__(Workers), [], threading.Barrier(4, timeout=60)

    def work(job: Job, limit: int) -> dict[str, Any]:
        if len(busy) < 4:  # the first four, beside each other
            busy.append(job)
            started.wait()
            return {"value": 1} if job.seed == "quick" else {}
        return {} if job.seed == "endless" else {"value": 2}

    monkeypatch.setattr(made, "_order", lambda _: None, raising=False)
    monkeypatch.setattr(made, "_work", work)
    jobs = [Job({}, seed) for seed in ("slow", "quick", "slow", "endless")]
    found = made.run(Call("f", "f", {}, 1), jobs)
    assert found == [{"value": 2}, {"value": 1}, {"value": 2}, {}]


@pytest.mark.parametrize("template", [False, True])
def test_a_process_that_another_kills_is_no_default(slow, template):
    made, call = slow
    thread = killed_soon(template)
    with pytest.raises((MachineError, OSError)):
        made.run(call, [LONER, *[FIXED] * 3, LONER, *[FIXED] * 300])
    thread.join()


def test_a_machine_that_is_stuck_ends_the_run(slow, monkeypatch):
    monkeypatch.setattr(workers_of, "_PATIENCE", 1)
    made, call = slow
    with pytest.raises(MachineError):
        made.run(call, [FIXED, LONER])


@pytest.mark.parametrize("when", ["copies", "reads the files", "has two threads"])
def test_a_template_that_ends_unseals_no_run(tmp_path, when):
    """It reads the author's files, and imports what they name: its author would have the rows."""
    (tmp_path / "slow.py").write_text(SLOW)
    fault = "from dpaudit.sealed import sandbox; sandbox._CLONE = {'x86_64': 999, 'aarch64': 999}"
    if when == "reads the files":
        fault = "import ast; ast.parse = lambda *_: bytearray(2**60)"
    if when == "has two threads":  # as of a library, which the kernel lets into no namespace
        fault = "import _thread, time; _thread.start_new_thread(time.sleep, (60,))"
    words = [*TEMPLATE[:-1], TEMPLATE[-1].replace("main(int", f"{fault}\nmain(int")]
    with ExitStack() as stack:
        made = Workers(words, made_of([str(tmp_path / "slow.py")], [str(tmp_path)]), stack)
        with pytest.raises(UnsupportedError, match="processes of functions cannot be made") as told:
            made.seal([])
    assert not isinstance(told.value, sandbox.UnsealableError)
