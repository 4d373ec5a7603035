"""A federation over Flower's own messages, without its processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from private_bo.federated import DPFTSDE, FederatedProblem, synthetic
from private_bo.federated.flower.app import RESULT, answer, finish, hand_out, serve

ALGORITHM = DPFTSDE(agents=3, regions=2, rate=0.5, rounds=4, initial=3, delta=1e-5)
SEED = 5


def identify(monkeypatch: Any) -> None:
    """What Flower tells a process before it calls an app in it."""
    from flwr.supercore.task_identity import TaskIdentity

    for number, name in enumerate(("_task_id", "_run_id", "_node_id"), start=1):
        monkeypatch.setattr(TaskIdentity, name, number)


def problem(agents: int = 3) -> FederatedProblem:
    return synthetic(agents, seed=7, points=200)


def parties(folder: Path) -> tuple[Path, list[Path]]:
    """The folders of the server and of three agents."""
    return hand_out(folder, ALGORITHM, problem(), SEED, patience=0.5, stops={})


class MemoryGrid:
    """Flower's grid without processes: the nodes' functions are called on its own messages."""

    def __init__(self, nodes: dict[int, Callable[[Any], Any]]) -> None:
        self.nodes = nodes
        self.answers: dict[str, Any] = {}
        self.kinds: list[str] = []

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Any]) -> list[str | None]:
        names: list[str | None] = []
        for message in messages:
            name = f"message {len(self.kinds)}"
            self.kinds.append(message.metadata.message_type)
            message.metadata.__dict__["_message_id"] = name
            node = self.nodes[message.metadata.dst_node_id]
            if (reply := node(message)) is not None:
                self.answers[name] = reply
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        return [self.answers.pop(name) for name in set(message_ids) & set(self.answers)]


def client(folder: Path) -> Callable[[Any], Any]:
    """A node with an agent, whose memory is all that is kept between two messages."""
    from flwr.app import Context, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()
    app.query()(answer)
    app.query("finish")(finish)
    context = Context(1, 2, {"folder": str(folder)}, RecordDict(), {})
    return lambda message: app(message, context)


def sends(content: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A node that answers with whatever the function makes of the message."""
    from flwr.app import ConfigRecord, Message, RecordDict

    def node(message: Any) -> Any:
        record = RecordDict({"report": ConfigRecord(content(message))})
        return Message(record, reply_to=message)

    return node


def failing(message: Any) -> Any:
    from flwr.app import Error, Message

    return Message(Error(0, "out of order"), reply_to=message)


def silent(message: Any) -> Any:
    return None


def played(server: Path, grid: MemoryGrid) -> dict[str, Any]:
    """What the server leaves after a run over that grid."""
    serve(grid, SimpleNamespace(run_config={"folder": str(server)}))
    result: dict[str, Any] = json.loads((server / RESULT).read_text())
    result["broadcasts"] = np.array(result["broadcasts"])
    return result
