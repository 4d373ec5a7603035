"""The custodian's side of workers: one fresh process for each unit, and what becomes of its value.

A worker is handed the records of one unit over a socket of its own, and what it says is a value of
a declared shape, or the declared default. Its limits are its own processor time and memory. Only
what befalls the machine ends the run.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.sealed.channel import Channel, ChannelError, GoneError
from dpaudit.sealed.messages import read
from dpaudit.sealed.processes import end, start
from dpaudit.sealed.template import CALL, IDLE, SPAWN, Generator, value_of, words_of

PROCESSOR_SECONDS = 10
"""What a function may use for one unit; its own time, not that of a clock."""
MEMORY_BYTES = 2**30
"""What a function may use for one unit, beside what its process has from the beginning."""
LONGEST_STATE = 2**22
"""Characters of the state of a unit."""
_CREDENTIALS = struct.Struct("3i")
"""Numbers of a process, its user and its group."""
_NUMBER = 32
"""Characters of a number of a value, with room for signs and spaces."""
_PATIENCE = 600
"""Seconds for which a worker may take that does not use its own time: the machine is stuck."""


_IDLE_ROUNDS = 2
"""Words after each order by which the template does all but make a worker."""


class MachineError(Exception):
    """A worker could not be made, or the machine ended it."""


@dataclass(frozen=True)
class Call:
    """What workers are to do.

    Attributes:
        file: in the copy of the code.
        name: of the function there.
        parameters: public ones, as JSON.
        entries: how many numbers its value has.
        keeps_state: whether it returns a state beside its value.
    """

    file: str
    name: str
    parameters: Mapping[str, Any]
    entries: int
    keeps_state: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As the template is told."""
        return {
            "file": self.file,
            "name": self.name,
            "parameters": self.parameters,
            "state": self.keeps_state,
            "processor_seconds": PROCESSOR_SECONDS,
            "memory_bytes": MEMORY_BYTES,
        }

    @property
    def limit(self) -> int:
        """Bytes of what a worker may say."""
        return 1_000 + _NUMBER * self.entries + self.keeps_state * LONGEST_STATE


@dataclass(frozen=True)
class Job:
    """What one worker is given.

    Attributes:
        records: of one unit, by column.
        seed: of its generator, in hexadecimal digits.
        state: what it said of the same unit before; empty at first.
    """

    records: Mapping[str, Sequence[Any]]
    seed: str
    state: str = ""


