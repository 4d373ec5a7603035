"""A confined process gets nothing beyond its folders and its socket, whatever it tries."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpaudit.certificate import records
from dpaudit.sealed import sandbox
from dpaudit.sealed.sandbox import UnsealableError, lacking, python_folders, refuse_within

CHECKOUT = Path(sandbox.__file__).parents[2]
SCRIPT = Path(__file__).parent / "escapes" / "confined.py"

REASON = lacking()
sealable = pytest.mark.skipif(bool(REASON), reason=f"nothing can be sealed here: {REASON}")
intel = pytest.mark.skipif(platform.machine() != "x86_64", reason="a call that x86_64 alone has")


class Confined:
    """A confined process, and the socket that is left to it."""

    def __init__(self, places: Path, ordinary: bool, without: tuple[str, ...] = (), seconds=60):
        self.channel, theirs = socket.socketpair()
        self.channel.settimeout(60)
        settings = {
            "checkout": str(CHECKOUT),
            "private": str(places / "data" / "table.csv"),
            "copy": str(places / "copy"),
            "descriptor": theirs.fileno(),
            "ordinary": ordinary,
            "without": without,
            "seconds": seconds,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), json.dumps(settings)],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "SECRET": "of the custodian"},
        )
        theirs.close()
        self.answers = self.channel.makefile("r", encoding="utf-8")

    def attempt(self, code: str) -> str:
        """What came of the code: a value, the name of an error, or "ended"."""
        self.channel.sendall(json.dumps(code).encode() + b"\n")
        line = self.answers.readline()
        return json.loads(line) if line else "ended"

    def end(self) -> str:
        """With what status the confined process ended, and whatever else it wrote."""
        self.answers.close()
        self.channel.close()
        return "".join(self.process.communicate(timeout=60))

    def __enter__(self) -> Confined:
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.close()
        self.channel.close()
        with self.process:
            self.process.kill()  # the confined process ends with it


@pytest.fixture(scope="module")
def places():
    """A folder with private data, and one with a copy of code from which a link leads to them."""
    root = Path(tempfile.mkdtemp())  # that of pytest is closed to other users
    root.chmod(0o755)
    (root / "data").mkdir()
    (root / "copy").mkdir()
    (root / "data" / "table.csv").write_text("age\n37\n", encoding="utf-8")
    (root / "copy" / "rules.py").write_text("THRESHOLD = 18\n", encoding="utf-8")
    (root / "copy" / "rules.py").chmod(0o666)
    (root / "copy" / "link.csv").symlink_to(root / "data" / "table.csv")
    (root / "copy" / "link").symlink_to(root / "data")
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module", params=["root", "ordinary"])
def ordinary(request):
    """Whether the process is an ordinary user's."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("the tests are not run by root")
    return request.param == "ordinary"


@pytest.fixture(scope="module")
def confined(places, ordinary):
    with Confined(places, ordinary) as process:
        yield process
        assert process.end() == "0"


NO_FILE = {
    "open the data": "open(private)",
    "open the data by a link in the copy": "open(copy + '/link.csv')",
    "open the data by dots": "open(copy + '/../data/table.csv')",
    "open the data by a linked folder": "open('link/table.csv')",
    "stat the data": "os.stat(private)",
    "stat the data by a link": "os.stat('link.csv')",
    "ask whether the data are there": "os.stat(os.path.dirname(private))",
    "list the folder of the data": "os.listdir(os.path.dirname(private))",
    "list by a link": "os.listdir('link')",
    "read passwords": "open('/etc/passwd')",
    "own environment": "open('/proc/self/environ')",
    "own descriptors": "os.listdir('/proc/self/fd')",
    "own root": "os.listdir('/proc/self/root')",
    "memory of the parent": "open(f'/proc/{parent}/mem', 'rb')",
    "status of the parent": "open(f'/proc/{parent}/status')",
    "processes": "os.listdir('/proc')",
    "memory of the machine": "open('/dev/mem', 'rb')",
    "disk": "open('/dev/vda', 'rb')",
    "devices": "os.listdir('/sys')",
    "shared memory of others": "os.listdir('/dev/shm')",
}

