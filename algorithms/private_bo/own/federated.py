"""Federated agents: each optimises an objective of its own, and a noisy mean helps all of them.

The server, the plan and the calibration are those of DP-FTS-DE with one region and all agents in
every round (Dai, Low & Jaillet 2021); agents differ. One sends the posterior mean of its own data
alone, which is shorter than a draw and so needs less noise; and it takes the broadcast for the mean
of its prior, as far as its own data say that this makes them likelier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from private_bo.federated import DPFTS, Broadcast, Report, Server
from private_bo.federated.draws import posterior_draws
from private_bo.gp.types import Array
from private_bo.own.server import LandmarkFeatures, Question
from private_bo.own.studies import ConstantUser, OwnStudy, interleaved_users, scale_answer

_TRUST = (0.0, 1.0, 2.0, 4.0)
"""Multiples of the broadcast that an agent tries: means of few data are too short."""
_SPREAD = (1.0, 0.5, 0.25)
"""Of the prior deviation about it."""
_LEAST_VARIANCE = 1e-6


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

    def findings(self) -> tuple[Finding, ...]:
        """That the list of agents is public, as in DP-FTS-DE."""
        return tuple(each for each in self.inner.findings() if each.rule == "public-weights")

    def server(self, ledger: Ledger) -> Server:  # type: ignore[override]
        """The trusted server: it sees vectors, and shows broadcasts."""
        return self.inner.server(validate.instance(Ledger, ledger=ledger))

    def agent(self, number: int, rng: np.random.Generator) -> Agent:
        """An agent's own device; all that it draws comes from ``rng``."""
        number = validate.integer_at_least(0, self.users - 1, number=number)
        validate.instance(np.random.Generator, rng=rng)
        return Agent(self, number, self.maps[0], rng)

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


@dataclass(eq=False)
class Agent:
    """One agent: asks, is told, reports, receives. All that it holds is its own.

    Attributes:
        study: public configuration.
        number: from 0.
        features: Φ, the same for all.
        rng: its own.
    """

    study: FederatedStudy
    number: int
    features: LandmarkFeatures
    rng: np.random.Generator
    _asked: list[Array] = field(default_factory=list, init=False, repr=False)
    _told: dict[int, float] = field(default_factory=dict, init=False, repr=False)
    _received: Array | None = field(default=None, init=False, repr=False)

    def ask(self) -> Question:
        """Where to evaluate next; earlier questions may be unanswered."""
        point = self.features.argmax(self._theta(self.study.exploration))
        self._asked.append(point)
        return Question(len(self._asked) - 1, self.number, point)

    def tell(self, number: int, value: Any) -> None:
        """Learn what was found for a question.

        Raises:
            InputError: if it was not asked, or has been told, or the value is no finite number.
        """
        if number not in range(len(self._asked)) or number in self._told:
            raise InputError(f"number is {number!r}; it must be of a question that is unanswered.")
        self._told[number] = scale_answer(value, self.study.answers)

    def report(self, turn: int) -> Report:
        """What the server is sent: the posterior mean of the own data alone. Private.

        Args:
            turn: the round, from 0.
        """
        mean = self._posterior(np.zeros(self.features.size), self.study.deviation, 0.0)
        return Report(turn, self.number, np.pad(mean, (0, self.study.inner.features - mean.size)))

    def receive(self, broadcast: Broadcast) -> None:
        """Take a broadcast for the mean of the prior, from now on.

        Raises:
            InputError: if it is none, or one of another study.
        """
        vectors = validate.instance(Broadcast, broadcast=broadcast).vectors
        if vectors.shape != (shape := (1, self.study.inner.features)):
            raise InputError(f"broadcast has vectors of shape {vectors.shape}; it must be {shape}.")
        self._received = vectors[0, : self.features.size]

    def best(self) -> Array:
        """The point of largest posterior mean, (d,). Private."""
        return self.features.argmax(self._theta(0.0))

    def _theta(self, exploration: float) -> Array:
        return self._posterior(*self._prior(), exploration)

    @property
    def _data(self) -> tuple[Array, Array]:
        """Features (t, m) and scaled answers (t,)."""
        places = sorted(self._told)
        if not places:
            return np.empty((0, self.features.size)), np.empty(0)
        phi = self.features(np.array([self._asked[each] for each in places]))
        return phi, np.array([self._told[each] for each in places])

    @property
    def _variance(self) -> float:
        return max(self.study.answer_deviation**2, _LEAST_VARIANCE)

    def _prior(self) -> tuple[Array, float]:
        """Mean and deviation of the prior: the likeliest multiple of the broadcast."""
        deviation, nothing = self.study.deviation, np.zeros(self.features.size)
        if self._received is None:
            return nothing, deviation
        phi, seen = self._data
        gram, expected = phi @ phi.T, phi @ self._received
        best, chosen = -math.inf, (nothing, deviation)
        for share in _SPREAD:
            root = np.linalg.cholesky(
                (share * deviation) ** 2 * gram + self._variance * np.eye(len(seen))
            )
            volume = 2 * float(np.log(root.diagonal()).sum())
            for trust in _TRUST:
                misfit = np.linalg.solve(root, seen - trust * expected)
                value = -float(misfit @ misfit) - volume
                if value > best:
                    best, chosen = value, (trust * self._received, share * deviation)
        return chosen

    def _posterior(self, prior: Array, deviation: float, exploration: float) -> Array:
        """A draw of θ given the own data, its deviation times ``exploration``."""
        phi, seen = self._data
        draws = [exploration * self.rng.normal(size=(1, n)) for n in reversed(phi.shape)]
        missing, variance = (seen - phi @ prior)[None], np.array([self._variance])
        moved = posterior_draws(deviation * phi[None], missing, variance, *draws)
        return np.asarray(prior + deviation * moved[0])
