"""Fixtures of the tests that start Flower's processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from flower_processes import alive

from private_bo.federated.flower.run import Loopback


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The process groups of every federation that is started."""
    groups: list[int] = []
    start = Loopback._spawn

    def spawn(self: Loopback, name: str, *command: str) -> None:
        start(self, name, *command)
        groups.append(self._running[name].pid)

    monkeypatch.setattr(Loopback, "_spawn", spawn)
    yield groups
    for group in groups:
        if alive([group]):
            os.killpg(group, signal.SIGKILL)
