"""The processes of a federation on one machine: one SuperLink, one SuperNode an agent.

Everything listens on the loopback interface only. Nothing is downloaded, no telemetry is sent, and
all files lie below one folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib import metadata, util
from pathlib import Path
from types import TracebackType
from typing import Self

from dpaudit import files
from dpaudit.errors import DpAuditError, UnsupportedError

__all__ = ["FederationError", "Loopback", "require_flower"]

_LEAST_FLOWER = (1, 41)  # before it, SuperLink and SuperNode take other options
_LOOPBACK = "127.0.0.1"
_PORTS = range(20_000, 32_000)
_POLL = 0.2  # seconds between two looks
_START = 60.0  # seconds that Flower may take to come up
_GRACE = 8.0  # seconds that a process may take to stop


class FederationError(DpAuditError):
    """A process of the federation failed or did not answer in time."""


def require_flower() -> None:
    """Check that this machine can run a federation.

    Raises:
        UnsupportedError: if Flower is missing or too old, or the system knows no process groups.
    """
    if not hasattr(os, "killpg"):
        raise UnsupportedError("this system has no process groups; run the federation on Linux.")
    if util.find_spec("flwr") is None:
        raise UnsupportedError("flwr is not installed; install the extra 'federated'.")
    version = metadata.version("flwr")
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < _LEAST_FLOWER:
        least = ".".join(map(str, _LEAST_FLOWER))
        raise UnsupportedError(f"flwr is version {version}; it must be at least {least}.")


class Loopback:
    """A running SuperLink with its SuperNodes; leaving the context ends every process.

    Each process leads a process group, to which all that it starts belongs: whatever happens, the
    groups are ended as a whole. They end by themselves if this process is killed.

    Args:
        folder: an existing folder for Flower's home and the processes' output.
        nodes: node configuration of each SuperNode, such as where its agent's private files lie.

    Raises:
        FederationError: if a process ends or does not come up in time.
    """

    def __init__(self, folder: Path, nodes: Sequence[Mapping[str, str | int]]) -> None:
        self._folder = folder
        self._nodes = nodes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = _free_ports(1 + len(nodes))
        self._address = f"{_LOOPBACK}:{self._ports[0]}"
        self._environment = _environment(folder, self._address)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def process_groups(self) -> tuple[int, ...]:
        """Numbers of the running process groups, in the order of their start."""
        return tuple(process.pid for process in self._running.values())

    def submit(self, app: Path, settings: Mapping[str, str | int | float]) -> None:
        """Start the server's part of an app on the SuperLink.

        Args:
            app: folder of the app.
            settings: its run configuration.

        Raises:
            FederationError: if Flower refuses it.
        """
        settled = ("--run-config", _toml(settings))
        submission = self._spawn("run", "flwr", "run", str(app), "loopback", *settled)
        self._await("flwr run", lambda: submission.poll() is not None, _START)
        self._end("run")
        if submission.returncode != 0:
            raise FederationError(f"flwr run failed: {self._last_words('run')}")

    def check(self) -> None:
        """See that the server's side still runs; a SuperNode may end at any time.

        Raises:
            FederationError: if SuperLink or SuperExec ended.
        """
        for name in ("superlink", "superexec"):
            if self._running[name].poll() is not None:
                raise FederationError(f"{name} ended: {self._last_words(name)}")

    def _start(self) -> None:
        # With isolation "process" Flower starts nothing by itself, so that no process escapes us.
        self._spawn(
            *("superlink", "flower-superlink", "--insecure", "--isolation", "process"),
            *("--host", _LOOPBACK, "--port", str(self._ports[0])),
            "--disable-runtime-dependency-installation",
        )
        for number, (node, port) in enumerate(zip(self._nodes, self._ports[1:], strict=True)):
            self._spawn(
                *(f"supernode-{number}", "flower-supernode", "--insecure"),
                *("--superlink", self._address, "--max-wait-time", str(_START)),
                *("--host", _LOOPBACK, "--port", str(port)),
                *("--node-config", _toml(node)),
            )
        self._await("SuperLink", self._healthy, _START)
        self._spawn(
            *("superexec", "flower-superexec", "--insecure"),
            *("--runtime-api-address", self._address),
        )

    def _spawn(self, name: str, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Flower command in a process group of its own."""
        with (self._folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.child", command, *arguments],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,  # its end tells the process that we are gone
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running[name] = process
        return process

    def _healthy(self) -> bool:
        if self._running["superlink"].poll() is not None:
            raise FederationError(f"superlink ended: {self._last_words('superlink')}")
        # Not urllib, which would ask a proxy where one is configured.
        connection = HTTPConnection(_LOOPBACK, self._ports[0], timeout=1)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _await(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise FederationError(f"{what} was not ready within {seconds:g} seconds.")
            time.sleep(_POLL)

    def _last_words(self, name: str) -> str:
        """The last line of a process's output."""
        text = (self._folder / f"{name}.log").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "no output"

    def _stop(self) -> None:
        """Ask all processes to stop, then end what is left of their groups."""
        processes = list(self._running.values())
        for process in processes:
            _end_group(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for name in tuple(self._running):
            self._end(name)

    def _end(self, name: str) -> None:
        """End what is left of a process and its group, and forget it."""
        process = self._running.pop(name)
        _end_group(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _end_group(group: int, how: signal.Signals) -> None:
    """Signal a whole process group, if any of it is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, how)


def _free_ports(count: int) -> list[int]:
    """Different ports of the loopback interface that are free now.

    They lie below those that systems give to outgoing connections, so that none of these takes one
    before it is used.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((_LOOPBACK, port))
            found.append(port)
        if len(found) == count:
            return found
    raise FederationError(f"{count} free ports were not found on {_LOOPBACK}.")


def _environment(folder: Path, address: str) -> dict[str, str]:
    """Variables of all processes: Flower's home, its commands, and nothing sent to anyone."""
    home = folder / "flower"
    home.mkdir()
    connection = f'[superlink.loopback]\naddress = "{address}"\ninsecure = true\n'
    files.write(home / "config.toml", '[superlink]\ndefault = "loopback"\n' + connection)
    commands = str(Path(sys.executable).parent)
    return (
        os.environ
        | {
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": str(_POLL),
            "PATH": commands + os.pathsep + os.environ.get("PATH", os.defpath),
            "NO_PROXY": _LOOPBACK,
            "no_proxy": _LOOPBACK,
            "PYTHONUNBUFFERED": "1",
        }
        | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    )


def _toml(settings: Mapping[str, str | int | float]) -> str:
    """Key/value pairs as Flower's command line wants them: JSON's texts and numbers are TOML's."""
    return " ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
