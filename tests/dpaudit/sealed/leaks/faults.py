"""Sealed subjects whose process does what no process should, after it has released twice."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Table,
    TrustModel,
)


@dataclass(frozen=True)
class Fault(SealedSubject):
    """Says each release that it received."""

    releases: int = 2
    declared: int = 1000

    def table(self) -> Table:
        return Table("rows.csv", "person", {"age": {"type": "integer", "range": [0, 110]}})

    def plan(self) -> Plan:
        about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
        part = Contribution(1, rows=1)
        noise = DiscreteLaplace(1000.0)
        used = Invocation.bounded(noise, part, *about, at="visits", count=self.declared)
        return Plan.of(used)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        for _ in range(self.releases):
            ledger.count(data, at="visits")
            print("received")  # noqa: T201
        self.fail(data._ask.__closure__[0].cell_contents)
        return RunResult({})

    def fail(self, channel: Any) -> None:
        """Nothing goes wrong."""


class Aborts(Fault):
    def fail(self, channel: Any) -> None:
        os.abort()


class Exits(Fault):
    def fail(self, channel: Any) -> None:
        os._exit(3)


class Crashes(Fault):
    def fail(self, channel: Any) -> None:
        ctypes.string_at(0)


class Spins(Fault):
    def fail(self, channel: Any) -> None:
        while True:
            pass


class Sleeps(Fault):
    def fail(self, channel: Any) -> None:
        threading.Event().wait()


class Eats(Fault):
    def fail(self, channel: Any) -> None:
        kept = []
        while True:
            kept.append(bytearray(10**8))


class Raises(Fault):
    def fail(self, channel: Any) -> None:
        sys.exit("of its own")


class Recurses(Fault):
    def fail(self, channel: Any) -> None:
        self.fail(channel)


class Closes(Fault):
    def fail(self, channel: Any) -> None:
        channel.close()
        threading.Event().wait()


class Raw(Fault):
    """Sends bytes."""

    sent: bytes = b""

    def fail(self, channel: Any) -> None:
        channel._socket.sendall(self.sent)
        threading.Event().wait()


def framed(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


class Huge(Raw):
    sent = b"\xff" * 100


class NoJson(Raw):
    sent = framed(b"\x80\x04pickle.")


class NoTable(Raw):
    sent = framed(b"[1, 2]")


class NotANumber(Raw):
    sent = framed(b'{"op": NaN}')


class Deep(Raw):
    sent = framed(b'{"op":' + b"[" * 200_000 + b"]" * 200_000 + b"}")


class Half(Raw):
    sent = framed(b'{"op": "left"}')[:9]

    def fail(self, channel: Any) -> None:
        channel._socket.sendall(self.sent)
        os._exit(0)


class Endless(Fault):
    """Asks without reading an answer, for more than is declared."""

    def fail(self, channel: Any) -> None:
        while True:
            channel.send({"op": "count", "of": 0, "at": "visits"})


class Hasty(Fault):
    """Asks twice before it reads an answer, so that a sleep could measure the first."""

    def fail(self, channel: Any) -> None:
        channel._socket.sendall(framed(b'{"op": "left"}') * 2)
        channel.receive()
        channel.receive()


class Talks(Fault):
    """Prints without end."""

    def fail(self, channel: Any) -> None:
        while True:
            channel.send({"said": "x" * 100_000})
