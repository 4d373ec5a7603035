"""One run over real processes of this machine, and the same run in this process.

A federation is one SuperLink, and one SuperNode an agent. Everything listens on the loopback
interface only; nothing is downloaded, no telemetry is sent, and all files lie below one folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib import metadata
from pathlib import Path

import numpy as np

from dpaudit.base import files, validate
from dpaudit.base.errors import DpAuditError, InputError, UnsupportedError
from dpaudit.base.optional_import import require
from dpaudit.ledger import Ledger
from private_bo.federated import (
    DPFTSDE,
    FederatedProblem,
    FilteringTransport,
    InProcessTransport,
    RecordingTransport,
    Report,
    Streams,
)
from private_bo.federated.flower.app import CHOICES, ERROR, RESULT, generators, hand_out, write_app
from private_bo.gp.types import Array, single_threaded

_LEAST_FLOWER = (1, 41)  # before it, SuperLink and SuperNode take other options
_LOOPBACK = "127.0.0.1"
_PORTS = range(20_000, 32_000)
_POLL = 0.2  # seconds between two looks
_START = 60.0  # seconds that Flower may take to come up
_GRACE = 8.0  # seconds that a process may take to stop

Settings = Mapping[str, str | int | float]


class FederationError(DpAuditError):
    """A process of the federation failed or did not answer in time."""


def require_flower() -> None:
    """Check that this machine can run a federation.

    Raises:
        UnsupportedError: if Flower is missing or too old, or the system knows no process groups.
    """
    if not hasattr(os, "killpg"):
        raise UnsupportedError("this system has no process groups; run the federation on Linux.")
    require("federated", "flwr", what="a federation over processes")
    version = metadata.version("flwr")
    if tuple(int(part) for part in version.split(".")[:2]) < _LEAST_FLOWER:
        least = ".".join(map(str, _LEAST_FLOWER))
        raise UnsupportedError(f"flwr is version {version}; it must be at least {least}.")


@contextlib.contextmanager
def loopback(folder: Path, nodes: Sequence[Settings]) -> Iterator[Loopback]:
    """A running SuperLink with its SuperNodes; leaving the context ends every process.

    Args:
        folder: an existing folder for Flower's home and the processes' output.
        nodes: node configuration of each SuperNode, such as where its agent's private files lie.

    Raises:
        FederationError: if a process ends or does not come up in time.
    """
    federation = Loopback(folder, 1 + len(nodes))
    try:
        federation.start(nodes)
        yield federation
    finally:
        federation.stop()


class Loopback:
    """The processes of :func:`loopback`.

    Each process leads a process group, to which all that it starts belongs: whatever happens, the
    groups are ended as a whole. They end by themselves if this process is killed.
    """

    def __init__(self, folder: Path, ports: int) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = _free_ports(ports)
        self._address = f"{_LOOPBACK}:{self._ports[0]}"
        self._environment = _environment(folder, self._address)

    def start(self, nodes: Sequence[Settings]) -> None:
        """Start SuperLink, SuperNodes and SuperExec, and wait until they answer."""
        # With isolation "process" Flower starts nothing by itself, so that no process escapes us.
        self._spawn(
            *("superlink", "flower-superlink", "--insecure", "--isolation", "process"),
            *("--host", _LOOPBACK, "--port", str(self._ports[0])),
            "--disable-runtime-dependency-installation",
        )
        for number, (node, port) in enumerate(zip(nodes, self._ports[1:], strict=True)):
            self._spawn(
                *(f"supernode-{number}", "flower-supernode", "--insecure"),
                *("--superlink", self._address, "--max-wait-time", str(_START)),
                *("--host", _LOOPBACK, "--port", str(port), "--node-config", _toml(node)),
            )
        deadline = time.monotonic() + _START
        while not self._healthy():
            if time.monotonic() > deadline:
                raise FederationError(f"SuperLink was not ready within {_START:g} seconds.")
            time.sleep(_POLL)
        self._spawn(
            *("superexec", "flower-superexec", "--insecure"),
            *("--runtime-api-address", self._address),
        )

    def submit(self, app: Path, settings: Settings) -> None:
        """Start the server's part of an app on the SuperLink.

        Args:
            app: folder of the app.
            settings: its run configuration.

        Raises:
            FederationError: if Flower refuses it.
        """
        command = ["flwr", "run", str(app), "loopback", "--run-config", _toml(settings)]
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_START,
            )
        except subprocess.TimeoutExpired:
            raise FederationError(f"flwr run did not end within {_START:g} seconds.") from None
        if done.returncode != 0:
            raise FederationError(f"flwr run failed: {_last_line(done.stdout)}")

    def check(self, *names: str) -> None:
        """See that the server's side still runs; a SuperNode may end at any time.

        Raises:
            FederationError: if SuperLink or SuperExec ended.
        """
        for name in names or ("superlink", "superexec"):
            if self._running[name].poll() is not None:
                output = (self._folder / f"{name}.log").read_bytes()
                raise FederationError(f"{name} ended: {_last_line(output)}")

    def stop(self) -> None:
        """Ask all processes to stop, then end what is left of their groups."""
        for process in self._running.values():
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for process in self._running.values():
            _signal(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def _spawn(self, name: str, command: str, *arguments: str) -> None:
        """Start a Flower command in a process group of its own."""
        with (self._folder / f"{name}.log").open("wb") as output:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.child", command, *arguments],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,  # its end tells the process that we are gone
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _healthy(self) -> bool:
        self.check("superlink")
        # Not urllib, which would ask a proxy where one is configured.
        connection = HTTPConnection(_LOOPBACK, self._ports[0], timeout=1)
        with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
            connection.request("GET", "/health")
            return connection.getresponse().status == HTTPStatus.OK
        return False


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def _signal(group: int, number: signal.Signals) -> None:
    """Signal a whole process group, if any of it is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


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
            "PYTHONUNBUFFERED": "1",
        }
        | dict.fromkeys(("NO_PROXY", "no_proxy"), _LOOPBACK)
        | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    )


