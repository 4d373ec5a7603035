"""What a confined process tries, before it is trusted to be one: each of it must fail.

The analyst and the first worker of a run do so themselves, and the certificate says how each try
failed. Whoever is confined can import nothing more, so that this is loaded beforehand.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dpaudit.sealed.sandbox import MOST_DESCRIPTORS, library_call

_CLOCK_CALLS = {"x86_64": (228, 98), "aarch64": (113, 165)}
"""Numbers of ``clock_gettime`` and ``getrusage``."""


def analyst_tries(private: Sequence[str], parent: int) -> dict[str, str]:
    """Try what a confined process must not be able to do.

    Args:
        private: absolute paths that must be out of reach.
        parent: number of the process that holds what is private.

    Returns:
        By a short name, the errors with which it failed, such as ``EPERM``; or ``succeeded``, also
        where it failed as no wall makes it fail.
    """
    word = ctypes.create_string_buffer(8)
    vector = struct.pack("@PN", ctypes.addressof(word), 8)
    here, writing = sys.executable, os.O_WRONLY | os.O_CREAT
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    attempts: dict[str, list[Callable[[], object]]] = {
        "open what is private": [partial(os.open, path, os.O_RDONLY) for path in private],
        "list what is private": [partial(os.listdir, Path(path).parent) for path in private],
        "stat what is private": [partial(os.stat, path) for path in private],
        "write a file": [
            partial(os.open, f"{folder}/.dpaudit", writing) for folder in (".", "/tmp", "/dev/shm")
        ],
        "make a socket": [
            partial(socket.socket, family, kind)
            for family in (socket.AF_INET, socket.AF_UNIX)
            for kind in kinds
        ],
        "connect": [partial(library_call, "connect", -1, None, 0)],
        "fork": [_fork],
        "exec": [partial(os.execv, here, [here, "-c", ""])],
        "ptrace the parent": [partial(library_call, "ptrace", 0x4206, parent, None, None)],  # SEIZE
        "read the memory of the parent": [
            partial(library_call, "process_vm_readv", parent, vector, 1, vector, 1, 0),
            partial(os.open, f"/proc/{parent}/mem", os.O_RDONLY),
        ],
        "signal the parent": [partial(os.kill, parent, 0), partial(os.pidfd_open, parent)],
        "shared memory": [
            partial(library_call, "shmget", 0, 8, 0o600),
            partial(os.memfd_create, "a"),
        ],
        "inherited descriptors": [_other_descriptors],
        "read a clock": _clocks(),
        "/proc of others": [partial(os.listdir, "/proc"), partial(os.stat, f"/proc/{parent}")],
        "take a wall down": [
            partial(library_call, "unshare", 0x10000000),
            partial(library_call, "mount", b"none", b"/", b"tmpfs", 0, None),
            partial(library_call, "prctl", 4, 1, 0, 0, 0),
        ],
    }
    return {name: _failures(calls) for name, calls in attempts.items() if calls}


def _clocks() -> list[Callable[[], object]]:
    """Ways to read a clock, by the C library and without it."""
    word, (number, of_process) = ctypes.create_string_buffer(1024), _CLOCK_CALLS[platform.machine()]
    return [
        partial(time.clock_gettime, time.CLOCK_MONOTONIC),
        partial(time.clock_gettime, 6),  # CLOCK_MONOTONIC_COARSE
        partial(time.clock_gettime, time.CLOCK_PROCESS_CPUTIME_ID),
        partial(library_call, "syscall", number, 1, word),
        partial(library_call, "syscall", of_process, 0, word),  # getrusage
    ]


def worker_tries(private: Sequence[str]) -> dict[str, str]:
    """Try what a worker must not be able to do; see :func:`analyst_tries`."""
    word, numbers = ctypes.create_string_buffer(1024), (ctypes.c_int * 2)()
    here, direct = sys.executable, partial(library_call, "syscall")
    x86_64 = platform.machine() == "x86_64"
    attempts: dict[str, list[Callable[[], object]]] = {
        "reach what is private": [
            partial(call, path)
            for path in (*private, "/", "/proc/1/status")
            for call in (partial(os.open, flags=os.O_RDONLY), os.stat, os.listdir)
        ],
        "make a file, a pipe or a socket": [
            partial(os.open, "/.dpaudit", os.O_WRONLY | os.O_CREAT),
            partial(os.pipe2, 0),
            partial(socket.socket, socket.AF_UNIX),
            partial(library_call, "socketpair", socket.AF_UNIX, socket.SOCK_STREAM, 0, numbers),
            partial(os.memfd_create, "a"),
        ],
        "share memory": [
            partial(library_call, "shmget", 0, 8, 0o600),
            partial(_shared_memory, 1),
            partial(_shared_memory, 3),
        ],
        "fork or exec": [_fork, partial(os.execv, here, [here, "-c", ""])],
        "signal or trace another": [
            partial(os.kill, -1, 0),
            partial(library_call, "ptrace", 0x4206, 2, None, None),
            partial(library_call, "process_vm_readv", 2, word, 1, word, 1, 0),
        ],
        "learn its number": [
            partial(direct, 39 if x86_64 else 172),
            partial(direct, 186 if x86_64 else 178),  # gettid
        ],
        "learn what the machine did": [
            partial(direct, 99 if x86_64 else 179, word),  # sysinfo
            partial(direct, 100 if x86_64 else 153, word),  # times
            *_clocks(),
            partial(os.fstat, 0),
            partial(os.getrandom, 8),
        ],
        "other descriptors": [_others_to_write],
        "take a wall down": [
            partial(library_call, "unshare", 0x10000000),
            partial(library_call, "mount", b"none", b"/", b"tmpfs", 0, None),
            partial(library_call, "prctl", 4, 1, 0, 0, 0),
            partial(library_call, "setrlimit", 0, word),
        ],
    }
    return {name: _failures(calls) for name, calls in attempts.items()}


def _shared_memory(flag: int) -> None:
    library_call(
        "syscall", 9 if platform.machine() == "x86_64" else 222, 0, 4096, 3, 0x20 | flag, -1, 0
    )


def _others_to_write() -> None:
    """Raise OSError if nothing is open but ``/dev/null``, three times, and one descriptor."""
    found = []
    for descriptor in range(MOST_DESCRIPTORS):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"")
            found.append(descriptor)
    if len(found) == 4:
        raise FileNotFoundError(errno.ENOENT, "no other descriptor")


def _failures(calls: Sequence[Callable[[], object]]) -> str:
    names = {}
    for call in calls:
        try:
            call()
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.ENOENT, errno.ENOSYS):
                return "succeeded"
            names[errno.errorcode[error.errno]] = call
        else:
            return "succeeded"
    return ", ".join(names)


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _other_descriptors() -> None:
    """Raise OSError if nothing is open but ``/dev/null`` and one socket."""
    kinds = []
    for descriptor in range(MOST_DESCRIPTORS):
        with contextlib.suppress(OSError):
            kinds.append(os.fstat(descriptor))
    others = [kind for kind in kinds if kind.st_rdev != os.makedev(1, 3)]
    if len(others) == 1 and stat.S_ISSOCK(others[0].st_mode):
        raise FileNotFoundError(errno.ENOENT, "no other descriptor")
