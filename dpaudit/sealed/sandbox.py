"""Walls around a process whose code must not reach private data.

A fresh, single-threaded process calls :func:`confine` on itself before it imports code that is not
trusted. What it leaves is memory, a processor, the folders that it names, and one descriptor.

========================  ======================================  ==============================
kept out                  first wall                              second wall
========================  ======================================  ==============================
content of files          a root of its own that has the folders  Landlock
names and sizes of files  the same
writing                   seccomp: opened to be read alone        a read-only root; Landlock
network                   seccomp: no socket, no address          a network of its own; Landlock
memory of processes       seccomp: no ptrace, nothing like it     Landlock, user namespace
signals                   seccomp                                 Landlock
programs                  seccomp: no fork, no exec               Landlock: no exec; no process,
                                                                  by a limit, but root's
shared memory             seccomp                                 IPC of its own; a read-only root
other descriptors         closed
========================  ======================================  ==============================

Not kept out: time, load and caches of the machine, and faults of the kernel. What is in its memory
beforehand stays there: it is started by ``python -I``, with an environment made for it.

No library is used but :mod:`ctypes`. ``py-landlock`` does Landlock alone, a tenth of this file;
``pyseccomp`` needs ``libseccomp.so`` of the system; ``sandlock`` starts what it confines and hands
it no socket. None of them makes a root, without which names and sizes of files are seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import signal
import site
import struct
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from dpaudit.base.errors import UnsupportedError

if sys.platform != "win32":  # where this module says that nothing is sealed
    import resource

# Landlock keeps signals and abstract sockets in since ABI 6 (Linux 6.12). Seccomp does so too, but
# "sealed" should mean the same on all machines: two walls.
LANDLOCK_ABI = 6

# Which of two numbers a call has, and what the kernel calls the machine (AUDIT_ARCH).
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE, _GETPID = {"x86_64": 56, "aarch64": 220}, {"x86_64": 39, "aarch64": 172}
_ALONE = 0x20000000 | 0x8000 | 17  # CLONE_NEWPID, CLONE_PARENT, SIGCHLD

_LIBRARY = ctypes.CDLL(None, use_errno=True)

MOST_DESCRIPTORS = 256  # as many as a confined process may have

_RANDOM = Path("/dev/urandom")
"""In the root of a confined process a plain file: devices cannot be opened there."""

_TRIAL = """
import os, sys
sys.path.insert(0, sys.argv[1])
from dpaudit.sealed.sandbox import UnsealableError, confine
out = os.dup(1)
try:
    confine((), out, 10, 1 << 32)
except UnsealableError as error:
    os.write(out, str(error).encode())
