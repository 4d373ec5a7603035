"""What all federated algorithms have in common: their parties, their data and their result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.project import RunResult
from private_bo.federated.agent import AgentModel
from private_bo.federated.algorithms import Agents, central_server
from private_bo.federated.messages import Broadcast
from private_bo.federated.problems.base import FederatedProblem
from private_bo.federated.problems.synthetic import synthetic
from private_bo.federated.problems.tuning import digits, landmines
from private_bo.federated.server import Aggregator, Transport
from private_bo.federated.settings import Settings
from private_bo.federated.streams import Streams
from private_bo.gp.types import Array


@dataclass(frozen=True)
class Federation(Settings):
    """Base of the federated algorithms: fields as in the base class."""

    default_data: ClassVar[str] = "synthetic"

    def team(
        self, problem: FederatedProblem, streams: Streams, numbers: Iterable[int] | None = None
    ) -> Agents:
        """The agents of these numbers (all of them by default) in this process.

        Raises:
            InputError: if a sub-region holds no point of the problem's grid.
        """
        chosen = list(range(self.agents) if numbers is None else numbers)
        generators = [streams.agent(number) for number in chosen]
        return Agents(AgentModel(self, problem.domain), problem.observe, chosen, generators)

    def play(self, server: Aggregator, transport: Transport) -> Broadcast:
        """Algorithm 1: every round between server and agents; returns the last broadcast."""
        broadcast = central_server(server, transport, self.exchanges)
        if self.exchanges == self.rounds:
            transport.finish(broadcast)
        return broadcast

    # -- data and result -------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> FederatedProblem:
        """``synthetic``, ``digits``, ``landmines`` (from DPAUDIT_DATA) or the path of its file.

        Raises:
            InputError: if there is no such problem, or it has another number of agents.
        """
        if source == "synthetic":
            return synthetic(self.agents, seed=rng)
        if source == "digits":
            return digits(self.agents, seed=int(rng.integers(2**31)))
        if source == "landmines" or source.endswith(".mat"):
            path = None if source == "landmines" else Path(source)
            return self.fitting(landmines(path, seed=int(rng.integers(2**31))))
        raise InputError(
            f"data is {source!r:.80}; it must be synthetic, digits, landmines, or the path of a "
            ".mat file of landmine fields."
        )

    def fitting(self, problem: Any) -> FederatedProblem:
        """The problem, if it has as many agents as this federation.

        Raises:
            InputError: if it has another number, or is no problem.
        """
        if not isinstance(problem, FederatedProblem):
            raise InputError(f"data is a {type(problem).__name__}; it must be a FederatedProblem.")
        if problem.agents != self.agents:
            raise InputError(
                f"data has {problem.agents} agents; agents is {self.agents}, so set it to that."
            )
        return problem

    def result(self, problem: FederatedProblem, agents: Agents) -> RunResult:
        """What ran; and for the owner how well it went, such as the simple regret of all agents.

        How often agents followed a broadcast is the owner's as well: how much an agent draws
        depends on what it has seen, and so does what it draws next.
        """
        regret = simple_regret(problem, agents, self.initial)
        owner = RunResult(
            summary={
                "rounds in which an agent followed the broadcast": sum(map(bool, agents.received)),
                "queries that followed a broadcast": sum(agents.received),
                "final simple regret": float(regret[:, -1].mean()),
            },
            series={"simple regret": regret.mean(axis=0).tolist()},
        )
        summary = {
            "algorithm": type(self).__name__,
            "problem": problem.name,
            "agents": self.agents,
            "rounds": self.rounds,
        }
        return RunResult(summary=summary, owner=owner)


def simple_regret(problem: FederatedProblem, agents: Agents, initial: int) -> Array:
    """How far each agent's best query so far is from its optimum, (N, T + 1).

    The first column is after the initial points. Values are without noise.
    """
    found = np.array(
        [
            [problem.value(agent, int(point)) for point in row]
            for agent, row in enumerate(agents.choices)
        ]
    )
    best = np.maximum.accumulate(found, axis=1)[:, initial - 1 :]
    regret: Array = problem.optimum[:, None] - best
    return regret
