"""Broadcasts and reports as Flower messages."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from dpaudit.base.errors import InputError
from private_bo.federated import Broadcast, Report

_POLL = 0.2  # seconds between two looks


class Grid(Protocol):
    """What is used of ``flwr.serverapp.Grid``."""

    def get_node_ids(self) -> Iterable[int]:
        """The SuperNodes that are connected."""

    def push_messages(self, messages: Iterable[Any]) -> Iterable[str | None]:
        """Send messages; an identifier for each, None where its node is unknown."""

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Any]:
        """The answers that have come to these messages, each once."""


class FlowerTransport:
    """Asks every connected node in every round, and waits for answers with bounded patience.

    A node that was silent is asked again, but nobody waits for it any more until it answers. Each
    node speaks for the one agent that it first reported for, and no other node for the same: else
    one agent could take part several times, which the claim does not cover.

    Args:
        grid: Flower's, on the server's side.
        patience: seconds that a round may wait.
    """

    def __init__(self, grid: Grid, patience: float) -> None:
        self._grid = grid
        self._patience = patience
        self._silent: set[int] = set()
        self._agent_of: dict[int, int] = {}

    def exchange(self, broadcast: Broadcast) -> list[object]:
        """One object for each answer: its report, or None where it holds no proper one."""
        answers = self._ask(broadcast, "query")
        return [self._report(node, content) for node, content in answers]

    def finish(self, broadcast: Broadcast) -> None:
        """Every agent acts once more, and says no more than that it did."""
        self._ask(broadcast, "query.finish")

    def await_nodes(self, count: int, patience: float) -> None:
        """Wait until so many nodes are connected, or patience ends."""
        deadline = time.monotonic() + patience
        while len(list(self._grid.get_node_ids())) < count and time.monotonic() < deadline:
            time.sleep(_POLL)

    def _ask(self, broadcast: Broadcast, kind: str) -> list[tuple[int, Any]]:
        """The nodes that answered without an error, and what."""
        asked = self._send(broadcast, kind)
        answers = []
        deadline = time.monotonic() + self._patience
        while not self._silent.issuperset(asked.values()) and time.monotonic() < deadline:
            time.sleep(_POLL)
            for message in self._grid.pull_messages(set(asked)):
                node = asked.pop(message.metadata.reply_to_message_id, None)
                if node is None:
                    continue
                self._silent.discard(node)
                if not message.has_error():
                    answers.append((node, message.content))
        self._silent.update(asked.values())
        return sorted(answers, key=lambda each: each[0])

    def _send(self, broadcast: Broadcast, kind: str) -> dict[str, int]:
        """Ask every node; the nodes that can answer, by the identifier of their message."""
        from flwr.app import ConfigRecord, Message, RecordDict

        nodes = sorted(self._grid.get_node_ids())
        if not nodes:
            return {}
        messages = [
            Message(
                RecordDict({"broadcast": ConfigRecord(broadcast.to_dict())}),
                node,
                kind,
                ttl=self._patience,
                group_id=str(broadcast.round + 1),
            )
            for node in nodes
        ]
        identifiers = self._grid.push_messages(messages)
        return {name: node for name, node in zip(identifiers, nodes, strict=True) if name}

    def _report(self, node: int, content: Any) -> Report | None:
        try:
            report = Report.from_dict(dict(content["report"]))
        except (InputError, KeyError, TypeError):
            return None
        spoken_for = self._agent_of.get(node)
        if spoken_for is None and report.agent not in self._agent_of.values():
            self._agent_of[node] = report.agent
        return report if self._agent_of.get(node) == report.agent else None
