"""Federated Thompson sampling with distributed exploration (Dai, Low & Jaillet 2021).

Agents optimise objectives of their own. A trusted server averages vectors that describe what they
have learned, and broadcasts noisy averages, one for each sub-region; what protects an agent is the
sampling of agents and the noise. :class:`DPFTSDE` is Algorithms 1 and 2, :class:`DPFTS` has one
region, :class:`FTSDE` and :class:`FTS` have no privacy, and in :class:`PlainTS` agents
do not communicate.

>>> from dpaudit.ledger import Ledger
>>> algorithm = DPFTSDE(agents=8, rounds=3, rate=0.5, initial=3)
>>> rng = np.random.default_rng(0)
>>> problem = algorithm.load("synthetic", rng)
>>> with Ledger(algorithm.plan(), rng=rng) as ledger:
...     result = algorithm.run(problem, ledger, rng)
>>> len(ledger), result.summary["agents"], len(result.for_owner.series["simple regret"])
(3, 8, 4)
>>> round(DPFTSDE().published_loss, 2)
9.91
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.plan import ZeroOut
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.federated.algorithms import Server
from private_bo.federated.notes import federated_findings, limits_of_claim
from private_bo.federated.problems import Distorted, FederatedProblem, WithoutAgent
from private_bo.federated.server import Transport
from private_bo.federated.settings import OneRegion
from private_bo.federated.streams import Streams
from private_bo.federated.subject import PrivateFederation
from private_bo.federated.transports import Canary, InProcess, Selected
from private_bo.threads import single_threaded

_FAR = 1e6
_PRESENT = {"agent", "present"}


@dataclass(frozen=True)
class DPFTSDE(PrivateFederation):
    """DP-FTS-DE, Algorithms 1 and 2: fields as in the base classes.

    One agent is protected over the whole run: its vectors may as well have been zero. N and the
    weights are public. The claim is the privacy loss that the paper publishes: the classic moments
    accountant at T rounds. The plan declares what the public weights really allow, round by round.

    ``dpaudit audit`` tests the claim, and few runs cannot refute a large one: ε = 9.91, that of the
    defaults, takes at least 80 521. ``--set epsilon=4.1`` tests what the plan proves; 10 000 do.
    """

    server_class: ClassVar[type[Server]] = Server

    def findings(self) -> tuple[Finding, ...]:
        """Public weights, the two sensitivities, the unused broadcast, and the choice of S."""
        return federated_findings(self)

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return limits_of_claim(self)

    # -- audit -----------------------------------------------------------------------------------

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """A canary at the clip norm in every round, present or zero, in the worst place."""
        worst = int(self.public_weights.norms.max(axis=0).argmax())
        why = "a vector at the clip norm in every round, all others silent"
        one = {"agent": worst, "present": True}
        return (AuditPair(one, {"agent": worst, "present": False}, why),)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Transcripts of all rounds, seen along the canary's direction, all others silent.

        The canary sends S/√P times a public unit vector in every round. What the broadcasts show
        beside that direction is noise alone, and left out.

        Args:
            data: ``{"agent": n, "present": whether it sends that or zero}``.
            size: number of independent transcripts.
            rng: source of samples and noise.

        Returns:
            Shape (size, T, P).

        Raises:
            InputError: if the data are malformed.
        """
        agent, present = self.canary(data)
        shift = self.public_weights.values[:, :, agent] * (
            self.clip / (self.rate * np.sqrt(self.regions))
        )
        # One agent takes part independently from round to round, with probability q either way.
        taking_part = rng.random((size, self.exchanges)) < self.rate
        noise = rng.standard_normal((size, *shift.shape)) * self.sigmas[:, None]
        seen: NDArray[Any] = noise + present * taking_part[:, :, None] * shift
        return seen

    def modelled(self) -> Iterator[tuple[dict[str, Any], Canary]]:
        """The canary of the first pair, present and zero: a test of the server, no agent acts."""
        pair = self.audit_pairs()[0]
        for data in (pair.x, pair.x_prime):
            agent, present = self.canary(data)
            vector = np.zeros(self.features)
            vector[0] = present * self.clip / math.sqrt(self.regions)
            yield data, Canary(agent, vector)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """What is seen along the canary's direction, (T, P)."""
        return np.stack(releases).reshape(len(releases), self.regions, -1)[:, :, 0]

    def canary(self, data: Any) -> tuple[int, bool]:
        """Which agent is the canary, and whether it is present, from a JSON value.

        Raises:
            InputError: if the data are malformed.
        """
        if not isinstance(data, dict) or set(data) != _PRESENT:
            raise InputError("data must be a table with the fields 'agent' and 'present'.")
        agent = validate.integer_at_least(0, agent=data["agent"])
        if agent >= self.agents or not isinstance(data["present"], bool):
            raise InputError(
                f"agent is {agent} and present {data['present']!r}; there are {self.agents} "
                "agents, and present must be true or false."
            )
        return agent, data["present"]

    # -- neighbours ------------------------------------------------------------------------------

    def neighbours(self, data: FederatedProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One agent zeroed, ordinary or with an objective far beyond the others'; or replaced.

        Under zero-out two objectives of one agent are two moves apart, so none is replaced.
        """
        norms = self.public_weights.norms.max(axis=0)
        heaviest, lightest = int(norms.argmax()), int(norms.argmin())
        chosen = int(rng.integers(self.agents))
        for agent in dict.fromkeys((heaviest, lightest, chosen)):
            yield Move(_zeroed(data, agent), f"agent {agent} zeroed")
        for agent, factor, what in (
            (heaviest, _FAR, "values far above all others"),
            (chosen, -_FAR, "values far below all others"),
        ):
            distorted = Distorted(data.objectives[agent], factor)
            other, recipe = data.with_agent(agent, distorted), f"agent {agent}, with {what}"
            if isinstance(self.relation, ZeroOut):
                zeroed = f"{recipe}, zeroed"
                yield Move(_zeroed(data, agent), zeroed, extreme=True, base=other)
            else:
                yield Move(other, f"{recipe}, instead", extreme=True)

    # -- run -------------------------------------------------------------------------------------

    def server(self, ledger: Ledger) -> Server:
        """The central server, which alone sees reports."""
        return self.server_class(
            self.public_weights,
            self.features,
            releases=self.releases,
            sampling=self.scheme,
            clip=self.clip,
            ledger=ledger,
        )

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Play every round; an agent's vectors leave the server only through the ledger.

        Args:
            data: a :class:`FederatedProblem`, or a :class:`WithoutAgent`, its neighbour; or a
                :class:`Canary`, which tests the server alone.
            ledger: a ledger of :meth:`plan`.
            rng: seeds the agents' generators.

        Raises:
            InputError: if ``data`` is neither, or has another number of agents.
        """
        if isinstance(data, Canary):
            self.play(self.server(ledger), data)
            return RunResult(summary={"agents": 1})
        silent = data.agent if isinstance(data, WithoutAgent) else None
        problem = self.fitting(data.problem if isinstance(data, WithoutAgent) else data)
        streams = Streams.of(rng)
        with single_threaded():
            agents = self.team(problem, streams)
            transport: Transport = InProcess(agents)
            if silent is not None:
                transport = Selected(transport, lambda sent: getattr(sent, "agent", None) != silent)
            self.play(self.server(ledger), transport)
            return self.result(problem, agents)


def _zeroed(problem: FederatedProblem, agent: int) -> WithoutAgent:
    """The neighbour of a problem in which an agent neither sees nor sends anything but zeros."""
    nothing = Distorted(problem.objectives[agent], 0.0)
    return WithoutAgent(problem.with_agent(agent, nothing), agent)


@dataclass(frozen=True)
class DPFTS(DPFTSDE):
    """DP-FTS: one region, the whole domain (Section 3.1). Fields as in :class:`DPFTSDE`."""

    regions: OneRegion = 1
