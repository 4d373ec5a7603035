"""Broadcasts and reports as Flower messages: who is asked, waited for and believed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flower_grid import ALGORITHM, MemoryGrid, identify, problem, sends, silent

from private_bo.federated import Broadcast, Report
from private_bo.federated.flower.app import FlowerTransport
from private_bo.federated.flower.run import in_process

# Flower's own imports warn; nothing of it is called in this process but its message types.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identify(monkeypatch)


def says(agent: int) -> Callable[[Any], Any]:
    return sends(lambda m: Report(0, agent, np.full(4, float(agent))).to_dict())


def test_a_federation_without_agents_releases_noise_all_the_same() -> None:
    transport = FlowerTransport(MemoryGrid({}), 0.1)
    assert transport.exchange(Broadcast.none_yet(2, 50)) == []
    shown = in_process(ALGORITHM, problem(), 5, stops=dict.fromkeys(range(3), 0)).broadcasts
    assert shown.shape == (4, 2, 50)
    assert (shown != 0).all()


def test_a_node_speaks_for_one_agent_and_an_agent_has_one_node() -> None:
    nodes = {1: says(0), 2: says(1), 3: says(1)}
    transport = FlowerTransport(MemoryGrid(nodes), 1.0)
    first = transport.exchange(Broadcast.none_yet(2, 4))
    assert [r.agent if isinstance(r, Report) else None for r in first] == [0, 1, None]
    nodes[1] = says(1)  # now in another's name
    second = transport.exchange(Broadcast.none_yet(2, 4))
    assert [r.agent if isinstance(r, Report) else None for r in second] == [None, 1, None]


def test_a_silent_node_is_waited_for_once_and_may_come_back() -> None:
    patience = 0.6

    def exchange() -> tuple[int, bool]:
        began = time.monotonic()
        heard = len(transport.exchange(Broadcast.none_yet(2, 4)))
        return heard, time.monotonic() - began > 0.95 * patience

    nodes = {1: says(1), 2: silent}
    transport = FlowerTransport(MemoryGrid(nodes), patience)
    assert [exchange(), exchange()] == [(1, True), (1, False)]
    nodes[2] = says(2)
    assert exchange() == (2, False)
    nodes[2] = silent
    assert exchange() == (1, True)
