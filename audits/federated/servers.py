"""The running server in the game, as it is and with a mistake in it; and the whole algorithm.

In the whole algorithm all other agents optimise objectives of their own and act on what they
receive. The adversary knows the direction of the canary's vectors at most, so the bounds are below
those of the white-box game.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.catalogue.entry import Entry
from audits.federated.game import (
    CanaryLikelihoodRatio,
    canary_pair,
    certified_claim,
    landmines,
    proved_curve,
    proved_epsilon,
)
from dpaudit import Gaussian, Ledger, Plan
from private_bo.federated import (
    DPFTSDE,
    AgentModel,
    Agents,
    Broadcast,
    FederatedProblem,
    InProcessTransport,
    Reliance,
    Report,
    Server,
    Streams,
    synthetic,
)
from private_bo.federated.algorithms import Release
from private_bo.gp.types import single_threaded

Floats = NDArray[np.float64]


class Others(Enum):
    """What all agents but the canary do. To a right server it makes no difference."""

    ZEROS = "send zeros"
    SILENCE = "send nothing"


@dataclass(eq=False)
class _Everyone(Server):
    """Takes every agent, but divides by the stated rate."""

    def subsampled(self, turn: int) -> list[int]:
        """Everybody."""
        return list(range(self.weights.agents))


class _Silent(Server):
    """Releases nothing where it has nothing to release."""

    def subsampled(self, turn: int) -> list[int]:
        """Drawn beside the ledger, which refuses a sample that no release follows."""
        noise, at = self.ledger.noise, self.releases[turn].at
        assert noise is not None
        (use,) = (use for use in self.ledger.plan.invocations if use.at == at)
        return noise.sample(use, [""] * self.weights.agents)

    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """As in the base class, but for empty rounds."""
        vectors = self.accepted(turn, reports)
        sample = self.subsampled(turn)
        value = self.aggregate(turn, {n: vectors[n] for n in sample if n in vectors})
        if vectors.keys().isdisjoint(sample):
            return Broadcast(turn, value)
        release = self.releases[turn]
        noisy = self.ledger.release(release.mechanism, value.ravel(), at=release.at)
        return Broadcast(turn, np.asarray(noisy).reshape(value.shape))


class _ClippedToWhole(Server):
    """Clips to S instead of S/√P."""

    @property
    def limit(self) -> float:
        """S."""
        return self.clip


@dataclass(frozen=True)
class Served(DPFTSDE):
    """The algorithm, whose audit runs its server with a real ledger, one run after the other.

    Attributes:
        others: what all agents but the canary do. Among agents that send nothing, a canary that
            takes no part sends nothing too.
    """

    server_class: ClassVar[type[Server]] = Server

    features: int = 2
    others: Others = Others.ZEROS

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Broadcasts (size, T, P, M), with the canary's vectors along the first entry.

        The canary sends vectors of norm S: clipping is the server's task.
        """
        agent, present = self.canary(data)
        messages = [self._reports(turn, agent, present) for turn in range(self.exchanges)]
        return np.array([self._transcript(messages, rng) for _ in range(size)])

    def _reports(self, turn: int, agent: int, present: bool) -> list[Report]:
        own = np.zeros(self.features)
        own[0] = self.clip if present else 0.0
        canary = Report(turn, agent, own)
        if self.others is Others.SILENCE:
            return [canary] if present else []
        zero = np.zeros(self.features)
        return [Report(turn, n, zero) if n != agent else canary for n in range(self.agents)]

    def _transcript(self, messages: list[list[Report]], rng: np.random.Generator) -> Floats:
        # The ledger is not closed: it would find out by itself which releases were left out.
        server = self.server(Ledger(self.running_plan(), rng=rng))
        return np.array(
            [server.round(turn, reports).vectors for turn, reports in enumerate(messages)]
        )

    def running_plan(self) -> Plan:
        """What the ledger lets through: the plan, unless the noise is wrong."""
        return self.plan()

    def true_plan(self) -> Plan | None:
        """A plan of what really runs; None where no noise hides it."""
        return self.plan()


@dataclass(frozen=True)
class EveryoneSampled(Served):
    """States Poisson sampling, and takes every agent in every round."""

    server_class: ClassVar[type[Server]] = _Everyone

    def true_plan(self) -> Plan:
        """The same noise on sums of all agents."""
        return Plan.of(*(replace(part, sampling=None) for part in self.plan().invocations))


@dataclass(frozen=True)
class SilentWhenEmpty(Served):
    """Adds no noise where none of the sampled agents has sent anything.

    Among agents that send nothing, the noise then shows that the canary takes part.
    """

    server_class: ClassVar[type[Server]] = _Silent

    others: Others = Others.SILENCE

    def true_plan(self) -> None:
        """None: without noise, neighbours have disjoint broadcasts."""