NO_LISTING = {
    "list the root": "os.listdir('/')",
    "list the folder of the copy": "os.listdir(os.path.dirname(copy))",
    "list settings": "os.listdir('/etc')",
}

NO_CALL = {
    # files
    "write in the copy": "open(copy + '/out.txt', 'w')",
    "append to code": "open(copy + '/rules.py', 'a')",
    "write in /tmp": "open('/tmp/out.txt', 'w')",
    "write unnamed": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "open for its path alone": "os.open(copy, os.O_PATH)",
    "openat2": "raw(437, 437, -100, copy.encode(), bytes(24), 24)",
    "truncate": "os.truncate(copy + '/rules.py', 0)",
    "make a folder": "os.mkdir(copy + '/new')",
    "remove": "os.remove(copy + '/rules.py')",
    "rename": "os.rename(copy + '/rules.py', copy + '/other.py')",
    "link": "os.link(copy + '/rules.py', copy + '/other.py')",
    "make a symbolic link": "os.symlink(private, copy + '/other.csv')",
    "make a pipe in a folder": "os.mkfifo(copy + '/pipe')",
    "change rights": "os.chmod(copy + '/rules.py', 0o777)",
    "change times": "os.utime(copy + '/rules.py')",
    "change attributes": "os.setxattr(copy + '/rules.py', 'user.a', b'1')",
    "lock a file": "import fcntl; fcntl.flock(open(copy + '/rules.py'), fcntl.LOCK_EX)",
    "lock a record": "import fcntl; fcntl.lockf(open(copy + '/rules.py'), fcntl.LOCK_SH)",
    "space on a disk": "os.statvfs(copy)",
    "free memory": "raw(99, 179, ctypes.create_string_buffer(128))",
    "handle of a file": "libc('name_to_handle_at', -100, copy.encode(), bytes(128), bytes(8), 0)",
    "file by its handle": "libc('open_by_handle_at', -100, bytes(128), 0)",
    "watch files": "libc('inotify_init1', 0)",
    "watch the system": "libc('fanotify_init', 0, 0)",
    # network
    "socket inet": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "socket inet6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "socket unix": "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "socket netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket packet": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "socket vsock": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "pair of sockets": "socket.socketpair()",
    "connect what is there": "channel.connect(b'\\0name')",
    "send to an address": "channel.sendto(b'a', b'\\0name')",
    "send a descriptor": "socket.send_fds(channel, [b'a'], [channel.fileno()])",
    "receive a descriptor": "socket.recv_fds(channel, 1, 1)",
    "options of the socket": "channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)",
    # processes
    "fork": "os.fork()",
    "vfork": "libc('vfork')",
    "clone3": "raw(435, 435, bytes(88), 88)",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "execute": "os.execv('/bin/true', ['true'])",
    "execute a file that is there": "os.execve(copy + '/rules.py', ['rules'], {})",
    "execute a descriptor": "raw(322, 281, 1, b'', None, None, 0x1000)",
    "ptrace the parent": "libc('ptrace', 0x4206, parent, None, None)",
    "be traced": "libc('ptrace', 0, 0, None, None)",
    "signal the parent": "os.kill(parent, 0)",
    "kill all": "os.kill(-1, 0)",
    "signal a thread of the parent": "raw(234, 131, parent, parent, 0)",
    "queue a signal": "raw(129, 138, parent, 0, bytes(128))",
    "handle of the parent": "os.pidfd_open(parent)",
    "descriptor of the parent": "raw(438, 438, 3, 0, 0)",
    "compare with the parent": "raw(312, 272, os.getpid(), parent, 0, 0, 0)",
    "signals by a descriptor": "import fcntl; fcntl.fcntl(channel, fcntl.F_SETOWN, parent)",
    "type on a terminal": "import fcntl; fcntl.ioctl(0, 0x5412, b'a')",
    "priority of the parent": "os.setpriority(os.PRIO_PROCESS, parent, 19)",
    "processors of the parent": "os.sched_setaffinity(parent, {0})",
    "see processors of the parent": "os.sched_getaffinity(parent)",
    "limits of the parent": "resource.prlimit(parent, resource.RLIMIT_NOFILE)",
    "own limits": "resource.prlimit(0, resource.RLIMIT_CPU, (100, 100))",
    "session of the parent": "os.getsid(parent)",
    # memory
    "shared memory by a key": "libc('shmget', 7, 4096, 0o1600)",
    "messages by a key": "libc('msgget', 7, 0o1600)",
    "semaphores by a key": "libc('semget', 7, 1, 0o1600)",
    "shared memory by a name": "libc('shm_open', b'/dpaudit', os.O_RDWR | os.O_CREAT, 0o600)",
    "messages by a name": "libc('mq_open', b'/dpaudit', os.O_RDWR | os.O_CREAT, 0o600, None)",
    "memory as a file": "os.memfd_create('a')",
    "secret memory": "raw(447, 447, 0)",
    "faults of pages": "raw(323, 282, 0)",
    "pages in the cache": "libc('mincore', None, 0, bytes(8))",
    # the kernel
    "io_uring": "raw(425, 425, 8, bytes(120))",
    "bpf": "raw(321, 280, 0, bytes(72), 72)",
    "performance events": "raw(298, 241, bytes(112), 0, -1, -1, 0)",
    "keys": "raw(250, 219, 0, -3, 0)",
    "messages of the kernel": "libc('klogctl', 10, None, 0)",
    "modules": "raw(175, 105, b'', 0, b'')",
    "personality": "libc('personality', 0x0040000)",
    # the walls
    "mount": "libc('mount', b'none', b'/', b'tmpfs', 0, None)",
    "unmount": "libc('umount2', b'/', 2)",
    "mount in new ways": "raw(428, 428, -100, b'/', 1)",
    "another root": "os.chroot(copy)",
    "exchange roots": "libc('pivot_root', b'/', b'/')",
    "another folder": "os.chdir('/')",
    "namespaces anew": "libc('unshare', 0x10000000)",
    "join a namespace": "libc('setns', 0, 0)",
    "be another user": "os.setresuid(1, 1, 1)",
    "capabilities": "libc('capset', b'\\x22\\x05\\x08\\x20' + bytes(4), bytes(24))",
    "be dumpable": "libc('prctl', 4, 1, 0, 0, 0)",
    "survive the parent": "libc('prctl', 1, 0, 0, 0, 0)",
    "another filter": "raw(317, 277, 0, 0, None)",
    "more rules": "raw(444, 444, bytes(24), 24, 0)",
}


