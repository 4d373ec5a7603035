"""A process that confines itself, and then does what it is told by its socket.

Started as ``python -I confined.py SETTINGS`` (JSON). Its parent stands for the custodian: of the
same user and dumpable, so that nothing but the walls is between the two.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import socket
import sys
from functools import partial
from pathlib import Path


def become_ordinary(folders: list[Path]) -> None:
    """Be user 65534, who may enter whatever folders the tests themselves stand in."""
    mount = ctypes.CDLL(None, use_errno=True).mount
    assert ctypes.CDLL(None).unshare(0x20000) == 0  # CLONE_NEWNS
    assert mount(None, b"/", None, 0x44000, None) == 0
    closed = {up for path in folders for up in path.parents if not up.stat().st_mode & 0o001}
    for top in (up for up in closed if not closed.intersection(up.parents)):
        within = [path.relative_to(top) for path in folders if top in path.parents]
        inner = sorted({path.parts[0] for path in within})
        held = [os.open(top / name, os.O_PATH) for name in inner]
        assert mount(b"none", bytes(top), b"tmpfs", 0, b"mode=0755") == 0
        for name, source in zip(inner, held, strict=True):
            (top / name).mkdir()
            assert (
                mount(f"/proc/self/fd/{source}".encode(), bytes(top / name), None, 0x5000, None)
                == 0
            )
            os.close(source)
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # a change of user makes a process not dumpable


def raw(x86_64: int, aarch64: int, *arguments: object) -> int:
    """A system call by its number."""
    number = x86_64 if platform.machine() == "x86_64" else aarch64
    return libc("syscall", number, *arguments)


def libc(name: str, *arguments: object) -> int:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    result = function(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def obey(names: dict[str, object], channel: socket.socket) -> None:
    """Run one piece of code after the other; answer with its ``result``, or what failed."""
    for line in channel.makefile("r", encoding="utf-8"):
        scope = dict(names)
        try:
            exec(json.loads(line), scope)
            answer = f"succeeded: {scope.get('result')}"
        except OSError as error:
            answer = errno.errorcode.get(error.errno, repr(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            answer = f"{type(error).__name__}: {error}"
        channel.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    settings = json.loads(sys.argv[1])
    sys.path.insert(0, settings["checkout"])
    from dpaudit.sealed import sandbox
    from dpaudit.sealed.escape_attempts import analyst_tries

    private, copy = Path(settings["private"]), Path(settings["copy"])
    folders = [*sandbox.python_folders(), copy]
    channel = socket.socket(fileno=settings["descriptor"])
    if settings["ordinary"] and os.geteuid() == 0:
        become_ordinary([*folders, private])
    inherited = os.open(private, os.O_RDONLY)
    private.read_bytes()  # open to this user: it is no permission that keeps it
    secret = ctypes.create_string_buffer(b"a value of the custodian")
    parent = os.getpid()
    child = os.fork()
    if child:
        channel.close()
        sys.stdout.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
        return
    for wall in settings["without"]:
        setattr(sandbox, wall, lambda *_: None)
    os.chdir(copy)
    means = sandbox.confine(folders, channel.fileno(), settings["seconds"], 3 << 30)
    names = {
        "private": str(private),
        "copy": str(copy),
        "parent": parent,
        "secret": ctypes.addressof(secret),
        "inherited": inherited,
        "means": means,
        "channel": channel,
        "tries": partial(analyst_tries, [str(private)], parent),
        "raw": raw,
        "libc": libc,
        "ctypes": ctypes,
        "os": os,
        "resource": resource,
        "socket": socket,
    }
    obey(names, channel)


if __name__ == "__main__":
    main()