"""


class UnsealableError(UnsupportedError):
    """The machine lacks a wall, so that the run cannot be sealed; the message says which."""


class Means(NamedTuple):
    """What keeps a process in.

    Attributes:
        system: kernel and machine.
        walls: the walls in words, in the order in which they were raised.
    """

    system: str
    walls: tuple[str, ...]


def lacking() -> str:
    """Why nothing can be sealed here, in one sentence; "" if all is there.

    A process of its own raises all walls: what a kernel knows is not what it grants.
    """
    try:
        _check_machine()
    except UnsealableError as error:
        return str(error)
    import subprocess  # its import takes longer than all walls

    command = [sys.executable, "-I", "-c", _TRIAL, str(Path(__file__).parents[2])]
    trial = subprocess.run(command, capture_output=True, text=True, check=False)
    if trial.returncode:
        return f"a trial of a sealed process on this machine ended with status {trial.returncode}."
    return trial.stdout


def confine(
    readable: Sequence[Path], descriptor: int, processor_seconds: int, memory_bytes: int
) -> Means:
    """Confine the calling process for good.

    The process ends with the thread that started it.

    Args:
        readable: files and folders that it may read; all others are not there.
        descriptor: the one descriptor that stays, above 2; 0, 1 and 2 lead to ``/dev/null``.
        processor_seconds: processor time after which the kernel ends the process.
        memory_bytes: address space that it may use.

    Raises:
        UnsealableError: a wall is refused. The process is half confined then, and must end.
    """
    abi = _check_machine()
    places, clocks = _places(readable), _clock_pages()
    calls = list(_calls())
    walls: dict[str, Callable[[], None]] = {
        "no descriptor but one": partial(_close_descriptors, descriptor),
        "user, mount, network, IPC and UTS namespaces of its own": _leave_namespaces,
        f"a read-only root of {len(places)} files and folders": partial(_move_root, places),
        "limits of memory, processor time and files": partial(
            _limit, processor_seconds, memory_bytes
        ),
        "no capability, no new privilege, no dump": _drop_privileges,
        "no clock": partial(_remove_clocks, clocks),
        f"Landlock (ABI {abi})": partial(_restrict_files, places),
        f"seccomp, {len({name for name, *_ in calls})} calls allowed": partial(
            _restrict_calls, _filter(calls, platform.machine())
        ),
    }
    _build(walls)
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Means(system, tuple(walls))


def confine_template(descriptor: int) -> tuple[str, ...]:
    """Confine the calling process, which runs trusted code alone, so that it can make workers.

    Its workers inherit what it has: no file, no network, no shared memory. It keeps the right to
    make processes with process numbers of their own.

    Args:
        descriptor: the one descriptor that stays, above 2.

    Returns:
        The walls in words, those of a worker among them.

    Raises:
        UnsealableError: a wall is refused. The process is half confined then, and must end.
    """
    abi, clocks = _check_machine(), _clock_pages()
    walls: dict[str, Callable[[], None]] = {
        "no descriptor but one": partial(_close_descriptors, descriptor),
        "user, mount, network, IPC and UTS namespaces of its own": _leave_namespaces,
        "an empty, read-only root": partial(_move_root, {}),
        "limits of files": partial(_set_limits, _FIXED_LIMITS),
        "no new privilege, no dump": partial(_drop_privileges, 1 << 21),  # CAP_SYS_ADMIN
        "no clock": partial(_remove_clocks, clocks),
        f"Landlock (ABI {abi})": partial(_restrict_files, {}),
        "seccomp": partial(_restrict_calls, _template_program(platform.machine())),
    }
    _build(walls)
    return (*walls, *_WORKER_WALLS)


_WORKER_WALLS = (
    "functions: process numbers of their own",
    "functions: no descriptor but one",
    "functions: limits of memory and processor time",
    "functions: no capability",
    "functions: seccomp, 13 calls allowed",
)


def confine_worker(control: int, processor_seconds: int, memory_bytes: int, program: bytes) -> None:
    """Confine the calling process, which a confined template made by :func:`cloning`.

    Args:
        control: the descriptor that is the template's alone.
        processor_seconds: processor time after which the kernel ends it.
        memory_bytes: address space that it may use.
        program: what :func:`worker_program` made, once for all workers.

    Raises:
        OSError: if a wall is refused, and the process must end.
    """
    os.close(control)
    _set_limits(_own_limits(processor_seconds, memory_bytes))
    _drop_capabilities(0)
    library_call("prctl", 1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    _restrict_calls(program)


def _template_program(machine: str) -> bytes:
    """The filter of a template: what its workers call, and what they give up as they begin."""
    return _filter([*_worker_calls(), *_template_calls()], machine)


def worker_program(machine: str = platform.machine()) -> bytes:
    """The filter by which a worker gives up what its template calls beside; it is soon raised."""
    beside: list[_Allowed] = [(name, numbers, {}) for name, numbers, _ in _template_calls()]
    return _filter(beside, machine, listed=_REFUSE, others=_ALLOW)


def cloning(really: Iterator[int]) -> Iterator[None]:
    """Make a process with process numbers of its own at each step, whose parent is that of this.

    What the calling process ever learns of it is nothing, so that no process that is made later can
    tell how many there were. Nothing of Python's own code runs.

    Args:
        really: 1, or 0 to do all that this takes, without a process.
    """
    # A function of PyDLL keeps Python's lock, which the new process so holds; and the number of
    # the process, which would stay in the memory of this one, is not taken from the register.
    call, machine = ctypes.PyDLL(None).syscall, platform.machine()
    call.restype = None
    numbers = map((_GETPID[machine], _CLONE[machine]).__getitem__, really)
    return map(call, numbers, repeat(_ALONE), *map(repeat, (0, 0, 0, 0)))


def _build(walls: Mapping[str, Callable[[], None]]) -> None:
    for wall, build in walls.items():
        try:
            build()
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "an error")
            raise UnsealableError(f"this machine does not grant {wall} ({name}).") from None


def refuse_dumps() -> None:
    """Keep other processes of the same user from the memory of this one."""
    library_call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def end_with_parent() -> None:
    """Be told by SIGTERM when the thread ends that started this process."""
    library_call("prctl", 1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG


def _check_machine() -> int:
    """The ABI of Landlock; raise UnsealableError where what walls there are is not known."""
    if not sys.platform.startswith("linux"):
        raise UnsealableError(f"runs can be sealed only on Linux, and this is {platform.system()}.")
    machine = platform.machine()
    if machine not in _MACHINES:
        known = " and ".join(_MACHINES)
        raise UnsealableError(f"runs can be sealed only on {known}, and this is {machine}.")
    abi = 0
    with contextlib.suppress(OSError):
        abi = library_call("syscall", 444, None, 0, 1)  # LANDLOCK_CREATE_RULESET_VERSION
    if abi < LANDLOCK_ABI:
        raise UnsealableError(
            f"sealing a run needs Landlock ABI {LANDLOCK_ABI} (Linux 6.12) or later, "
            f"and this kernel has {abi or 'none'}."
        )
    return abi


def library_call(name: str, *arguments: object) -> int:
    """Call a function of the C library; raise OSError where it fails."""
    function = getattr(_LIBRARY, name)
    # A bare integer would be passed as 32 bits, with the upper half of the register undefined.
    result = int(function(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def _close_descriptors(kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    _close_others(kept)


def _close_others(kept: int) -> None:
    for first, last in ((3, kept - 1), (kept + 1, 0xFFFFFFFF)):
        if first <= last:
            library_call("syscall", 436, first, last, 0)  # close_range


def _leave_namespaces() -> None:
    """Be alone with files, network and messages; the kernel refuses it where there are threads."""
    user, group = os.geteuid(), os.getegid()
    # CLONE_NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWNET
    library_call("unshare", 0x20000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x40000000)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    # The numbers stay those outside, so that files keep their owners.
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _places(readable: Sequence[Path]) -> dict[Path, Path]:
    """Where files and folders are seen, with links and without, and where they really are."""
    real = {path.resolve() for path in readable}
    seen = real | {Path(os.path.normpath(path.absolute())) for path in readable}
    places: dict[Path, Path] = {}
    for place in sorted(seen):  # a folder before what is in it
        if not any(place.is_relative_to(outer) for outer in places):
            places[place] = place.resolve()
    return places


def _move_root(places: dict[Path, Path]) -> None:
    """Live in an empty root to which the places are bound, read-only; all else is not there."""
    folder, outside, private, bind, recursive = Path.cwd(), "/.outside", 0x40000, 0x1000, 0x4000
    library_call("mount", None, b"/", None, private | recursive, None)
    library_call("mount", b"none", b"/tmp", b"tmpfs", 0, b"mode=0755,size=1m")
    Path("/tmp", outside[1:]).mkdir()
    library_call("pivot_root", b"/tmp", b"/tmp" + outside.encode())
    os.chdir("/")
    for place, real in places.items():
        source = Path(outside, *real.parts[1:])
        if source.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        library_call("mount", bytes(source), bytes(place), None, bind | recursive, None)
    if places:  # some libraries, such as torch, are not loaded without it; getrandom() is allowed
        _RANDOM.parent.mkdir(exist_ok=True)
        _RANDOM.write_bytes(os.urandom(4096))
    library_call("umount2", outside.encode(), 2)  # MNT_DETACH
    Path(outside).rmdir()
    read_only = struct.pack("=4Q", 1 | 2 | 4, 0, 0, 0)  # MOUNT_ATTR_RDONLY, NOSUID, NODEV
    library_call(
        "syscall", 442, -100, b"/", 0x8000, read_only, len(read_only)
    )  # mount_setattr, all below
    with contextlib.suppress(OSError):
        os.chdir(folder)


def _limit(processor_seconds: int, memory_bytes: int) -> None:
    _set_limits(_FIXED_LIMITS)
    _set_limits(_own_limits(processor_seconds, memory_bytes))


_Limits = Sequence[tuple[str, int, int]]
_FIXED_LIMITS: _Limits = (
    ("RLIMIT_CORE", 0, 0),
    ("RLIMIT_FSIZE", 0, 0),
    ("RLIMIT_NOFILE", MOST_DESCRIPTORS, MOST_DESCRIPTORS),
)


def _own_limits(processor_seconds: int, memory_bytes: int) -> _Limits:
    return (
        ("RLIMIT_NPROC", 0, 0),
        ("RLIMIT_AS", memory_bytes, memory_bytes),
        ("RLIMIT_CPU", processor_seconds, processor_seconds + 1),  # SIGXCPU, then SIGKILL
    )


def _set_limits(limits: _Limits) -> None:
    for name, soft, hard in limits:
        limit = getattr(resource, name)
        try:
            resource.setrlimit(limit, (soft, hard))
        except ValueError:  # whoever started the process allows less
            resource.setrlimit(limit, (resource.getrlimit(limit)[1],) * 2)


def _drop_capabilities(kept: int) -> None:
    version_3, sets = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0)
    library_call("capset", version_3, sets)


def _drop_privileges(kept: int = 0) -> None:
    _drop_capabilities(kept)
    library_call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    library_call("prctl", 1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    refuse_dumps()


# mov eax, -38; ret: the kernel has no such call (ENOSYS).
_NO_CALL = {
    "x86_64": bytes.fromhex("b8daffffffc3"),
    "aarch64": bytes.fromhex("a0048092c0035fd6"),
}


def _clock_pages() -> list[tuple[int, int, bool]]:
    """Start and length of what the kernel maps for clocks to be read, and whether it is code."""
    found = []
    for line in Path("/proc/self/maps").read_text("ascii", "replace").splitlines():
        place, *_, name = line.split()
        if name.startswith(("[vvar", "[vdso")):
            start, end = (int(each, 16) for each in place.split("-"))
            found.append((start, end - start, name == "[vdso]"))
    return found


def _remove_clocks(pages: Sequence[tuple[int, int, bool]]) -> None:
    """Leave nothing to read a clock from: neither the kernel's pages nor the counter of cycles.

    The C library asks code of the kernel for the time, which is made to say that it cannot. So that
    modules that ask for the time do not fail, those of Python say that it is 0.
    """
    library_call("prctl", 26, 2, 0, 0, 0)  # PR_SET_TSC, PR_TSC_SIGSEGV
    for start, length, is_code in pages:
        if not is_code:
            library_call("munmap", ctypes.c_void_p(start), length)
            continue
        failure, image = _NO_CALL[platform.machine()], ctypes.string_at(start, length)
        library_call("mprotect", ctypes.c_void_p(start), length, mmap.PROT_READ | mmap.PROT_WRITE)
        for place in _functions_of(image):
            ctypes.memmove(start + place, failure, len(failure))
        library_call("mprotect", ctypes.c_void_p(start), length, mmap.PROT_READ | mmap.PROT_EXEC)
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, lambda: 0.0)
        setattr(time, f"{name}_ns", lambda: 0)
    time.sleep = lambda seconds: None


def _functions_of(image: bytes) -> set[int]:
    """Where the functions of a shared object begin, by its dynamic symbols."""
    headers, (size, number) = (
        struct.unpack_from("=Q", image, 40)[0],
        struct.unpack_from("=HH", image, 58),
    )
    found = set()
    for header in range(headers, headers + size * number, size):
        kind = struct.unpack_from("=I", image, header + 4)[0]
        offset, length = struct.unpack_from("=QQ", image, header + 24)
        if kind == 11:  # SHT_DYNSYM
            for _, info, _, section, place, _ in struct.iter_unpack(
                "=IBBHQQ", image[offset : offset + length]
            ):
                if info & 15 == 2 and section:  # STT_FUNC
                    found.add(place)
    if not found:
        raise OSError(errno.ENOENT, "the kernel's code has no functions")
    return found


def _restrict_files(places: dict[Path, Path]) -> None:
    """Landlock: refuse all that it knows to refuse, but reading the places."""
    read_file, read_folder = 1 << 2, 1 << 3
    refused = struct.pack("=QQQ", (1 << 16) - 1, 3, 3)  # files; TCP; signals and abstract sockets
    rules = library_call("syscall", 444, refused, len(refused), 0)
    for place in (*places, *([_RANDOM] if places else [])):
        beneath = os.open(place, os.O_PATH | os.O_CLOEXEC)
        rights = read_file | (read_folder if place.is_dir() else 0)
        library_call("syscall", 445, rules, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    library_call("syscall", 446, rules, 0)  # landlock_restrict_self
    os.close(rules)


# What Python, numpy and scipy call to import and to compute, with the numbers of x86_64 and of
# aarch64, which lacks the oldest (-1). Whatever is not allowed fails with EPERM.
_ALLOWED = """
read 0 63, readv 19 65, pread64 17 67, write 1 64, writev 20 66, close 3 57, lseek 8 62, dup 32 23
stat 4 -1, lstat 6 -1, fstat 5 80, newfstatat 262 79, statx 332 291, getdents64 217 61
access 21 -1, faccessat 269 48, faccessat2 439 439, readlink 89 -1, readlinkat 267 78, getcwd 79 17
mmap 9 222, mprotect 10 226, munmap 11 215, mremap 25 216, brk 12 214
rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, sigaltstack 131 132
restart_syscall 219 128, exit 60 93, exit_group 231 94, futex 202 98, sched_yield 24 124
getpid 39 172, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177
clock_nanosleep 230 115, nanosleep 35 101, getrlimit 97 163, uname 63 160, getrandom 318 278
poll 7 -1, ppoll 271 73, select 23 -1, pselect6 270 72, recvfrom 45 207
"""
_INT, _POINTER = (1 << 32) - 1, (1 << 64) - 1
_WRITING = 0o30001103  # O_ACCMODE, O_CREAT, O_TRUNC, O_PATH and O_TMPFILE
_DESCRIPTOR_COMMANDS = (0, 1, 2, 3, 4, 1030)  # F_DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC
_DEVICE_COMMANDS = (0x5401, 0x5421, 0x5450, 0x5451)  # TCGETS, FIONBIO, FIONCLEX, FIOCLEX


_Allowed = tuple[str, tuple[int, int], dict[int, tuple[int, int]]]
"""Name, numbers, and conditions: of an argument, what a mask leaves must equal a value."""


def _unconditional(listed: str) -> Iterator[_Allowed]:
    for row in listed.strip().replace("\n", ", ").split(", "):
        name, x86_64, aarch64 = row.split()
        yield name, (int(x86_64), int(aarch64)), {}


def _calls() -> Iterator[_Allowed]:
    yield from _unconditional(_ALLOWED)
    yield "openat", (257, 56), {2: (_WRITING, 0)}
    yield "open", (2, -1), {1: (_WRITING, 0)}
    yield "sendto", (44, 206), {4: (_POINTER, 0)}  # no address: to the other end
    yield "prlimit64", (302, 261), {0: (_INT, 0), 2: (_POINTER, 0)}  # read one's own
    yield "tgkill", (234, 131), {0: (_INT, os.getpid())}  # abort() ends the process by it
    for process in (0, os.getpid()):
        yield "sched_getaffinity", (204, 123), {0: (_INT, process)}
    for command in _DESCRIPTOR_COMMANDS:
        yield "fcntl", (72, 25), {1: (_INT, command)}
    for command in _DEVICE_COMMANDS:
        yield "ioctl", (16, 29), {1: (_INT, command)}


# What a worker calls: to read its records and write its value, memory, and the end.
_WORKER_ALLOWED = """
read 0 63, write 1 64, recvfrom 45 207, mprotect 10 226, munmap 11 215, mremap 25 216
brk 12 214, rt_sigreturn 15 139, exit 60 93, exit_group 231 94
"""


def _worker_calls() -> Iterator[_Allowed]:
    yield from _unconditional(_WORKER_ALLOWED)
    yield "mmap", (9, 222), {3: (1, 0)}  # neither MAP_SHARED nor MAP_SHARED_VALIDATE
    yield "madvise", (28, 233), {2: (_INT, 4)}  # MADV_DONTNEED
    yield "sendto", (44, 206), {4: (_POINTER, 0)}


def _template_calls() -> Iterator[_Allowed]:
    """What the template of workers calls beside, and what a worker does to be confined."""
    yield from _unconditional(
        "recvmsg 47 212, close 3 57, getpid 39 172, prlimit64 302 261, capset 126 91, prctl 157 167"
    )
    yield "clone", (_CLONE["x86_64"], _CLONE["aarch64"]), {0: (_POINTER, _ALONE)}


_Instruction = tuple[int, int, int, int]
_LOAD, _MASK, _EQUAL, _GIVE = 0x20, 0x54, 0x15, 0x06  # BPF: LD|W|ABS, ALU|AND, JMP|JEQ, RET
_ALLOW, _REFUSE, _END = 0x7FFF0000, 0x50000 | errno.EPERM, 0x80000000  # SECCOMP_RET


def _given(number: int, conditions: dict[int, tuple[int, int]], listed: int) -> list[_Instruction]:
    """What one call is given; of another, leave its number loaded for what follows."""
    code = [(_GIVE, 0, 0, listed), (_LOAD, 0, 0, 0)]
    for argument, (mask, value) in conditions.items():
        for half in (0, 32):
            bits, wanted = mask >> half & _INT, value >> half & _INT
            if bits:
                load = (_LOAD, 0, 0, 16 + 8 * argument + half // 8)
                code = [load, (_MASK, 0, 0, bits), (_EQUAL, 0, len(code) - 1, wanted), *code]
    return [(_EQUAL, 0, len(code), number), *code]


def _filter(
    calls: Sequence[_Allowed], machine: str, listed: int = _ALLOW, others: int = _REFUSE
) -> bytes:
    """Allow what is listed, refuse all else, and end who calls as another machine would."""
    column, name = _MACHINES[machine]
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, name), (_GIVE, 0, 0, _END), (_LOAD, 0, 0, 0)]
    # Numbers of x32 are those of x86_64 and one bit, so that they equal none of these.
    for _, numbers, conditions in calls:
        if numbers[column] >= 0:
            code += _given(numbers[column], conditions, listed)
    return b"".join(struct.pack("=HBBI", *one) for one in [*code, (_GIVE, 0, 0, others)])


def _restrict_calls(code: bytes) -> None:
    """Seccomp: from here on, only what is listed is called."""
    program = ctypes.create_string_buffer(code)
    pointer = struct.pack("@HP", len(code) // 8, ctypes.addressof(program))
    library_call("prctl", 22, 2, pointer, 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def python_folders() -> tuple[Path, ...]:
    """What Python, its packages and this one read: nothing of a project, nothing else of a home.

    ``dpaudit`` may stand in a checkout, of which its own folder alone is named: it is imported
    before :func:`confine`, and its rooms may be imported afterwards.
    """
    base = Path(sys.base_prefix)
    built = sysconfig.get_config_var("DESTSHARED") or base / "lib"
    own = (Path(__file__).parents[1], Path(os.__file__).parent, base / "lib", base / "lib64")
    system = "/lib /lib64 /usr/lib /usr/lib64 /etc/ld.so.cache /usr/share/zoneinfo /etc/localtime"
    named = dict.fromkeys((*own, *map(Path, (built, *site.getsitepackages(), *system.split()))))
    return tuple(path for path in named if path.exists())


def refuse_within(path: Path, readable: Sequence[Path]) -> Path | None:
    """The readable place in which a private path lies, or which lies in it; else None."""
    private = path.resolve()
    for place in readable:
        folder = place.resolve()
        if private.is_relative_to(folder) or folder.is_relative_to(private):
            return place
    return None