@sealable
@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(code, error, id=name)
        for error, attempts in (("ENOENT", NO_FILE), ("EACCES", NO_LISTING), ("EPERM", NO_CALL))
        for name, code in attempts.items()
    ],
)
def test_an_escape_is_stopped_by_its_wall(confined, code, error):
    assert confined.attempt(code) == error


# What is behind seccomp: code, and the error where it does not stop the code.
SECOND_WALLS = {
    "write in the copy": ("open(copy + '/out.txt', 'w')", "EROFS"),
    "append to code": ("open(copy + '/rules.py', 'a')", "EROFS"),
    "write in /tmp": ("open('/tmp/out.txt', 'w')", "EROFS"),
    "change rights": ("os.chmod(copy + '/rules.py', 0o777)", "EROFS"),
    "remove": ("os.remove(copy + '/rules.py')", "EROFS"),
    "shared memory": ("libc('shm_open', b'/a', os.O_RDWR | os.O_CREAT, 0o600)", "ENOENT"),
    "connect": ("socket.socket().connect(('127.0.0.1', 80))", "EACCES"),
    "bind": ("socket.socket().bind(('127.0.0.1', 0))", "EACCES"),
    "send": (
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'a', ('127.0.0.1', 9))",
        "ENETUNREACH",
    ),
    "packets": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", "EPERM"),
    "signal": ("os.kill(parent, 0)", "EPERM"),
    "ptrace": ("libc('ptrace', 0x4206, parent, None, None)", "EPERM"),
    "descriptor of the parent": ("raw(438, 438, os.pidfd_open(parent), 0, 0)", "EPERM"),
    "execute": ("os.execve(copy + '/rules.py', ['rules'], {})", "EACCES"),
    "mount": ("libc('mount', b'none', b'/', b'tmpfs', 0, None)", "EPERM"),
    "another root": ("os.chroot(copy)", "EPERM"),
    "another user": ("os.setresuid(1, 1, 1)", "EINVAL"),
    "mount anew": (
        "libc('unshare', 0x10020000); libc('mount', b'none', b'/', b'tmpfs', 0, None)",
        "EPERM",
    ),
}

