"""What all federated algorithms have in common: public configuration, play, and result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.project import RunResult
from private_bo.federated.agent import AgentModel, Agents
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.problems.base import FederatedProblem
from private_bo.federated.problems.synthetic import synthetic
from private_bo.federated.problems.tuning import digits, landmines
from private_bo.federated.server import Aggregator, Transport
from private_bo.federated.streams import Streams
from private_bo.federated.weights import Weights, contrasts
from private_bo.gp.types import Array

__all__ = ["Federation", "InProcess", "Reliance", "Selected", "WithoutAgent", "sensible"]

_SMALLEST, _LARGEST = 1e-6, 1e6
_MOST_FEATURES = 10_000
_MOST_ROUNDS = 1_000_000
_MOST_NUMBERS = 20_000_000
"""In one array: 160 MB."""


def _shown(count: int) -> str:
    """A count in a sentence, however large."""
    return str(count) if count < 10**15 else "above 1e15"


def sensible(**field: Any) -> float:
    """A number in [1e-6, 1e6]: none of its squares and quotients leaves the range of floats.

    Raises:
        InputError: if it is outside.
    """
    ((name, value),) = field.items()
    number = validate.positive(**field)
    if not _SMALLEST <= number <= _LARGEST:
        raise InputError(f"{name} is {value!r}; it must be from 1e-6 to 1e6.")
    return number


class Reliance(StrEnum):
    """1 − p_t: with which probability an agent follows the broadcast in iteration t."""

    INVERSE_ROOT = "1/sqrt(t)"
    """Of the synthetic experiments."""
    INVERSE = "1/t"
    """Of the real-world experiments."""
    INVERSE_SQUARE = "1/t^2"
    """As the regret theorem has it."""
    NEVER = "0"
    """Plain Thompson sampling."""

    def shares(self, rounds: int) -> Array:
        """1 − p_t by t = 0…T, (T + 1,); the first, which nobody needs, is 0."""
        t = np.arange(1.0, rounds + 1)
        powers = {Reliance.INVERSE_ROOT: 0.5, Reliance.INVERSE: 1.0, Reliance.INVERSE_SQUARE: 2.0}
        power = powers.get(self)
        later = np.zeros(rounds) if power is None else t**-power
        return np.concatenate([[0.0], later])


@dataclass(frozen=True)
class WithoutAgent:
    """The neighbour of a problem: one agent's contributions are zero; N and weights stay.

    Attributes:
        problem: with the agent.
        agent: whose vectors are taken for zero in every round.

    Raises:
        InputError: if there is no such agent.
    """

    problem: FederatedProblem
    agent: int

    def __post_init__(self) -> None:
        validate.integer_at_least(0, agent=self.agent)
        if self.agent >= self.problem.agents:
            raise InputError(f"agent is {self.agent}; it must be below {self.problem.agents}.")


class InProcess:
    """The transport to agents in this process.

    Args:
        agents: all of them.
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def exchange(self, broadcast: Broadcast) -> list[Report]:
        """Every agent acts and reports."""
        self._agents.act(broadcast)
        return self._agents.reports(broadcast.round + 1)

    def finish(self, broadcast: Broadcast) -> None:
        """Every agent acts once more."""
        self._agents.act(broadcast)


class Selected:
    """A transport that loses what a rule does not keep, such as an agent that has stopped.

    Args:
        transport: that would have brought it.
        keep: whether something that was sent arrives.
    """

    def __init__(self, transport: Transport, keep: Callable[[object], bool]) -> None:
        self._transport = transport
        self._keep = keep

    def exchange(self, broadcast: Broadcast) -> list[object]:
        """What is left of it."""
        return list(filter(self._keep, self._transport.exchange(broadcast)))

    def finish(self, broadcast: Broadcast) -> None:
        """Nothing is lost here."""
        self._transport.finish(broadcast)


