"""DP-FTS-DE of Dai, Low & Jaillet 2021: the server's loop, and transports within one process.

Algorithm 1 is :func:`central_server` (lines 1 to 4) with :meth:`Server.round` (lines 5 to 12), and
Algorithm 2 :meth:`Agents.act` (lines 1 to 9) with :meth:`Agents.reports` (line 10). Line 13 of
Algorithm 1, the privacy loss, is known beforehand: it is the plan's. Before the loop stands what a
server needs beside: judging reports, and clipping.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.plan import FixedSizeSampling, Invocation, PoissonSampling
from private_bo.federated.agents import Agents
from private_bo.federated.draws import clip_to_norm
from private_bo.federated.settings import Broadcast, Report, Weights
from private_bo.gp.types import Array


class Transport(Protocol):
    """What carries the messages of Algorithms 1 and 2."""

    def exchange(self, broadcast: Broadcast) -> Iterable[object]:
        """Give the agents ω_{t-1}, and return what they sent for iteration t = round + 1.

        Some agents may not answer, and some may send what is not asked for: the server judges.
        """

    def finish(self, broadcast: Broadcast) -> None:
        """Give the agents the last broadcast that they act on; they send nothing more."""


class Refusal(StrEnum):
    """Why the server takes no notice of something it was sent."""

    MALFORMED = "malformed"
    """No report at all."""
    WRONG_ROUND = "wrong round"
    UNKNOWN_AGENT = "unknown agent"
    DUPLICATE = "duplicate"
    """The agent has been heard in this round; the first report counts."""
    WRONG_DIMENSION = "wrong dimension"
    NOT_FINITE = "not finite"


@dataclass(eq=False)
class Aggregator(ABC):
    """Base: judges what arrives, counts what it refuses, and answers with a broadcast.

    What it counts depends on the data without noise: it stays with whoever runs the server.

    Attributes:
        weights: φ_n^(i) of every round, public.
        features: M.
        refused: how much was refused, by reason.
        missing: from how many agents nothing usable came, round by round.
    """

    weights: Weights
    features: int
    refused: Counter[Refusal] = field(default_factory=Counter, init=False)
    missing: list[int] = field(default_factory=list, init=False)

    @abstractmethod
    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Lines 5 to 12 of Algorithm 1: from the reports of iteration t to ω_t^joint."""

    def accepted(self, turn: int, reports: Iterable[object]) -> dict[int, Array]:
        """ω_n of each agent that sent a proper one, (M,); all else is counted and forgotten."""
        vectors: dict[int, Array] = {}
        if not isinstance(reports, Iterable):
            raise InputError(f"reports is a {type(reports).__name__}; it must be a list of them.")
        for report in reports:
            reason = self._reason(turn, report, vectors)
            if reason is not None:
                self.refused[reason] += 1
            elif isinstance(report, Report):
                vectors[report.agent] = report.vector
        self.missing.append(self.weights.agents - len(vectors))
        return vectors

    def _reason(self, turn: int, report: object, known: Mapping[int, Array]) -> Refusal | None:
        if not isinstance(report, Report):
            return Refusal.MALFORMED
        if report.round != turn:
            return Refusal.WRONG_ROUND
        if not 0 <= report.agent < self.weights.agents:
            return Refusal.UNKNOWN_AGENT
        if report.agent in known:
            return Refusal.DUPLICATE
        if report.vector.shape != (self.features,):
            return Refusal.WRONG_DIMENSION
        if not np.isfinite(report.vector).all():
            return Refusal.NOT_FINITE
        return None


# -- Algorithm 1 ---------------------------------------------------------------------------------


def central_server(server: Aggregator, transport: Transport, iterations: int) -> Broadcast:
    """Lines 1 to 4 and 12 of Algorithm 1; returns the last broadcast.

    Args:
        server: answers the reports of an iteration.
        transport: brings broadcasts to the agents and reports to the server.
        iterations: how often; the print has T + 1, of which no agent acts on the last.
    """
    joint = Broadcast.none_yet(server.weights.regions, server.features)  # line 1
    for t in range(iterations):  # line 2
        reports = transport.exchange(joint)  # lines 3-4, and 12 of the iteration before
        joint = server.round(t, reports)  # lines 5-12
    return joint


