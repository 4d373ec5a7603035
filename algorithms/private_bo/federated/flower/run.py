"""One run over real processes, and the same run in this process."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from private_bo.federated import (
    DPFTSDE,
    FederatedProblem,
    InProcess,
    Recorded,
    Report,
    Selected,
    Streams,
)
from private_bo.federated.flower.app import CHOICES, ERROR, RESULT, generators, hand_out, write_app
from private_bo.federated.flower.processes import (
    FederationError,
    Loopback,
    loopback,
    require_flower,
)
from private_bo.gp.types import Array
from private_bo.threads import single_threaded

_START = 120.0  # seconds for all processes to come up and be given the app
_POLL = 0.2

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
        _wait_for_result(server, federation, _START + (algorithm.rounds + 1) * patience)
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
        transport = Recorded(Selected(InProcess(agents), arrives))
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
