"""The Flower app: who is given what, the agent's side, the server's side, and the project file.

Each party has a folder of its own, open to its owner alone. The server's holds no objective, and an
agent's holds neither those of others nor anything that another generator could be computed from.
Flower starts an agent anew for every message, and keeps its memory in between; the server is
Algorithm 1 with the ledger in its own folder.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import files, validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import Finding, Severity, SubjectRecord, certify
from dpaudit.ledger import Ledger
from private_bo.federated import (
    DPFTSDE,
    AgentModel,
    Agents,
    Broadcast,
    FederatedProblem,
    RecordingTransport,
    Report,
    Streams,
)
from private_bo.gp.types import single_threaded

_POLL = 0.2  # seconds between two looks


class FlowerTransport:
    """Asks every connected node in every round, and waits for answers with bounded patience.

    A node that was silent is asked again, but nobody waits for it any more until it answers. Each
    node speaks for the one agent that it first reported for, and no other node for the same: else
    one agent could take part several times, which the claim does not cover.

    Args:
        grid: a ``flwr.serverapp.Grid``.
        patience: seconds that a round may wait.
    """

    def __init__(self, grid: Any, patience: float) -> None:
        self._grid = grid
        self._patience = patience
        self._silent: set[int] = set()
        self._agent_of: dict[int, int] = {}

    def exchange(self, broadcast: Broadcast) -> list[object]:
        """One object for each answer: its report, or None where it holds no proper one."""
        answers = self._ask(broadcast, "query")
        return [self._report(node, content) for node, content in answers]

    def finish(self, broadcast: Broadcast) -> None:
        """Every agent acts once more, and says no more than that it did."""
        self._ask(broadcast, "query.finish")

    def await_nodes(self, count: int, patience: float) -> None:
        """Wait until so many nodes are connected, or patience ends."""
        deadline = time.monotonic() + patience
        while len(list(self._grid.get_node_ids())) < count and time.monotonic() < deadline:
            time.sleep(_POLL)

    def _ask(self, broadcast: Broadcast, kind: str) -> list[tuple[int, Any]]:
        """The nodes that answered without an error, and what."""
        asked = self._send(broadcast, kind)
        answers = []
        deadline = time.monotonic() + self._patience
        while not self._silent.issuperset(asked.values()) and time.monotonic() < deadline:
            time.sleep(_POLL)
            for message in self._grid.pull_messages(set(asked)):
                node = asked.pop(message.metadata.reply_to_message_id, None)
                if node is None:
                    continue
                self._silent.discard(node)
                if not message.has_error():
                    answers.append((node, message.content))
        self._silent.update(asked.values())
        return sorted(answers, key=lambda each: each[0])

    def _send(self, broadcast: Broadcast, kind: str) -> dict[str, int]:
        """Ask every node; the nodes that can answer, by the identifier of their message."""
        from flwr.app import ConfigRecord, Message, RecordDict

        nodes = sorted(self._grid.get_node_ids())
        if not nodes:
            return {}
        messages = [
            Message(
                RecordDict({"broadcast": ConfigRecord(broadcast.to_dict())}),
                node,
                kind,
                ttl=self._patience,
                group_id=str(broadcast.round + 1),
            )
            for node in nodes
        ]
        identifiers = self._grid.push_messages(messages)
        return {name: node for name, node in zip(identifiers, nodes, strict=True) if name}

    def _report(self, node: int, content: Any) -> Report | None:
        try:
            report = Report.from_dict(dict(content["report"]))
        except (InputError, KeyError, TypeError):
            return None
        spoken_for = self._agent_of.get(node)
        if spoken_for is None and report.agent not in self._agent_of.values():
            self._agent_of[node] = report.agent
        return report if self._agent_of.get(node) == report.agent else None


JOURNAL, CERTIFICATE = "ledger.jsonl", "certificate.json"
"""Of the server: its ledger, and what the plan proves."""
RESULT, ERROR = "result.json", "error.txt"
"""Of the server: broadcasts and counts, written last; or why it stopped early."""
CHOICES = "choices.json"
"""Of an agent: the points it has queried so far."""
_SETUP = "setup.pickle"


def generators(seed: int) -> list[np.random.Generator]:
    """What draws the problem, the algorithm's choices and the noise, as in ``dpaudit run``."""
    root = np.random.SeedSequence(validate.integer_at_least(0, seed=seed))
    return [np.random.default_rng(each) for each in root.spawn(3)]


@dataclass(frozen=True, eq=False)
class ServerSetup:
    """What the server starts from.

    Attributes:
        algorithm: public.
        noise: draws the samples and the privacy noise.
        patience: seconds that a round may wait.
        seed: for the certificate.
    """

    algorithm: DPFTSDE
    noise: np.random.Generator
    patience: float
    seed: int


@dataclass(frozen=True, eq=False)
class AgentSetup:
    """What one agent starts from.

    Attributes:
        agent: alone, with its own objective and generator, and no other.
        stop: iteration in which it is cut off; None for never.
    """

    agent: Agents
    stop: int | None


def hand_out(
    folder: Path,
    algorithm: DPFTSDE,
    problem: FederatedProblem,
    seed: int,
    *,
    patience: float,
    stops: Mapping[int, int],
) -> tuple[Path, list[Path]]:
    """Make the folders of all parties; returns the server's and the agents'.

    Args:
        folder: existing, in which they are made.
        algorithm: public configuration.
        problem: one objective for each agent, which is given to that agent alone.
        seed: of the run.
        patience: seconds that the server waits for agents in a round.
        stops: agents that are cut off, and in which iteration.
    """
    _, own, noise = generators(seed)
    streams, server = Streams.of(own), folder / "server"
    _write_setup(server, ServerSetup(algorithm, _detached(noise), patience, seed))
    agents = [folder / f"agent-{n}" for n in range(algorithm.agents)]
    model = AgentModel(algorithm, problem.domain)
    for n, place in enumerate(agents):
        alone = FederatedProblem.tabled("own", problem.domain, [problem.values(n)], problem.noise)
        agent = Agents(model, partial(_observed, alone), [n], [_detached(streams.agent(n))])
        _write_setup(place, AgentSetup(agent, stops.get(n)))
    return server, agents


