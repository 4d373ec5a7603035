"""The agent's side: its memory is all that it is."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from flower_grid import identify, parties

from private_bo.federated import Broadcast
from private_bo.federated.flower.app import memory_of, resume, setup_in

# Flower's own imports warn; nothing of it is called in this process but its message types.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identify(monkeypatch)


def test_memory_is_all_that_an_agent_is(tmp_path: Path) -> None:
    _, agents = parties(tmp_path)
    rng = np.random.default_rng(0)
    shown = [Broadcast.none_yet(2, 50), *(Broadcast(t, rng.normal(size=(2, 50))) for t in (0, 1))]
    lasting, renewed = setup_in(agents[1]).agent, setup_in(agents[1]).agent
    for broadcast in shown:
        memory = memory_of(renewed)
        renewed = setup_in(agents[1]).agent
        resume(renewed, copy.copy(memory))
        for agent in (lasting, renewed):
            agent.act(broadcast)
        (one,), (other,) = (agent.reports(broadcast.round + 1) for agent in (lasting, renewed))
        assert one.to_dict() == other.to_dict()
        assert lasting.choices.tolist() == renewed.choices.tolist()
        assert lasting.seen.tolist() == renewed.seen.tolist()
