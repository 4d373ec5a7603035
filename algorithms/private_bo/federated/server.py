"""The central server: Algorithm 1 of Dai, Low & Jaillet 2021, and its transport to the agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import FixedSizeSampling, PoissonSampling
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.weights import Weights
from private_bo.gp.types import Array, Indices

__all__ = ["Aggregator", "Refusal", "Release", "Server", "Transport", "clipped", "drawn"]


class Transport(Protocol):
    """How broadcasts reach the agents, and reports the server."""

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


@dataclass(frozen=True)
class Release:
    """How one round's joint vector is released.

    Attributes:
        mechanism: the noise.
        at: label of its invocation in the plan.
    """

    mechanism: Gaussian
    at: str


class Aggregator(ABC):
    """Base: judges what arrives, counts what it refuses, and answers with a broadcast.

    What it counts depends on the data without noise: it stays with whoever runs the server.

    Args:
        agents: N.
        features: M.
    """

    def __init__(self, agents: int, features: int) -> None:
        self._agents = agents
        self._features = features
        self.refused: Counter[Refusal] = Counter()
        """How much was refused, by reason."""
        self.missing: list[int] = []
        """From how many agents nothing usable came, round by round."""

    @abstractmethod
    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Lines 5 to 12 of Algorithm 1: from the reports of iteration t to ω_t^joint."""

    def accepted(self, turn: int, reports: Iterable[object]) -> dict[int, Array]:
        """The vector of each agent that sent a proper one; all else is counted and forgotten."""
        vectors: dict[int, Array] = {}
        for report in reports:
            reason = self._reason(turn, report, vectors)
            if reason is not None:
                self.refused[reason] += 1
            elif isinstance(report, Report):
                vectors[report.agent] = report.vector
        self.missing.append(self._agents - len(vectors))
        return vectors

    def _reason(self, turn: int, report: object, known: Mapping[int, Array]) -> Refusal | None:
        if not isinstance(report, Report):
            return Refusal.MALFORMED
        if report.round != turn:
            return Refusal.WRONG_ROUND
        if not 0 <= report.agent < self._agents:
            return Refusal.UNKNOWN_AGENT
        if report.agent in known:
            return Refusal.DUPLICATE
        if report.vector.shape != (self._features,):
            return Refusal.WRONG_DIMENSION
        if not np.isfinite(report.vector).all():
            return Refusal.NOT_FINITE
        return None


class Server(Aggregator):
    """Algorithm 1. It alone sees reports; every round it makes one release through the ledger.

    A round's noise is drawn whoever reports and whoever is sampled: for an empty sample as well.
    An agent that sends nothing usable counts as the zero vector, which is the neighbour that the
    claim protects; so the accounting does not depend on who answers.

    Args:
        weights: φ_n^(i) of every round, public.
        releases: mechanism and label of every round.
        sampling: how agents are sampled.
        clip: S; vectors are clipped to S/√P.
        features: M.
        ledger: where every round is released.
        rng: draws the samples. It must be secret, and independent of the data.
    """

    def __init__(
        self,
        weights: Weights,
        releases: Sequence[Release],
        sampling: PoissonSampling | FixedSizeSampling,
        *,
        clip: float,
        features: int,
        ledger: Ledger,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(weights.agents, features)
        self._weights = weights
        self._releases = releases
        self._sampling = sampling
        self._limit = clip / float(np.sqrt(weights.regions))
        self._ledger = ledger
        self._rng = rng

    @property
    def rate(self) -> float:
        """q: with which probability an agent is sampled."""
        if isinstance(self._sampling, FixedSizeSampling):
            return self._sampling.size / self._sampling.population
        return self._sampling.rate

    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Subsample, clip, weigh, add noise (lines 5 to 12).

        Args:
            turn: t, from 0, each once and in order.
            reports: what arrived, in any order.

        Raises:
            InputError: if it is not the next round that is declared. Nothing is drawn then.
        """
        turn = self._next(turn)
        vectors = self.accepted(turn, reports)
        sample = drawn(self._sampling, self._agents, self._rng)  # line 6
        value = self.aggregate(turn, {n: vectors[n] for n in sample.tolist() if n in vectors})
        release = self._releases[turn]
        noisy = self._ledger.release(release.mechanism, value.ravel(), at=release.at)  # line 11
        return Broadcast(turn, np.asarray(noisy).reshape(value.shape))

    def _next(self, turn: int) -> int:
        """The turn, if it is the next one."""
        following = len(self.missing)
        number = validate.integer_at_least(0, turn=turn)
        if number != following or number >= len(self._releases):
            raise InputError(
                f"turn is {turn!r}; {len(self._releases)} rounds are declared, and the next one is "
                f"{following}."
            )
        return number

    def aggregate(self, turn: int, vectors: Mapping[int, Array]) -> Array:
        """Σ_n (φ_n^(i)/q) ω̂_n for every sub-region, (P, M), over the sampled (lines 7 to 10)."""
        weights = self._weights.values[turn]
        total = np.zeros((len(weights), self._features))
        for agent in sorted(vectors):  # in a fixed order: the sum is that of any order of arrival
            total += np.outer(weights[:, agent] / self.rate, clipped(vectors[agent], self._limit))
        return total


def drawn(
    sampling: PoissonSampling | FixedSizeSampling, agents: int, rng: np.random.Generator
) -> Indices:
    """S_t, the sampled agents in ascending order; it may be empty under Poisson sampling."""
    if isinstance(sampling, FixedSizeSampling):
        return np.sort(rng.choice(agents, size=sampling.size, replace=False)).astype(np.intp)
    chosen: Indices = np.flatnonzero(rng.random(agents) < sampling.rate)
    return chosen


def clipped(vector: Array, limit: float) -> Array:
    """ω / max(1, ‖ω‖/limit) (line 9); no finite vector overflows it.

    >>> clipped(np.array([3.0, 4.0]), 1.0).round(6).tolist()
    [0.6, 0.8]
    >>> clipped(np.array([1e300, -1e300]), 2.0).round(6).tolist()
    [1.414214, -1.414214]
    """
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0:
        return vector
    relative = vector / largest
    norm = float(np.linalg.norm(relative))
    if norm * min(largest, 1e300) <= limit:
        return vector
    shortened: Array = relative * (limit / norm)
    return shortened