class Functions(Protocol):
    """What runs a function on the records of each unit by themselves."""

    def run(self, call: Call, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """What the function said for each job: ``value`` and ``state``, or what ``failed``."""


class OwnFunctions:
    """Runs functions in this process, as those of code that is not sealed.

    Args:
        functions: by file and name.
    """

    def __init__(self, functions: Mapping[tuple[str, str], Callable[..., Any]]) -> None:
        self._functions = functions

    def run(self, call: Call, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """See :class:`Functions`; records and state are copies, as in a process of its own."""
        return [self._said(call, job) for job in jobs]

    def _said(self, call: Call, job: Job) -> dict[str, Any]:
        function = self._functions[call.file, call.name]
        rng = Generator().at(int(job.seed, 16))
        parameters = {name: read(value) for name, value in call.parameters.items()}
        given = json.loads(json.dumps({"records": job.records, "state": job.state}))
        try:
            said = value_of(function, parameters, given, rng, keeps_state=call.keeps_state)
            return dict(json.loads(json.dumps(said)))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it is, the default
            return {"failed": words_of(error)}


class Workers:
    """Makes workers from one template.

    Args:
        words: command line of the template, but for its descriptor.
        code: ``paths`` from which is imported, folders of further ``packages``, and the files in
            which ``functions`` stand.
        stack: ends the template.

    Raises:
        UnsupportedError: if this machine cannot seal workers.
    """

    def __init__(
        self, words: Sequence[str], code: Mapping[str, Sequence[str]], stack: ExitStack
    ) -> None:
        own, child = start(words, "/")
        self._control, self._channel = own, Channel(own)
        self._lock = threading.Lock()
        stack.callback(end, child, self._channel)
        self._channel.send(code)

    def seal(self, private: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """What keeps a worker in, and how each of its tries to get out failed.

        Args:
            private: paths that it tries to reach.

        Raises:
            UnsupportedError: if they cannot be sealed or made, which may be because of what the
                author's files hold or import: so the run is not made without a seal either.
        """
        try:
            said = self._channel.receive()
            if "unsealed" in said:
                raise UnsupportedError(
                    f"the processes of functions cannot be made: {said['unsealed']}"
                )
            order = {"tries": list(private), "processor_seconds": 10, "memory_bytes": 2**28}
            self._order(order)
            tries = self._work(None, 2**20)["tries"]
        except (ChannelError, MachineError, LookupError):
            raise UnsupportedError(
                "the processes of functions cannot be made: there is too little memory for the "
                "files that the functions need, or this machine cannot make such processes."
            ) from None
        return said["means"], {f"function: {name}": failed for name, failed in tries.items()}

    def run(self, call: Call, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """What a worker said for each job; nothing where it did not answer in time and room.

        Raises:
            InputError: if the parameters cannot be read.
            MachineError: if a worker could not be made, or the machine ended it.
        """
        self._order(call.to_dict())
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            said = list(pool.map(lambda job: self._work(job, call.limit), jobs))
        # How much time of its own one takes depends on what the others do to caches and memory. So
        # whoever did not answer beside them is asked again, alone.
        return [each or self._work(job, call.limit) for job, each in zip(jobs, said, strict=True)]

    def _order(self, call: Mapping[str, Any]) -> None:
        own, other = socket.socketpair()
        with self._lock, own, other:
            self._control.sendall(CALL)
            self._channel.send(call)
            if not self._channel.receive()["ready"]:
                raise InputError("parameters cannot be read; give numbers, texts, lists or arrays.")
            for _ in range(_IDLE_ROUNDS):  # so that the first worker is made as the others are
                socket.send_fds(self._control, [IDLE], [other.fileno()])

    def _work(self, job: Job | None, limit: int) -> dict[str, Any]:
        own, other = socket.socketpair()
        with own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            own.settimeout(_PATIENCE)
            with other, self._lock:
                socket.send_fds(self._control, [SPAWN], [other.fileno()])
            number = _number_of(own)
            try:
                said = _answer(Channel(own, limit), own, job)
            except GoneError:
                return _without_answer(number, own)
            except ChannelError:
                said = {}
            _kill(number)
            os.waitpid(number, 0)
        return said


def _number_of(own: socket.socket) -> int:
    """The number of the process at the other end, as the kernel states it.

    Raises:
        MachineError: if no process was made.
    """
    word, ancillary, _, _ = own.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
    if not word:
        raise MachineError
    number: int = _CREDENTIALS.unpack(ancillary[0][2])[0]
    return number


def _answer(channel: Channel, own: socket.socket, job: Job | None) -> dict[str, Any]:
    if job is not None:
        channel.send({"records": job.records, "seed": job.seed, "state": job.state})
    own.shutdown(socket.SHUT_WR)  # a worker that reads on meets the end, and does not wait
    return channel.receive()


def _without_answer(number: int, own: socket.socket) -> dict[str, Any]:
    """Nothing, where a worker ended by itself or used up its own time.

    A worker cannot close its socket, so that it has ended where nobody is at the other end.

    Raises:
        MachineError: if it did not end in all the time there is, or another ended it.
    """
    own.settimeout(0)
    try:
        own.recv(1)
    except BlockingIOError:
        _kill(number)
        os.waitpid(number, 0)
        raise MachineError from None
    except OSError:
        pass
    _, status, used = os.wait4(number, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if killed and used.ru_utime + used.ru_stime < PROCESSOR_SECONDS / 2:
        raise MachineError
    return {}


def _kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)  # of a child that nobody else waits for