READ_PARENT = """
import struct
there = ctypes.create_string_buffer(24)
ours, theirs = (struct.pack('@PN', a, 24) for a in (ctypes.addressof(there), secret))
libc('process_vm_readv', parent, ours, 1, theirs, 1, 0)
result = there.raw.decode()
"""
FORK = """
if os.fork() == 0:
    os._exit(0)
"""


@pytest.fixture(scope="module")
def unfiltered(places, ordinary):
    with Confined(places, ordinary, ("_restrict_calls",)) as process:
        yield process


@sealable
@pytest.mark.parametrize("name", SECOND_WALLS)
def test_behind_the_filter_stands_a_second_wall(unfiltered, name):
    code, error = SECOND_WALLS[name]
    assert unfiltered.attempt(code) == error


@sealable
def test_behind_the_filter_no_memory_is_read_and_no_ordinary_user_forks(unfiltered, ordinary):
    assert unfiltered.attempt(READ_PARENT) == "EPERM"
    if ordinary:
        assert unfiltered.attempt(FORK) == "EAGAIN"


@sealable
def test_nothing_is_left_to_dump_or_to_gain(unfiltered):
    assert unfiltered.attempt("result = libc('prctl', 3, 0, 0, 0, 0)") == "succeeded: 0"  # dumpable
    assert unfiltered.attempt("result = libc('prctl', 39, 0, 0, 0, 0)") == "succeeded: 1"  # no new
    limits = "result = [resource.getrlimit(getattr(resource, f'RLIMIT_{name}')) for name in names]"
    names = "names = 'CORE FSIZE NPROC NOFILE AS CPU'.split()\n"
    memory = 3 << 30
    assert unfiltered.attempt(names + limits) == (
        f"succeeded: [(0, 0), (0, 0), (0, 0), (256, 256), ({memory}, {memory}), (60, 61)]"
    )


@sealable
def test_behind_the_root_stands_landlock(places, ordinary):
    with Confined(places, ordinary, ("_move_root",)) as process:
        for name in ("open the data", "open the data by a link in the copy", "list by a link"):
            assert process.attempt(NO_FILE[name]) == "EACCES"
        for name in ("own environment", "processes", "read passwords", "memory of the parent"):
            assert process.attempt(NO_FILE[name]) == "EACCES"
        assert process.end() == "0"


ALL = (
    "_close_descriptors",
    "_leave_namespaces",
    "_move_root",
    "_drop_privileges",
    "_restrict_files",
    "_restrict_calls",
)


@sealable
def test_without_walls_the_same_code_gets_through(places, ordinary):
    with Confined(places, ordinary, ALL) as process:
        assert "37" in process.attempt("result = open(private).read()")
        assert "37" in process.attempt("result = os.read(inherited, 99)")
        assert process.attempt(READ_PARENT) == "succeeded: a value of the custodian"
        for name in ("stat the data", "list by a link", "memory of the parent"):
            assert process.attempt(NO_FILE[name]).startswith("succeeded")
        for name in ("signal the parent", "socket inet", "memory as a file", "ptrace the parent"):
            assert process.attempt(NO_CALL[name]).startswith("succeeded")


