"""Who is given what: the server its algorithm and generators, an agent its objective and its own.

Each party has a folder of its own. The server's holds no objective, and an agent's holds neither
those of others nor anything that another generator could be computed from.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import files, validate
from private_bo.federated import DPFTSDE, AgentModel, FederatedProblem, Streams
from private_bo.gp.types import Array

__all__ = [
    "AgentFiles",
    "Seeds",
    "ServerFiles",
    "generator_of",
    "load_array",
    "record_of",
    "save_array",
    "state_of",
]

_PRIVATE = 0o700  # for the owner alone


@dataclass(frozen=True)
class Seeds:
    """The generators of a run: problem, algorithm and noise, as ``dpaudit run`` derives them.

    Attributes:
        seed: of everything, at least 0.

    Raises:
        InputError: if it is no such integer.
    """

    seed: int

    def __post_init__(self) -> None:
        validate.integer_at_least(0, seed=self.seed)

    def problem(self) -> np.random.Generator:
        """Draws the problem."""
        return self._generator(0)

    def streams(self) -> Streams:
        """Of the server's samples and of each agent."""
        return Streams.of(self._generator(1))

    def noise(self) -> np.random.Generator:
        """Draws the privacy noise."""
        return self._generator(2)

    def _generator(self, place: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed).spawn(3)[place])


@dataclass(frozen=True)
class ServerFiles:
    """The server's folder.

    Attributes:
        folder: an absolute path.
    """

    folder: Path

    @property
    def journal(self) -> Path:
        """The ledger."""
        return self.folder / "ledger.jsonl"

    @property
    def certificate(self) -> Path:
        """What the plan proves."""
        return self.folder / "certificate.json"

    @property
    def broadcasts(self) -> Path:
        """Everything that was shown to the agents, (T, P, M)."""
        return self.folder / "broadcasts.npy"

    @property
    def counts(self) -> Path:
        """Missing and refused reports: the server's own; written last."""
        return self.folder / "counts.json"

    @property
    def error(self) -> Path:
        """Why the server stopped early, if it did."""
        return self.folder / "error.txt"

    def write(self, algorithm: DPFTSDE, seeds: Seeds, patience: float) -> None:
        """Make the folder, with public configuration and the server's two generators."""
        self.folder.mkdir(mode=_PRIVATE)
        record = {
            "algorithm": record_of(algorithm),
            "samples": state_of(seeds.streams().server()),
            "noise": state_of(seeds.noise()),
            "patience": patience,
            "seed": seeds.seed,
        }
        files.write(self.folder / "setup.json", files.pretty_json(record))

    def read(self) -> ServerSetup:
        """What :meth:`write` left."""
        record = json.loads((self.folder / "setup.json").read_text())
        return ServerSetup(
            algorithm=_algorithm_of(record["algorithm"]),
            samples=generator_of(record["samples"]),
            noise=generator_of(record["noise"]),
            patience=record["patience"],
            seed=record["seed"],
        )


@dataclass(frozen=True, eq=False)
class ServerSetup:
    """What the server starts from.

    Attributes:
        algorithm: public.
        samples: draws the samples.
        noise: draws the privacy noise.
        patience: seconds that a round may wait.
        seed: for the certificate.
    """

    algorithm: DPFTSDE
    samples: np.random.Generator
    noise: np.random.Generator
    patience: float
    seed: int


@dataclass(frozen=True)
class AgentFiles:
    """One agent's folder.

    Attributes:
        folder: an absolute path.
    """

    folder: Path

    @property
    def choices(self) -> Path:
        """The points it has queried so far: its own business."""
        return self.folder / "choices.json"

    def write(
        self,
        algorithm: DPFTSDE,
        problem: FederatedProblem,
        agent: int,
        seeds: Seeds,
        stop: int | None,
    ) -> None:
        """Make the folder, with public configuration, one objective and one generator.

        Args:
            algorithm: public.
            problem: of which one objective is taken.
            agent: n.
            seeds: of which one generator is taken.
            stop: iteration in which the agent is cut off; None for never.
        """
        self.folder.mkdir(mode=_PRIVATE)
        save_array(self.folder / "domain.npy", problem.domain)
        save_array(self.folder / "objective.npy", problem.values(agent))
        record = {
            "agent": agent,
            "algorithm": record_of(algorithm),
            "generator": state_of(seeds.streams().agent(agent)),
            "noise": problem.noise,
            "stop": stop,
        }
        files.write(self.folder / "setup.json", files.pretty_json(record))

    def read(self) -> AgentSetup:
        """What :meth:`write` left."""
        record = json.loads((self.folder / "setup.json").read_text())
        domain = load_array(self.folder / "domain.npy")
        objective = load_array(self.folder / "objective.npy")
        return AgentSetup(
            agent=record["agent"],
            model=_algorithm_of(record["algorithm"]).model(domain),
            problem=FederatedProblem.tabled("own", domain, [objective], record["noise"]),
            generator=generator_of(record["generator"]),
            stop=record["stop"],
        )


@dataclass(frozen=True, eq=False)
class AgentSetup:
    """What one agent starts from.

    Attributes:
        agent: n.
        model: what all agents know.
        problem: its own objective, and no other.
        generator: everything it draws.
        stop: iteration in which it is cut off; None for never.
    """

    agent: int
    model: AgentModel
    problem: FederatedProblem
    generator: np.random.Generator
    stop: int | None

    def observe(self, agent: int, point: int, rng: np.random.Generator) -> float:
        """What this agent observes at a point of the grid."""
        return self.problem.observe(0, point, rng)


def state_of(generator: np.random.Generator) -> dict[str, Any]:
    """A generator's state, as a JSON value. Nothing about how it was seeded follows from it."""
    return dict(generator.bit_generator.state)


def generator_of(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator that goes on from a state.

    >>> rng = np.random.default_rng(3)
    >>> copy = generator_of(json.loads(json.dumps(state_of(rng))))
    >>> bool(copy.random() == rng.random())
    True
    """
    generator = np.random.default_rng()
    generator.bit_generator.state = state
    return generator


def save_array(path: Path, array: Array) -> None:
    """Write an array as a whole."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    files.write(path, stream.getvalue())


def load_array(path: Path) -> Array:
    """The array of a file that :func:`save_array` wrote."""
    array: Array = np.load(path, allow_pickle=False)
    return array


def record_of(algorithm: DPFTSDE) -> dict[str, Any]:
    """The algorithm's fields, as JSON values."""
    return {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}


def _algorithm_of(record: Mapping[str, Any]) -> DPFTSDE:
    weights = record["weights"]
    rows = None if weights is None else tuple(map(tuple, weights))
    return DPFTSDE(**(dict(record) | {"weights": rows}))