@dataclass(eq=False)
class Server(Aggregator):
    """The central server. It alone sees reports; every round it makes one release by the ledger.

    A round's noise is drawn whoever reports and whoever is sampled: for an empty sample as well.
    An agent that sends nothing usable counts as the zero vector, which is the neighbour that the
    claim protects; so the accounting does not depend on who answers.

    Attributes:
        releases: the invocation of every round.
        sampling: how agents are sampled.
        clip: S; vectors are clipped to S/√P.
        ledger: where every round is sampled and released; the samples are as secret as its noise.
    """

    releases: Sequence[Invocation]
    sampling: PoissonSampling | FixedSizeSampling
    clip: float
    ledger: Ledger

    @property
    def rate(self) -> float:
        """q: with which probability an agent is sampled."""
        if isinstance(self.sampling, FixedSizeSampling):
            return self.sampling.size / self.sampling.population
        return self.sampling.rate

    @property
    def limit(self) -> float:
        """S/√P, the largest norm of a vector that is not clipped."""
        return self.clip / float(np.sqrt(self.weights.regions))

    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Subsample, clip, weigh, add noise (lines 5 to 12).

        Args:
            turn: t, from 0, each once and in order.
            reports: what arrived, in any order.

        Raises:
            InputError: if it is not the next round that is declared. Nothing is drawn then.
        """
        t = self._next(turn)
        vectors = self.accepted(t, reports)
        names = [f"agent {n}" for n in range(self.weights.agents)]
        sample = self.ledger.sample(names, at=self.releases[t].at)  # line 6; it may be empty
        total = self.aggregate(t, {n: vectors[n] for n in sample if n in vectors})
        release = self.releases[t]
        noisy = self.ledger.release(release.mechanism, total.ravel(), at=release.at)  # line 11
        return Broadcast(t, np.asarray(noisy).reshape(total.shape))  # line 12

    def aggregate(self, turn: int, vectors: Mapping[int, Array]) -> Array:
        """Σ_n (φ_n^(i)/q) ω̂_n over the sampled, for all sub-regions i at once, (P, M)."""
        weights = self.weights.values[turn]
        total = np.zeros((len(weights), self.features))  # line 5
        for n in sorted(vectors):  # lines 7-8, in a fixed order: that of arrival changes no sum
            shortened = clip_to_norm(vectors[n], self.limit)  # line 9
            total += np.outer(weights[:, n] / self.rate, shortened)  # line 10
        return total

    def _next(self, turn: int) -> int:
        """The turn, if it is the next one."""
        following = len(self.missing)
        number = validate.integer_at_least(0, turn=turn)
        if number != following or number >= len(self.releases):
            raise InputError(
                f"turn is {turn!r}; {len(self.releases)} rounds are declared, and the next one is "
                f"{following}."
            )
        return number


@dataclass(frozen=True, eq=False)
class InProcessTransport:
    """The transport to agents in this process.

    Attributes:
        agents: all of them.
    """

    agents: Agents

    def exchange(self, broadcast: Broadcast) -> list[Report]:
        """Every agent acts and reports."""
        self.agents.act(broadcast)
        return self.agents.reports(broadcast.round + 1)

    def finish(self, broadcast: Broadcast) -> None:
        """Every agent acts once more."""
        self.agents.act(broadcast)


@dataclass(frozen=True, eq=False)
class CanaryTransport:
    """A transport that brings one agent's report, the same in every round, and no other.

    Attributes:
        agent: who reports.
        vector: what.
    """

    agent: int
    vector: Array

    def exchange(self, broadcast: Broadcast) -> list[Report]:
        """The one report."""
        return [Report(broadcast.round + 1, self.agent, self.vector)]

    def finish(self, broadcast: Broadcast) -> None:
        """Nobody is there to act."""


@dataclass(frozen=True, eq=False)
class FilteringTransport:
    """A transport that loses what a rule does not keep, such as an agent that has stopped.

    Attributes:
        transport: that would have brought it.
        keep: whether something that was sent arrives.
    """

    transport: Transport
    keep: Callable[[object], bool]

    def exchange(self, broadcast: Broadcast) -> list[object]:
        """What the rule keeps of what was sent."""
        return list(filter(self.keep, self.transport.exchange(broadcast)))

    def finish(self, broadcast: Broadcast) -> None:
        """Every agent gets the last broadcast."""
        self.transport.finish(broadcast)


@dataclass(frozen=True, eq=False)
class RecordingTransport:
    """A transport that keeps what the server sends: all of it is public.

    Attributes:
        transport: that brings it.
        sent: everything that was sent, the zeros before the first release too.
    """

    transport: Transport
    sent: list[Array] = field(default_factory=list, init=False)

    def exchange(self, broadcast: Broadcast) -> Iterable[object]:
        """Record the broadcast, and exchange it for what the agents send."""
        self.sent.append(broadcast.vectors)
        return self.transport.exchange(broadcast)

    def finish(self, broadcast: Broadcast) -> None:
        """Record the last broadcast, and pass it on."""
        self.sent.append(broadcast.vectors)
        self.transport.finish(broadcast)

    @property
    def releases(self) -> Array:
        """The releases that agents were shown, (T, P, M)."""
        return np.stack(self.sent[1:])
