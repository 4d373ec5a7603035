"""The whole algorithm under attack: real agents, real server, real ledger, and broadcasts alone.

All other agents optimise objectives of their own and act on what they receive. The adversary knows
the direction of the canary's vectors at most, so the bounds are below those of the white-box game.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.federated.servers import Served
from dpaudit import Ledger
from private_bo.federated import (
    AgentModel,
    Agents,
    Broadcast,
    FederatedProblem,
    InProcess,
    Reliance,
    Report,
    Streams,
    synthetic,
)
from private_bo.gp.types import single_threaded

Floats = NDArray[np.float64]


class _Planted:
    """A transport on which one agent's reports are exchanged for a canary's, or lost."""

    def __init__(self, inner: InProcess, canary: int, vector: Floats | None) -> None:
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
        transport = _Planted(InProcess(agents), canary, vector)
        with Ledger(self.running_plan(), rng=rng) as ledger:
            self.play(self.server(ledger), transport)
        return np.array(transport.seen)
