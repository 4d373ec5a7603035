"""The comparators without privacy: FTS-DE, FTS, and agents that do not talk to each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.project import RunResult
from private_bo.federated.federation import Federation
from private_bo.federated.messages import Broadcast
from private_bo.federated.server import Aggregator
from private_bo.federated.settings import OneRegion, Reliance
from private_bo.federated.streams import Streams
from private_bo.federated.transports import InProcess
from private_bo.threads import single_threaded


class NonPrivateServer(Aggregator):
    """Exact weighted averages of all vectors: no sampling, no clipping, no noise, no claim."""

    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Σ_n φ_n^(i) ω_n for every sub-region."""
        vectors = self.accepted(turn, reports)
        weights = self.weights.values[turn]
        total = np.zeros((len(weights), self.features))
        for n in sorted(vectors):
            total += np.outer(weights[:, n], vectors[n])
        return Broadcast(turn, total)


@dataclass(frozen=True)
class FTSDE(Federation):
    """Modified FTS with distributed exploration, without privacy (Section 5.1, Figure 2a)."""

    def run(self, data: Any, rng: np.random.Generator) -> RunResult:
        """Play every round without privacy.

        Args:
            data: a :class:`~private_bo.federated.FederatedProblem`.
            rng: seeds the agents' generators.

        Raises:
            InputError: if ``data`` is none, or has another number of agents.
        """
        problem = self.fitting(data)
        with single_threaded():
            agents = self.team(problem, Streams.of(rng))
            self.play(NonPrivateServer(self.public_weights, self.features), InProcess(agents))
            return self.result(problem, agents)


@dataclass(frozen=True)
class FTS(FTSDE):
    """Modified FTS: one region, the whole domain (Section 3.1 without its noise)."""

    regions: OneRegion = 1


@dataclass(frozen=True)
class PlainTS(FTS):
    """Thompson sampling by every agent on its own."""

    reliance: Reliance = Reliance.NEVER