@dataclass(frozen=True)
class ForgottenLargestWeight(Served):
    """Noise z S/(qN), as for equal weights: φ_max is taken for 1/N."""

    @cached_property
    def _wrong(self) -> Gaussian:
        return Gaussian(self.noise_multiplier * self.clip / (self.rate * self.agents))

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The same noise in every round, and less than declared."""
        labels = [release.at for release in super().releases]
        return tuple(Release(self._wrong, at) for at in labels)

    def running_plan(self) -> Plan:
        """The plan with the noise that is really added."""
        parts = self.plan().invocations
        return Plan.of(*(replace(part, mechanism=self._wrong) for part in parts))

    def true_plan(self) -> Plan:
        """What the ledger let through."""
        return self.running_plan()


@dataclass(frozen=True)
class ClippedToWhole(Served):
    """Clips to S where P vectors of norm S/√P go into the joint one."""

    server_class: ClassVar[type[Server]] = _ClippedToWhole

    def true_plan(self) -> Plan:
        """√P times the sensitivity."""
        factor = math.sqrt(self.regions)
        parts = self.plan().invocations
        return Plan.of(*(replace(p, sensitivity=p.sensitivity * factor) for p in parts))


class _Planted:
    """A transport on which one agent's reports are exchanged for a canary's, or lost."""

    def __init__(self, inner: InProcessTransport, canary: int, vector: Floats | None) -> None:
        self._inner = inner
        self._canary = canary
        self._vector = vector
        self.seen: list[Floats] = []

    def exchange(self, broadcast: Broadcast) -> list[Report]:
        """What arrives, after what was broadcast has been noted."""
        if broadcast.round >= 0:
            self.seen.append(broadcast.vectors)
        reports = [r for r in self._inner.exchange(broadcast) if r.agent != self._canary]
        if self._vector is None:
            return reports
        return [*reports, Report(broadcast.round + 1, self._canary, self._vector)]

    def finish(self, broadcast: Broadcast) -> None:
        """The last broadcast is seen too."""
        self.seen.append(broadcast.vectors)


@dataclass(frozen=True)
class EndToEnd(Served):
    """A small federation, so that thousands of whole runs take seconds.

    The other agents' objectives are the same in every run; everything else is drawn afresh.
    """

    agents: int = 6
    regions: int = 2
    features: int = 4
    rounds: int = 10
    initial: int = 3
    rate: float = 0.5
    reliance: Reliance = Reliance.INVERSE_ROOT

    @cached_property
    def problem(self) -> FederatedProblem:
        """Public here: the adversary may know all objectives but the canary's."""
        return synthetic(self.agents, points=40, length_scale=0.1)

    @cached_property
    def _shared(self) -> AgentModel:
        """What every agent of every run knows beforehand."""
        return AgentModel(self, self.problem.domain)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Broadcasts of ``size`` runs, (size, T, P, M); the canary sends S along the first entry.

        A canary that takes no part sends nothing.
        """
        agent, present = self.canary(data)
        vector = np.eye(1, self.features)[0] * self.clip if present else None
        with single_threaded():
            return np.array([self._run(agent, vector, rng) for _ in range(size)])

    def _run(self, canary: int, vector: Floats | None, rng: np.random.Generator) -> Floats:
        streams = Streams.of(rng)
        generators = [streams.agent(n) for n in range(self.agents)]
        agents = Agents(self._shared, self.problem.observe, range(self.agents), generators)
        transport = _Planted(InProcessTransport(agents), canary, vector)
        with Ledger(self.running_plan(), rng=rng) as ledger:
            self.play(self.server(ledger), transport)
        return np.array(transport.seen)


# -- servers in the form of the catalogue ----------------------------------------------------------


def small(kind: type[Served] = Served, others: Others | None = None) -> Served:
    """A server of the landmine setting with 10 rounds, so that a run takes a millisecond."""
    public: dict[str, Any] = {"agents": 29, "regions": 4, "rate": 0.35, "clip": 22.0, "rounds": 10}
    return kind(**public) if others is None else kind(**public, others=others)


def entries() -> tuple[Entry, ...]:
    """Running servers, right and wrong, in the form of the catalogue of mechanisms."""
    wrong = (
        ("everyone sampled", EveryoneSampled),
        ("no noise on empty rounds", SilentWhenEmpty),
        ("φ_max forgotten", ForgottenLargestWeight),
        ("clipped to S, not S/√P", ClippedToWhole),
    )
    right = (
        _entry("simulated game, T = 40", landmines(), 10_000),
        _entry("server, others send zeros", small(others=Others.ZEROS), 300),
        _entry("server, others send nothing", small(others=Others.SILENCE), 1_000),
        _entry("whole algorithm, honest agents", EndToEnd(), 200),
    )
    return (*(_entry(name, small(kind, Others.SILENCE), 1_000) for name, kind in wrong), *right)


def _entry(name: str, subject: DPFTSDE, runs: int) -> Entry:
    claim, pair = certified_claim(subject), canary_pair(subject)
    plan = subject.true_plan() if isinstance(subject, Served) else subject.plan()
    true = math.inf if plan is None else proved_epsilon(plan, claim.delta)
    return Entry(
        name,
        plan == subject.plan(),
        claim,
        pair.x,
        pair.x_prime,
        true,
        runs,
        subject.audit_release,
        proved_curve(subject),
        CanaryLikelihoodRatio.of(subject),
    )
