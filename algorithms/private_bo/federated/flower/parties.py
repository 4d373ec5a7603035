"""Who is given what: the server its algorithm and generators, an agent its objective and its own.

Each party has a folder of its own, open to its owner alone. The server's holds no objective, and an
agent's holds neither those of others nor anything that another generator could be computed from.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import files, validate
from private_bo.federated import DPFTSDE, AgentModel, Agents, FederatedProblem, Streams

JOURNAL, CERTIFICATE = "ledger.jsonl", "certificate.json"
"""Of the server: its ledger, and what the plan proves."""
RESULT, ERROR = "result.json", "error.txt"
"""Of the server: broadcasts and counts, written last; or why it stopped early."""
CHOICES = "choices.json"
"""Of an agent: the points it has queried so far."""
_SETUP = "setup.pickle"


def generators(seed: int) -> list[np.random.Generator]:
    """What draws the problem, the algorithm's choices and the noise, as ``dpaudit run`` has them.

    Raises:
        InputError: if the seed is no integer of at least 0.
    """
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
