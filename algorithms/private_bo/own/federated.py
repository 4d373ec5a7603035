"""Federated agents: each optimises an objective of its own, and a noisy mean helps all of them.

The server, the plan and the calibration are those of DP-FTS-DE with one region and all agents in
every round (Dai, Low & Jaillet 2021); agents differ. One sends the posterior mean of its own data
alone, which is shorter than a draw and so needs less noise; and it takes the broadcast for the mean
of its prior, as far as its own data say that this makes them likelier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, OpenProbability, Positive, at_least
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.plan import PrivacyUnit
from dpaudit.project import Move, RunResult
from private_bo.federated import DPFTS, Server
from private_bo.own.agent import Agent, AgentSettings
from private_bo.own.studies import ConstantUser, OwnStudy, interleaved_users


@dataclass(frozen=True)
class FederatedStudy(OwnStudy):
    """Agents keep their data; the trusted server averages vectors and broadcasts with noise.

    An agent is protected over the whole run: its vectors may as well have been zero. Fields as in
    the base class, ``users`` being the agents, and:

    Attributes:
        users: N >= 2, the number of agents.
        delta: δ.
        rounds: how often the server broadcasts.
        evaluations: of each agent before every broadcast, and after the last.
        clip: S, to which vectors are shortened, in units of the range.
    """

    unit: ClassVar[PrivacyUnit] = PrivacyUnit("agent")

    users: Annotated[int, at_least(2)] = 100
    delta: OpenProbability = 1e-5
    rounds: Count = 3
    evaluations: Count = 4
    clip: Positive = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.kernels) > 1:
            raise InputError(f"kernels has {len(self.kernels)} entries; agents share one of them.")

    @cached_property
    def inner(self) -> DPFTS:
        """The published server, with the least noise that is certified for the claim."""
        size = self.maps[0].size
        return DPFTS(
            agents=self.users, features=size + size % 2, rounds=self.rounds, rate=1.0,
            clip=self.clip, delta=self.delta, sharp_rounds=0, fading_rounds=0,
        ).calibrated(self.epsilon)  # fmt: skip

    @cached_property
    def agent_settings(self) -> AgentSettings:
        """What an agent knows beforehand."""
        return AgentSettings(
            self.answers, self.deviation, self.answer_deviation, self.exploration,
            self.inner.features,
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        """That the list of agents is public, as in DP-FTS-DE."""
        inner = (each for each in self.inner.findings() if each.rule == "public-weights")
        return (*super().findings(), *inner)

    def server(self, ledger: Ledger) -> Server:  # type: ignore[override]
        """The trusted server: it sees vectors, and shows broadcasts."""
        return self.inner.server(validate.instance(Ledger, ledger=ledger))

    def agent(self, number: int, rng: np.random.Generator) -> Agent:
        """An agent's own device; all that it draws comes from ``rng``."""
        number = validate.integer_at_least(0, self.users - 1, number=number)
        validate.instance(np.random.Generator, rng=rng)
        return Agent(self.agent_settings, number, self.maps[0], rng)

    # -- run -------------------------------------------------------------------------------------

    def search(self, problem: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Any:
        """Agents evaluate, report, and receive, round by round; returns the last broadcast."""
        server = self.server(ledger)
        agents = [self.agent(n, own) for n, own in enumerate(rng.spawn(len(problem)))]
        for turn in range(self.rounds + 1):
            for agent, record in zip(agents, problem, strict=True):
                for _ in range(self.evaluations):
                    question = agent.ask()
                    agent.tell(question.number, self.measure(question.point, record))
            if turn < self.rounds:
                broadcast = server.round(turn, [agent.report(turn) for agent in agents])
                for agent in agents:
                    agent.receive(broadcast)
        return agents, broadcast

    def result(self, problem: Any, found: Any) -> RunResult:
        """What the last broadcast recommends; each agent's best is for the owner alone."""
        agents, broadcast = found
        common = self.maps[0].argmax(broadcast.vectors[0, : self.maps[0].size])
        owner = RunResult({"best of each agent": [agent.best().tolist() for agent in agents]})
        return RunResult(self.summary(common.tolist()), owner=owner)

    def neighbours(self, data: Any, rng: np.random.Generator) -> Any:
        """One agent zeroed: as far as vectors go, one that finds the middle everywhere."""
        for asked in interleaved_users(data, self.answers, rng):
            yield Move(asked, "every agent asked after others", hops=0)
        low, high = self.answers
        middle = ConstantUser((low + high) / 2)
        far = ConstantUser(high + 1e3 * (high - low))
        for place in dict.fromkeys((0, len(data) - 1, int(rng.integers(len(data))))):
            zeroed, other = [*data], [*data]
            zeroed[place], other[place] = middle, far
            yield Move(zeroed, f"agent {place} zeroed")
            yield Move(zeroed, f"agent {place}, with values far above, zeroed", True, base=other)