@sealable
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("result = open(copy + '/rules.py').read()", "THRESHOLD = 18\n"),
        ("result = sorted(os.listdir(copy))", "['link', 'link.csv', 'rules.py']"),
        ("result = os.getcwd() == copy", "True"),
        ("import sys; sys.path.insert(0, copy); import rules; result = rules.THRESHOLD", "18"),
        ("import dpaudit.plan, dpaudit.mechanisms; result = 1", "1"),
        (
            "import numpy, scipy.special; result = scipy.special.gamma(numpy.arange(1, 5)).sum()",
            "10.0",
        ),
        ("import scipy.stats; result = scipy.stats.norm.cdf(0)", "0.5"),
        ("import numpy; result = numpy.linalg.svd(numpy.eye(200))[1].sum()", "200.0"),
        ("import numpy; result = numpy.random.default_rng().random() < 1", "True"),
        ("import zoneinfo; result = zoneinfo.ZoneInfo('Europe/Paris')", "Europe/Paris"),
        ("import time; time.sleep(9); result = time.time(), time.process_time()", "(0.0, 0.0)"),
        ("print('to nobody'); import sys; print('to nobody', file=sys.stderr)", "None"),
        ("result = open(0).read()", ""),
        ("result = dict(os.environ).get('SECRET')", "of the custodian"),  # what it had, it has
    ],
)
def test_what_is_left_works(confined, code, answer):
    assert confined.attempt(code) == f"succeeded: {answer}"


@sealable
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("os.read(inherited, 1)", "EBADF"),
        ("bytearray(1 << 42)", "MemoryError: "),
        ("import mmap; mmap.mmap(-1, 1 << 42)", "ENOMEM"),
        (
            "import threading; threading.Thread(target=id).start()",
            "RuntimeError: can't start new thread",
        ),
        ("import subprocess; subprocess.run(['true'])", "EPERM"),
        ("import multiprocessing as m; m.Process(target=id).start()", "EPERM"),
        ("import tempfile; tempfile.TemporaryFile()", "ENOENT"),
        (
            "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
            "URLError(PermissionError",
        ),
        ("import asyncio; asyncio.run(asyncio.sleep(0))", "ENOSYS"),
    ],
)
def test_libraries_fail_as_the_kernel_does(confined, code, answer):
    assert confined.attempt(code).startswith(answer)