@dataclass(frozen=True)
class Federation:
    """Base: N agents that optimise objectives of their own and help each other to explore.

    The defaults are the setting of the synthetic experiments. Values that the paper leaves open
    (length scales, units of observations) are public constants here; only an agent's own process,
    which no other party sees, is fitted to that agent's data.

    Attributes:
        agents: N.
        regions: P, the number of sub-regions.
        features: M, even: a cosine and a sine for each random frequency.
        rounds: T, the queries of each agent after its initial ones.
        initial: N_init, the initial points of each agent, in its own sub-region.
        reliance: 1 − p_t.
        contrast: a, by how much an agent's logit is larger in its own sub-region.
        sharp_rounds: rounds at temperature 1.
        fading_rounds: further rounds, in which the contrast goes evenly to 0; later ones have none.
        weights: φ_n^(i) in all rounds, P rows of N numbers; None for the schedule above.
        shared_scale: length scale of the random features φ.
        own_scale: length scale of an agent's own process; where that is refitted, the middle one
            of the candidates, which go from a quarter to four times as much.
        refit_every: after how many of its own observations, counted from the initial ones, an
            agent chooses length scale and noise variance of its own process anew, the likeliest
            among public candidates; None keeps ``own_scale`` and ``noise_variance``. Data and
            choice stay with the agent, and so cost no privacy.
        beta: β_t of Algorithm 2, line 6, the same in all rounds: by how much the deviation of a
            draw from the own process is multiplied; 1 is a draw from the posterior itself.
        offset: what agents take off observations.
        scale: what they then divide by.
        standardise: whether each agent takes the mean and the deviation of its own observations
            instead. That is private to it; vectors are clipped in any case.
        noise_variance: λ, variance of an observation in those units. For the own process it is
            where refitted the largest candidate, beside a tenth and a hundredth of it.
        feature_seed: of φ.

    Raises:
        InputError: if a field is out of its range.
    """

    default_data: ClassVar[str] = "synthetic"

    agents: int = 200
    regions: int = 2
    features: int = 50
    rounds: int = 40
    initial: int = 10
    reliance: Reliance = Reliance.INVERSE_ROOT
    contrast: float = 15.0
    sharp_rounds: int = 10
    fading_rounds: int = 30
    weights: tuple[tuple[float, ...], ...] | None = None
    shared_scale: float = 0.03
    own_scale: float = 0.03
    refit_every: int | None = 5
    beta: float = 1.0
    offset: float = 0.5
    scale: float = 0.25
    standardise: bool = False
    noise_variance: float = 0.01
    feature_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("agents", "regions", "rounds", "initial"):
            self._set(name, validate.integer_at_least(1, **{name: getattr(self, name)}))
        for name in ("sharp_rounds", "fading_rounds", "feature_seed"):
            self._set(name, validate.integer_at_least(0, **{name: getattr(self, name)}))
        for name in ("shared_scale", "own_scale", "scale", "noise_variance", "beta"):
            self._set(name, sensible(**{name: getattr(self, name)}))
        self._set("contrast", validate.non_negative(contrast=self.contrast))
        self._set("offset", validate.finite(offset=self.offset))
        if abs(self.offset) > _LARGEST:
            raise InputError(f"offset is {self.offset:g}; it must be from -1e6 to 1e6.")
        if self.refit_every is not None:
            refit = validate.integer_at_least(1, refit_every=self.refit_every)
            self._set("refit_every", refit)
        self._set("reliance", validate.member(Reliance, reliance=self.reliance))
        if not isinstance(self.standardise, bool):
            raise InputError(f"standardise is {self.standardise!r}; it must be true or false.")
        validate.integer_at_least(2, features=self.features)
        if self.features % 2:
            raise InputError(
                f"features is {self.features}; it must be even, for cosines and sines."
            )
        if self.regions > self.agents:
            raise InputError(
                f"regions is {self.regions}; it must be at most the number of agents, "
                f"{self.agents}, so that every sub-region has an agent."
            )
        self._require_size()
        self._require_weights()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _require_size(self) -> None:
        """Refuse what no memory holds, before anything of that size is made."""
        for name in ("sharp_rounds", "fading_rounds"):
            if getattr(self, name) > _MOST_ROUNDS:
                raise InputError(
                    f"{name} is {_shown(getattr(self, name))}; it must be at most {_MOST_ROUNDS}."
                )
        if self.features > _MOST_FEATURES:
            raise InputError(
                f"features is {_shown(self.features)}; it must be at most {_MOST_FEATURES}."
            )
        queries = self.initial + self.rounds
        products = {
            "agents × regions × rounds": self.agents * self.regions * self.rounds,
            "regions × features × rounds": self.regions * self.features * self.rounds,
            "agents × (initial + rounds)²": self.agents * queries**2,
            "agents × (initial + rounds) × features": self.agents * queries * self.features,
        }
        for product, size in products.items():
            if size > _MOST_NUMBERS:
                raise InputError(
                    f"{product} is {_shown(size)}; it must be at most {_MOST_NUMBERS}."
                )

    def _require_weights(self) -> None:
        found = self.public_weights
        if (found.regions, found.agents) != (self.regions, self.agents):
            raise InputError(
                f"weights has shape {(found.regions, found.agents)}; it must be "
                f"{(self.regions, self.agents)}, sub-regions by agents."
            )

    @property
    def exchanges(self) -> int:
        """How often agents report: T, for t = 0…T − 1."""
        return self.rounds

    @cached_property
    def public_weights(self) -> Weights:
        """φ_n^(i) of every round."""
        if self.weights is not None:
            return Weights.constant(self.weights, self.exchanges)
        contrast = contrasts(
            self.exchanges,
            contrast=self.contrast,
            sharp=self.sharp_rounds,
            fading=self.fading_rounds,
        )
        return Weights.softmax(contrast, agents=self.agents, regions=self.regions)

    # -- parties ---------------------------------------------------------------------------------

    def model(self, grid: Array) -> AgentModel:
        """What every agent knows beforehand, on a public grid (G, d).

        Raises:
            InputError: if a sub-region holds no point of the grid.
        """
        return AgentModel.on(
            grid,
            agents=self.agents,
            regions=self.regions,
            features=self.features,
            feature_seed=self.feature_seed,
            shared_scale=self.shared_scale,
            own_scale=self.own_scale,
            refit_every=self.refit_every,
            beta=self.beta,
            initial=self.initial,
            own_share=1.0 - self.reliance.shares(self.rounds),
            offset=self.offset,
            scale=self.scale,
            standardise=self.standardise,
            noise_variance=self.noise_variance,
        )

    def team(
        self, problem: FederatedProblem, streams: Streams, numbers: Iterable[int] | None = None
    ) -> Agents:
        """The agents of these numbers (all of them by default) in this process."""
        chosen = list(range(self.agents) if numbers is None else numbers)
        generators = [streams.agent(number) for number in chosen]
        return Agents(self.model(problem.domain), problem.observe, chosen, generators)

    def play(self, server: Aggregator, transport: Transport) -> Broadcast:
        """Algorithm 1: every round between server and agents; returns the last broadcast."""
        broadcast = Broadcast.none_yet(self.regions, self.features)  # line 1
        for turn in range(self.exchanges):  # line 2
            reports = transport.exchange(broadcast)  # lines 3 and 4
            broadcast = server.round(turn, reports)  # lines 5 to 12
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
            return self._fitting(landmines(path, seed=int(rng.integers(2**31))))
        raise InputError(
            f"data is {source!r:.80}; it must be synthetic, digits, landmines, or the path of a "
            ".mat file of landmine fields."
        )

    def _fitting(self, problem: Any) -> FederatedProblem:
        if not isinstance(problem, FederatedProblem):
            raise InputError(f"data is a {type(problem).__name__}; it must be a FederatedProblem.")
        if problem.agents != self.agents:
            raise InputError(
                f"data has {problem.agents} agents; agents is {self.agents}, so set it to that."
            )
        return problem

    def result(self, problem: FederatedProblem, agents: Agents) -> RunResult:
        """Simple regret of all agents after every round, for evaluation."""
        regret = simple_regret(problem, agents, self.initial)
        return RunResult(
            summary={
                "algorithm": type(self).__name__,
                "problem": problem.name,
                "agents": self.agents,
                "rounds": self.rounds,
                "rounds in which an agent followed the broadcast": sum(map(bool, agents.received)),
                "queries that followed a broadcast": sum(agents.received),
                "final simple regret": float(regret[:, -1].mean()),
            },
            series={"simple regret": regret.mean(axis=0).tolist()},
        )


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
