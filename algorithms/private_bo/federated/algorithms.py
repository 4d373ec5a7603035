"""DP-FTS-DE of Dai, Low & Jaillet 2021: the server's loop, and below it the agents' step.

Algorithm 1 is :func:`central_server` (lines 1 to 4) with :meth:`Server.round` (lines 5 to 12);
Algorithm 2 is :meth:`Agents.act` (lines 1 to 9) with :meth:`Agents.reports` (line 10). Line 13 of
Algorithm 1, the privacy loss, is known beforehand: it is the plan's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.plan import FixedSizeSampling, PoissonSampling
from private_bo.federated.agent import Histories
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.server import Aggregator, Release, Transport, clipped
from private_bo.gp.types import Array

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
        releases: mechanism and label of every round.
        sampling: how agents are sampled.
        clip: S; vectors are clipped to S/√P.
        ledger: where every round is sampled and released; the samples are as secret as its noise.
    """

    releases: Sequence[Release]
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
        sample = self.subsampled(t)  # line 6
        total = self.aggregate(t, {n: vectors[n] for n in sample if n in vectors})
        release = self.releases[t]
        noisy = self.ledger.release(release.mechanism, total.ravel(), at=release.at)  # line 11
        return Broadcast(t, np.asarray(noisy).reshape(total.shape))  # line 12

    def subsampled(self, turn: int) -> list[int]:
        """S_t, in ascending order; it may be empty under Poisson sampling."""
        names = [f"agent {n}" for n in range(self.weights.agents)]
        return self.ledger.sample(names, at=self.releases[turn].at)

    def aggregate(self, turn: int, vectors: Mapping[int, Array]) -> Array:
        """Σ_n (φ_n^(i)/q) ω̂_n over the sampled, for all sub-regions i at once, (P, M)."""
        weights = self.weights.values[turn]
        total = np.zeros((len(weights), self.features))  # line 5
        for n in sorted(vectors):  # lines 7-8, in a fixed order: that of arrival changes no sum
            shortened = clipped(vectors[n], self.limit)  # line 9
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


# -- Algorithm 2 ---------------------------------------------------------------------------------


class Agents(Histories):
    """BO-Agent-A_n for some agents n, which act in step.

    Whatever an agent does is the same, bit for bit, whichever others are computed beside it.
    """

    def act(self, broadcast: Broadcast) -> None:
        """Lines 1 to 9, for iteration t = round + 1 and ω_{t-1} = broadcast.

        An agent that joins later makes its initial queries first.
        """
        t = broadcast.round + 1
        if self.choices.shape[1] == 0:  # line 1
            self.query(self.initial_points())  # line 2
        if t == 0:
            return
        r = np.array([generator.random() for generator in self.generators])  # line 4
        own = r <= self.model.own_share[t]  # line 5
        points = np.full(len(r), self.best_received(broadcast))  # lines 7-8
        points[own] = self.own_maxima(np.flatnonzero(own))  # line 6
        self.query(points[:, None])  # line 9
        self.received.append(int((~own).sum()))

    def reports(self, turn: int) -> list[Report]:
        """ω_n,t of each agent, from its posterior (2) given all that it has seen (line 10)."""
        drawn = self.shared_draws()
        return [Report(turn, n, omega) for n, omega in zip(self.numbers, drawn, strict=True)]
