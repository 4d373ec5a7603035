"""DP-FTS-DE, sealed: agents keep their objectives, and the server's vectors are handles."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit import RunResult, Table
from dpaudit.base.fields import Count, Interval, NonNegative, Positive, at_least
from private_bo.federated import AgentModel, Broadcast, Streams, dp_fts_de
from private_bo.federated.problems import unit_grid
from private_bo.federated.settings import OneRegion, Settings
from private_bo.own import federated as own_federated
from private_bo.sealed.agents import take_part
from private_bo.sealed.choices import packed
from private_bo.sealed.own_agents import evaluate
from private_bo.sealed.study import SealedProblem, SealedStudy

_STEP = 1e-9
"""To whose multiples what an agent sends is rounded."""


def _summed(
    data: Any,
    ledger: Any,
    at: str,
    function: Callable[..., Any],
    size: int,
    most: float,
    given: Any,
) -> Any:
    """The noisy sum of the vectors of sampled agents, entries within ±most, from a function."""
    sent = data.per_unit(
        function, shape=(size,), low=-most, high=most, step=_STEP, default=np.zeros(size),
        parameters=given, state="agent",
    )  # fmt: skip
    return ledger.sum(ledger.sample(sent, at=at), at=at)


@dataclass(frozen=True)
class DPFTSDE(SealedStudy, dp_fts_de.DPFTSDE):
    """DP-FTS-DE on a table of ``agent``, ``number``, ``point`` and ``value``.

    A row says what an agent's objective is at a point of the grid, the number of one from 0 on,
    and which agent that is, from 0 on: public weights and the agent's own draws follow from the
    number. An agent that says another one sends a vector of other weight, which is clipped to
    what the plan declares. All agents act in every round; those that are drawn are added up.

    Attributes:
        per_axis: the grid has so many values of each coordinate.
        dimensions: d of the grid.
        values: public range of an objective.
        step: to whose multiples values are rounded.
        observation_noise: standard deviation of what an agent observes.
    """

    functions: ClassVar[tuple[Callable[..., Any], ...]] = (take_part,)

    default_data: str = "agents.csv"  # type: ignore[misc]
    per_axis: Annotated[int, at_least(2)] = 1000
    dimensions: Count = 1
    values: Interval = (-1.0, 2.0)
    step: Positive = 1e-6
    observation_noise: NonNegative = 0.01

    @property
    def people(self) -> int:
        """N agents."""
        return self.agents

    def table(self) -> Table:
        """Agents, points, and values within the public range."""
        columns: dict[str, dict[str, Any]] = {
            "number": {"type": "integer", "range": [0, self.agents - 1]},
            "point": {"type": "integer", "range": [0, self.per_axis**self.dimensions - 1]},
            "value": {"type": "number", "range": list(self.values), "step": self.step},
        }
        return Table(self.default_data, "agent", columns)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Play every round; vectors leave as noisy sums."""
        settings = Settings(**{each.name: getattr(self, each.name) for each in fields(Settings)})
        limit = self.clip / math.sqrt(self.regions)
        public = {
            "limit": limit,
            "model": packed(AgentModel(settings, unit_grid(self.per_axis, self.dimensions))),
            "noise": self.observation_noise,
            "words": list(Streams.of(rng).entropy),
        }
        broadcast = Broadcast.none_yet(self.regions, self.features)
        size = broadcast.vectors.size
        for t, release in enumerate(self.releases):
            weights = self.public_weights.values[t] / self.rate
            most = float(weights.max()) * limit
            acting = {"turn": t, "received": broadcast.vectors, "weights": weights}
            total = _summed(data, ledger, release.at, take_part, size, most, public | acting)
            broadcast = Broadcast(t, np.reshape(total, (self.regions, self.features)))
            data = data.group_rows(1)  # as an agent keeps its objective in its state
        return RunResult(self.summary(self.default_data))


@dataclass(frozen=True)
class DPFTS(DPFTSDE):
    """DP-FTS on such a table: one region, the whole domain."""

    regions: OneRegion = 1


@dataclass(frozen=True)
class FederatedStudy(SealedProblem, own_federated.FederatedStudy):
    """A federated study on a table of ``agent``, ``number`` and columns of your own.

    Fields as in the study and in the base; the number of an agent is from 0 on. What agents find
    after the last broadcast stays with them, and is not computed.
    """

    default_data: str = "agents.csv"  # type: ignore[misc]
    users: Annotated[int, at_least(2)] = 100

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:  # type: ignore[override]
        """What an agent does, and the objective that it asks."""
        return (evaluate, *super().functions)

    def table(self) -> Table:
        """Agents, their numbers and their columns."""
        number = {"type": "integer", "range": [0, self.users - 1]}
        return Table(self.default_data, "agent", {"number": number, **self.columns})

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Agents evaluate, report and receive, round by round."""
        inner, own = self.inner, self.asked
        weights = inner.public_weights.values[:, 0] / inner.rate
        self.maps[0].argmax(np.zeros(self.maps[0].size))  # computes what it keeps
        public = {
            "objective": [own.__module__, own.__qualname__],
            "features": packed(self.maps[0]),
            "settings": packed(self.agent_settings),
            "draws": [json.dumps(each.bit_generator.state) for each in rng.spawn(self.users)],
            "evaluations": self.evaluations,
            "clip": self.clip,
        }
        broadcast = Broadcast.none_yet(1, inner.features)
        for turn, release in enumerate(inner.releases):
            weight = float(weights[turn].max())
            acting = {"turn": turn, "received": broadcast.vectors, "weight": weight}
            given, most = public | acting, weight * self.clip
            total = _summed(data, ledger, release.at, evaluate, inner.features, most, given)
            broadcast = Broadcast(turn, np.reshape(total, (1, inner.features)))
        common = self.maps[0].argmax(broadcast.vectors[0, : self.maps[0].size])
        return RunResult(self.summary(common.tolist()))