def _toml(settings: Settings) -> str:
    """Key/value pairs as Flower's command line wants them: JSON's texts and numbers are TOML's."""
    return " ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())


_GIVEN = 120.0  # seconds for all processes to come up and be given the app

Stops = Mapping[int, int]
"""Agents that are cut off, and the iteration in which each of them is."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """All that happened: what the server showed, and where the agents looked.

    Attributes:
        broadcasts: every release, (T, P, M).
        choices: the points that each agent queried, in order.
    """

    broadcasts: Array = field(repr=False)
    choices: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of every bit of it, as 64 hexadecimal digits."""
        found = hashlib.sha256(json.dumps([self.broadcasts.shape, self.choices]).encode())
        found.update(self.broadcasts.astype("<f8").tobytes())
        return found.hexdigest()


@dataclass(frozen=True, eq=False)
class FlowerRun:
    """A run over processes.

    Attributes:
        trajectory: what happened.
        missing: from how many agents nothing usable came, round by round; the server's own.
        refused: how much the server refused, by reason; the server's own.
        server: its folder, with ledger and certificate.
        start: seconds until the app ran.
        seconds: seconds in all.
    """

    trajectory: Trajectory
    missing: tuple[int, ...]
    refused: Mapping[str, int]
    server: Path
    start: float
    seconds: float


def over_flower(
    algorithm: DPFTSDE,
    problem: FederatedProblem,
    seed: int,
    folder: Path,
    *,
    patience: float = 60.0,
    stops: Stops | None = None,
) -> FlowerRun:
    """Start SuperLink, server and agents as processes of their own, and run every round.

    No process is left when this returns or raises.

    Args:
        algorithm: public configuration, without the last broadcast that nobody uses.
        problem: one objective for each agent, which is given to that agent alone.
        seed: of the run.
        folder: an existing empty folder; the parties' folders are made in it.
        patience: seconds that the server waits for agents in a round.
        stops: agents whose processes are killed, and in which iteration.

    Raises:
        InputError: if an argument is wrong.
        UnsupportedError: if Flower cannot run here.
        FederationError: if SuperLink or server fails.
    """
    stops = _checked(algorithm, problem, stops or {})
    validate.positive(patience=patience)
    require_flower()
    folder = folder.resolve()
    began = time.monotonic()
    server, agents = hand_out(folder, algorithm, problem, seed, patience=patience, stops=stops)
    with loopback(folder, [{"folder": str(own)} for own in agents]) as federation:
        federation.submit(write_app(folder / "app"), {"folder": str(server)})
        start = time.monotonic() - began
        _wait_for_result(server, federation, _GIVEN + (algorithm.rounds + 1) * patience)
    result = json.loads((server / RESULT).read_text())
    return FlowerRun(
        Trajectory(np.array(result["broadcasts"]), tuple(_choices(own) for own in agents)),
        tuple(result["missing"]),
        result["refused"],
        server,
        start,
        time.monotonic() - began,
    )


def in_process(
    algorithm: DPFTSDE, problem: FederatedProblem, seed: int, *, stops: Stops | None = None
) -> Trajectory:
    """The same run with all parties in this process."""
    stops = _checked(algorithm, problem, stops or {})
    _, own, noise = generators(seed)
    streams = Streams.of(own)

    def arrives(sent: object) -> bool:
        return isinstance(sent, Report) and sent.round < stops.get(sent.agent, algorithm.rounds)

    with single_threaded():
        agents = algorithm.team(problem, streams)
        transport = RecordingTransport(FilteringTransport(InProcessTransport(agents), arrives))
        with Ledger(algorithm.plan(), rng=noise) as ledger:
            algorithm.play(algorithm.server(ledger), transport)
    # An agent that is cut off in iteration t has made its initial queries and those before t.
    made = {n: algorithm.initial + t - 1 if t else 0 for n, t in stops.items()}
    choices = (tuple(row[: made.get(number)]) for number, row in enumerate(agents.choices.tolist()))
    return Trajectory(transport.releases, tuple(choices))


def _checked(algorithm: DPFTSDE, problem: FederatedProblem, stops: Stops) -> Stops:
    if algorithm.last_broadcast:
        raise InputError("last_broadcast is true; it must be false, since no agent acts on it.")
    if problem.agents != algorithm.agents:
        raise InputError(f"problem has {problem.agents} agents; it must have {algorithm.agents}.")
    for agent, turn in stops.items():
        if not (0 <= agent < algorithm.agents and 0 <= turn <= algorithm.rounds):
            raise InputError(
                f"stop is {agent}@{turn}; it must be an agent below {algorithm.agents} at an "
                f"iteration from 0 to {algorithm.rounds}."
            )
    return stops


def _wait_for_result(server: Path, federation: Loopback, seconds: float) -> None:
    """Until the server has written its last file."""
    deadline = time.monotonic() + seconds
    while not (server / RESULT).exists():
        if (server / ERROR).exists():
            raise FederationError(f"the server stopped: {(server / ERROR).read_text().strip()}")
        federation.check()
        if time.monotonic() > deadline:
            raise FederationError(f"the server was not done within {seconds:g} seconds.")
        time.sleep(_POLL)


def _choices(agent: Path) -> tuple[int, ...]:
    found = agent / CHOICES
    return tuple(json.loads(found.read_text())) if found.exists() else ()
