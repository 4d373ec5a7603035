"""A federation of nine agents, and a server of six: what is sent to it, and what it shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit import Ledger
from private_bo.federated import (
    DPFTSDE,
    AgentModel,
    Agents,
    Broadcast,
    Report,
    Server,
    Streams,
    synthetic,
)
from private_bo.federated.dp_fts_de import Federation

SETUP = Federation(agents=9, regions=2, features=20, rounds=5, initial=4)
PROBLEM = synthetic(9, seed=3, points=120)


def acted(federation: Federation, rounds: int, numbers: list[int] | None = None) -> Agents:
    """Agents after the same random broadcasts, with all reports drawn on the way."""
    chosen = list(range(federation.agents)) if numbers is None else numbers
    own, model = [Streams((11,)).agent(n) for n in chosen], AgentModel(federation, PROBLEM.domain)
    agents = Agents(model, PROBLEM.observe, chosen, own)
    rng = np.random.default_rng(5)
    agents.act(Broadcast.none_yet(federation.regions, federation.features))
    agents.reports(0)
    for turn in range(rounds):
        agents.act(Broadcast(turn, rng.normal(size=(federation.regions, federation.features))))
        agents.reports(turn + 1)
    return agents


SUBJECT = DPFTSDE(agents=6, regions=2, rate=0.5, features=4, rounds=5, clip=3.0, delta=0.01)
ROUNDS = range(5)
Sent = Callable[[int], list[object]]


def proper(turn: int, agents: object = range(6)) -> list[object]:
    rng = np.random.default_rng((9, turn))
    vectors = rng.normal(size=(6, 4))
    return [Report(turn, n, vectors[n]) for n in agents]  # type: ignore[attr-defined]


def played(sent: Sent, subject: DPFTSDE = SUBJECT) -> tuple[Server, Ledger, list[np.ndarray]]:
    """A whole run of the server, with the same samples and noise for whatever is sent."""
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(7))
    with ledger:
        server = subject.server(ledger)
        shown = [server.round(turn, sent(turn)).vectors for turn in ROUNDS]
    ledger.check()  # what ran is what was declared
    return server, ledger, shown


def without(agent: int) -> Sent:
    return lambda turn: proper(turn, [n for n in range(6) if n != agent])