X32 = "raw(39 | 0x40000000, 0)"
I386 = """
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, getpid; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
DEAF = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"


@sealable
@intel
def test_calls_of_x32_are_not_known(confined):
    assert confined.attempt(X32) in ("EPERM", "ENOSYS")


@sealable
@pytest.mark.parametrize(
    ("code", "ended"),
    [
        pytest.param("while True: pass", signal.SIGXCPU, id="spin"),
        pytest.param(DEAF + "while True: pass", signal.SIGKILL, id="spin and be deaf"),
        pytest.param("os.abort()", signal.SIGABRT, id="abort"),
        pytest.param(I386, signal.SIGSYS, id="call as i386", marks=intel),
    ],
)
def test_what_ends_the_process(places, ordinary, code, ended):
    with Confined(places, ordinary, seconds=1) as process:
        assert process.attempt(code) == "ended"
        assert process.end() == str(-ended)


@sealable
def test_the_process_ends_with_the_custodian(places, ordinary):
    with Confined(places, ordinary) as process:
        asleep = "channel.sendall(b'1' + bytes([10])); import threading; threading.Event().wait()"
        assert process.attempt(asleep) == 1
        process.process.kill()
        assert process.answers.readline() == ""


TRIES = {
    "open what is private": "ENOENT",
    "list what is private": "ENOENT",
    "stat what is private": "ENOENT",
    "write a file": "EPERM",
    "make a socket": "EPERM",
    "connect": "EPERM",
    "fork": "EPERM",
    "exec": "EPERM",
    "ptrace the parent": "EPERM",
    "read the memory of the parent": "EPERM, ENOENT",
    "signal the parent": "EPERM",
    "shared memory": "EPERM",
    "inherited descriptors": "ENOENT",
    "read a clock": "ENOSYS, EPERM",
    "/proc of others": "ENOENT",
    "take a wall down": "EPERM",
}


@sealable
def test_every_try_fails(confined):
    assert confined.attempt("result = tries()") == f"succeeded: {TRIES}"
    assert tuple(TRIES) == records.TRIES  # of which a certificate may lack none


@sealable
@pytest.mark.parametrize(
    ("wall", "holes"),
    [
        ("_close_descriptors", {"inherited descriptors"}),
        ("_remove_clocks", {"read a clock"}),
        ("_move_root", {"stat what is private", "/proc of others"}),
        ("_restrict_calls", {"make a socket", "connect", "shared memory", "signal the parent"}),
    ],
)
def test_a_try_finds_a_wall_that_is_missing(places, ordinary, wall, holes):
    with Confined(places, ordinary, (wall,)) as process:
        found = process.attempt(
            "result = [name for name, how in tries().items() if how == 'succeeded']"
        )
        assert all(name in found for name in holes)


@sealable
def test_means_name_the_kernel_and_each_wall(confined):
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    assert confined.attempt("result = means.system") == f"succeeded: {system}"
    walls = confined.attempt("result = means.walls")
    for word in (
        "descriptor",
        "namespaces",
        "root",
        "limits",
        "capability",
        "clock",
        "Landlock",
        "seccomp",
    ):
        assert word in walls


@sealable
def test_a_process_with_threads_is_not_confined():
    code = (
        "import sys, threading, os; sys.path.insert(0, sys.argv[1])\n"
        "from dpaudit.sealed.sandbox import *\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "out = os.dup(1)\n"
        "try: confine((), out, 5, 1 << 32)\n"
        "except UnsealableError as error: os.write(out, str(error).encode())\n"
        "os._exit(0)\n"
    )
    command = [sys.executable, "-I", "-c", code, str(CHECKOUT)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
    assert said == (
        "this machine does not grant user, mount, network, IPC and UTS namespaces "
        "of its own (EINVAL)."
    )


def verdict(machine: str, audited: int, number: int, *arguments: int) -> int:
    """What the filter gives, by an interpreter of the few instructions that it has."""
    return given(sandbox._filter(list(sandbox._calls()), machine), audited, number, *arguments)


def given(program: bytes, audited: int, number: int, *arguments: int) -> int:
    """The same of any filter."""
    memory = struct.pack("=IIQ6Q", number, audited, 0, *(*arguments, *[0] * 6)[:6])
    code, at, loaded = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        instruction, yes, no, value = code[at]
        at += 1
        if instruction == 0x20:
            loaded = struct.unpack_from("=I", memory, value)[0]
        elif instruction == 0x54:
            loaded &= value
        elif instruction == 0x15:
            at += yes if loaded == value else no
        else:
            assert instruction == 0x06
            return value


ALLOW, REFUSE, END = 0x7FFF0000, 0x50001, 0x80000000
HIGH = 1 << 32


@pytest.mark.parametrize(
    ("machine", "audited", "openat", "sendto", "fcntl", "prlimit", "kill", "clone"),
    [
        ("x86_64", 0xC000003E, 257, 44, 72, 302, 62, 56),
        ("aarch64", 0xC00000B7, 56, 206, 25, 261, 129, 220),
    ],
)
def test_the_filter_of_both_machines(machine, audited, openat, sendto, fcntl, prlimit, kill, clone):
    def of(*call: int) -> int:
        return verdict(machine, audited, *call)

    assert of(openat, 0, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_PATH, os.O_TMPFILE):
        assert of(openat, 0, 0, flags) == REFUSE
        assert of(openat, 0, 0, flags | HIGH) == REFUSE
    assert of(sendto, 3, 1, 1) == ALLOW
    assert of(sendto, 3, 1, 1, 0, 1) == of(sendto, 3, 1, 1, 0, HIGH) == REFUSE
    assert of(fcntl, 3, 4) == of(fcntl, 3, 1030) == ALLOW
    assert of(fcntl, 3, 8) == of(fcntl, 3, 1024) == REFUSE
    assert of(prlimit, 0, 7, 0, 1) == ALLOW
    assert of(prlimit, 1, 7, 0, 1) == of(prlimit, 0, 7, HIGH, 1) == REFUSE
    assert of(kill, 0, 0) == of(clone) == of(435) == of(0x40000000 + openat) == REFUSE
    assert of(0xFFFFFFFF) == REFUSE
    assert verdict(machine, 0x40000003, openat) == END


@pytest.mark.parametrize(
    ("machine", "audited", "own", "beside", "clone"),
    [
        (
            "x86_64",
            0xC000003E,
            {0, 1, 9, 10, 11, 12, 15, 25, 28, 44, 45, 60, 231},
            {3, 39, 47, 126, 157, 302},
            56,
        ),
        (
            "aarch64",
            0xC00000B7,
            {63, 64, 222, 226, 215, 214, 139, 216, 233, 206, 207, 93, 94},
            {57, 172, 212, 91, 167, 261},
            220,
        ),
    ],
)
def test_the_filters_of_template_and_worker(machine, audited, own, beside, clone):
    """A worker has both of them, and what one refuses is refused."""
    template, worker = sandbox._template_program(machine), sandbox.worker_program(machine)

    def both(*call: int) -> bool:
        return given(template, audited, *call) == given(worker, audited, *call) == ALLOW

    dont_need = (0, 0, 4)
    assert {number for number in range(600) if both(number, *dont_need)} == own
    assert {
        number
        for number in range(600)
        if given(template, audited, number, *dont_need) == ALLOW and not both(number, *dont_need)
    } == beside
    alone = 0x20000000 | 0x8000 | signal.SIGCHLD
    assert given(template, audited, clone, alone) == ALLOW
    for flags in (0, signal.SIGCHLD, alone | 0x100, alone | 0x10000, alone | HIGH):
        assert given(template, audited, clone, flags) == REFUSE
    assert not both(clone, alone)
    mmap, madvise, sendto = (9, 28, 44) if machine == "x86_64" else (222, 233, 206)
    assert both(mmap, 0, 9, 3, 0x22)
    assert not both(mmap, 0, 9, 3, 0x21)
    assert not both(mmap, 0, 9, 3, 0x23)
    assert not both(madvise, 0, 0, 12)
    assert not both(sendto, 3, 1, 1, 0, 1)
    assert given(template, 0x40000003, 0) == given(worker, 0x40000003, 0) == END


def test_a_fault_of_ours_is_no_reason_to_skip():
    assert REASON == "" or REASON.startswith(("runs are sealed", "this machine does not grant"))


def test_a_machine_without_the_means_says_why(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert lacking().startswith("runs can be sealed only on Linux, and this is ")
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "riscv64")
        assert lacking() == "runs can be sealed only on x86_64 and aarch64, and this is riscv64."
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "LANDLOCK_ABI", 99)
        with pytest.raises(
            UnsealableError, match=r"^sealing a run needs Landlock ABI 99 .* has \w+\.$"
        ):
            sandbox.confine((), 3, 1, 1)


@sealable
@pytest.mark.skipif(shutil.which("unshare") is None, reason="util-linux has unshare")
def test_refused_namespaces_are_named():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from dpaudit.sealed.sandbox import lacking; print(lacking())"
    )
    script = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-I", "-c", code]
    said = subprocess.run([*command, str(CHECKOUT)], capture_output=True, text=True)
    assert said.stdout == (
        "this machine does not grant user, mount, network, IPC and UTS namespaces "
        "of its own (ENOSPC).\n"
    )


def test_python_reads_nothing_of_the_project_or_of_a_home(tmp_path):
    folders = python_folders()
    assert Path(sandbox.__file__).parents[1] in folders
    for private in (CHECKOUT / "table.csv", Path.home() / "table.csv", tmp_path / "table.csv"):
        assert refuse_within(private, folders) is None


def test_a_private_path_in_a_readable_folder_is_found(tmp_path):
    inside = tmp_path / "copy" / "table.csv"
    inside.parent.mkdir()
    inside.touch()
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    (tmp_path / "table.csv").symlink_to(inside)
    for readable in (tmp_path / "copy", tmp_path / "link", inside):
        assert refuse_within(inside, [Path("/lib"), readable]) == readable
        assert refuse_within(tmp_path / "table.csv", [readable]) == readable
    assert refuse_within(tmp_path, [tmp_path / "copy"]) == tmp_path / "copy"
    assert refuse_within(tmp_path / "other.csv", [tmp_path / "copy"]) is None
