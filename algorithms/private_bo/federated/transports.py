"""Transports within one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from private_bo.federated.algorithms import Agents
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.server import Transport
from private_bo.gp.types import Array


@dataclass(frozen=True, eq=False)
class InProcess:
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
class Canary:
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
class Selected:
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
class Recorded:
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
