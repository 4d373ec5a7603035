"""The analyst: the process that runs the author's code, with a line to the custodian alone.

It is sealed before a line of the author's code runs, and tries to break the seal itself first.
"""

from __future__ import annotations

import io
import os
import socket
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpaudit.base.errors import DpAuditError, UnsupportedError
from dpaudit.plan import Plan
from dpaudit.sealed import sandbox
from dpaudit.sealed.channel import Channel, ChannelError
from dpaudit.sealed.escape_attempts import analyst_tries
from dpaudit.sealed.handles import Rows, SealedLedger
from dpaudit.sealed.messages import generator


class Runnable(Protocol):
    """A subject of which a sealed run is made."""

    def data(self) -> dict[str, Any]:
        """Its ``table``, names of public ``files`` and of ``functions``, as JSON."""

    def facts(self) -> dict[str, Any]:
        """What it declares beside these, as JSON: plan, claim, findings."""

    def run(self, data: Rows, ledger: SealedLedger, rng: np.random.Generator) -> dict[str, Any]:
        """What it published, as JSON."""


Load = Callable[[str, Mapping[str, Any]], Runnable]


def serve(descriptor: int, load: Load) -> None:
    """Seal this process, load a subject, and run it when the custodian says so.

    Args:
        descriptor: of the socket to the custodian.
        load: imports a subject by name and settings.
    """
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        job = channel.receive()
        if not _sealed(channel, descriptor, job):
            return
        said = _Said(channel)
        sys.stdout, sys.stderr = said, said
        try:
            _serve(channel, job, load)
        except DpAuditError as error:
            channel.send({"failed": str(error), "kind": type(error).__name__})
    except ChannelError:
        pass  # the custodian has gone on without this process
    finally:
        channel.close()
        os._exit(0)  # nothing of the author's runs afterwards


def _sealed(channel: Channel, descriptor: int, job: Mapping[str, Any]) -> bool:
    readable = [Path(each) for each in job["readable"]]
    try:
        means = sandbox.confine(readable, descriptor, job["processor_seconds"], job["memory_bytes"])
    except UnsupportedError as error:
        channel.send({"unsealed": str(error)})
        return False
    tries = analyst_tries(job["private"], job["parent"])
    channel.send({"system": means.system, "means": list(means.walls), "tries": tries})
    return True


def _serve(channel: Channel, job: Mapping[str, Any], load: Load) -> None:
    sys.path[:0] = job["paths"]
    sys.modules["dill"] = None  # type: ignore[assignment]  # torch asks for it, and it for /dev/null
    for folder in map(Path, job["packages"]):
        _import_package(folder)
    subject = load(job["name"], job["settings"])
    channel.send(subject.data())
    channel.receive()
    facts = subject.facts()
    channel.send({"subject": facts})
    start = channel.receive()

    def ask(request: Mapping[str, Any]) -> dict[str, Any]:
        channel.send(request)
        return channel.receive()

    rng = generator(start["seed"])
    ledger = SealedLedger(Plan.from_dict(facts["plan"]), ask)
    channel.send({"result": subject.run(Rows(ask, 0), ledger, rng)})


def _import_package(folder: Path) -> None:
    """Import a package whose own folder can be read, and not the one in which it lies."""
    found = spec_from_file_location(folder.name, folder / "__init__.py")
    if found is None or found.loader is None:
        return
    sys.modules[folder.name] = module = module_from_spec(found)
    found.loader.exec_module(module)


class _Said(io.TextIOBase):
    """What the code prints, for the terminal: it follows from releases and public facts."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._channel.send({"said": text})
        return len(text)