def _detached(generator: np.random.Generator) -> np.random.Generator:
    """The same draws without the seed, from which the generators of others would follow."""
    copy = np.random.default_rng()
    copy.bit_generator.state = generator.bit_generator.state
    return copy


def _observed(own: FederatedProblem, agent: int, point: int, rng: np.random.Generator) -> float:
    """What an agent observes at a point of the grid, whatever its number."""
    return own.observe(0, point, rng)


def _write_setup(folder: Path, setup: ServerSetup | AgentSetup) -> None:
    folder.mkdir(mode=0o700)
    files.write(folder / _SETUP, pickle.dumps(setup))


def setup_in(folder: Path) -> Any:
    """The setup of the party whose folder it is; the folder is its own, so pickle is safe."""
    return pickle.loads((folder / _SETUP).read_bytes())


_MEMORY = "agent"


def answer(message: Any, context: Any, *, reports: bool = True) -> Any:
    """Act on a broadcast and report (Algorithm 2), as a ClientApp's query function.

    Args:
        message: a ``flwr.app.Message`` with a broadcast.
        context: a ``flwr.app.Context``, whose state is kept on the agent's side.
        reports: whether the answer holds a report; else it says no more than that it was done.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    folder = Path(context.node_config["folder"])
    setup: AgentSetup = setup_in(folder)
    agent, broadcast = setup.agent, Broadcast.from_dict(dict(message.content["broadcast"]))
    turn = broadcast.round + 1
    if setup.stop is not None and turn >= setup.stop:
        os.killpg(os.getpgrp(), signal.SIGKILL)  # its SuperNode and all: the plug is pulled
    if _MEMORY in context.state:
        agent.resume(pickle.loads(context.state[_MEMORY]["history"]))
    content = {}
    with single_threaded():
        agent.act(broadcast)
        if reports:
            content["report"] = ConfigRecord(agent.reports(turn)[0].to_dict())
    context.state[_MEMORY] = ConfigRecord({"history": pickle.dumps(agent.state)})
    files.write(folder / CHOICES, json.dumps(agent.choices[0].tolist()))
    return Message(RecordDict(content), reply_to=message)


def finish(message: Any, context: Any) -> Any:
    """Act on the last broadcast, which nothing follows."""
    return answer(message, context, reports=False)


_NAME = "private_bo.federated:DPFTSDE"
_SEEDED = Finding(
    "seeded-noise",
    Severity.WARNING,
    "The noise of this run came from a stated seed; whoever has it can undo the noise.",
    "Seed experiments only.",
)
_START = 60.0  # seconds that agents may take to connect; who comes later joins later


def serve(grid: Any, context: Any) -> None:
    """Run every round, as a ServerApp's main function.

    Args:
        grid: a ``flwr.serverapp.Grid``.
        context: a ``flwr.app.Context`` whose run configuration names the server's folder.
    """
    folder = Path(context.run_config["folder"])
    try:
        with single_threaded():
            _serve(grid, folder)
    except BaseException as error:  # Flower hides what a ServerApp prints
        files.write(folder / ERROR, f"{type(error).__name__}: {error}\n")
        raise


def _serve(grid: Any, folder: Path) -> None:
    setup: ServerSetup = setup_in(folder)
    algorithm = setup.algorithm
    proved = certify(  # written before any data are seen
        algorithm.plan(),
        subject=SubjectRecord(_NAME, configuration=algorithm.to_dict()),
        claim=algorithm.claim(),
        findings=(*algorithm.findings(), _SEEDED),
        not_covered=algorithm.not_covered(),
    )
    replace(proved, seed=setup.seed).save(folder / CERTIFICATE)
    transport = FlowerTransport(grid, setup.patience)
    transport.await_nodes(algorithm.agents, _START)
    recorded = RecordingTransport(transport)
    with Ledger(algorithm.plan(), rng=setup.noise, journal=folder / JOURNAL) as ledger:
        server = algorithm.server(ledger)
        algorithm.play(server, recorded)
    result = {
        "broadcasts": recorded.releases.tolist(),
        "missing": server.missing,
        "refused": server.refused,
    }
    files.write(folder / RESULT, files.pretty_json(result))


_PROJECT = f"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "dp-fts-de"
version = "0.1.0"
description = "DP-FTS-DE: a server that releases through a ledger, and agents."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "dpaudit"

[tool.flwr.app.components]
serverapp = "{__name__}:server_app"
clientapp = "{__name__}:client_app"

[tool.flwr.app.config]
folder = ""
"""


def write_app(folder: Path) -> Path:
    """Write the app into a new folder, and return the folder.

    Args:
        folder: its last part must be a name that Flower allows: letters, digits and hyphens.
    """
    folder.mkdir()
    files.write(folder / "pyproject.toml", _PROJECT)
    return folder


def __getattr__(name: str) -> Any:
    """``server_app`` or ``client_app``, made when Flower asks for it: flwr is an extra."""
    if name == "server_app":
        from flwr.serverapp import ServerApp

        server_app = ServerApp()
        server_app.main()(serve)
        return server_app
    if name == "client_app":
        from flwr.clientapp import ClientApp

        client_app = ClientApp()
        client_app.query()(answer)
        client_app.query("finish")(finish)
        return client_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
