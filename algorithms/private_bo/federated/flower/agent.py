"""The agent's side: Flower starts it anew for every message, and keeps its memory in between."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpaudit import files
from private_bo.federated import Agents, Broadcast
from private_bo.federated.flower.setup import AgentFiles, AgentSetup, generator_of, state_of
from private_bo.threads import single_threaded

__all__ = ["OneAgent", "answer", "finish"]

_MEMORY = "agent"


class OneAgent(Agents):
    """One agent, whose memory can be taken from it and given to its successor.

    Args:
        setup: what it starts from.
    """

    def __init__(self, setup: AgentSetup) -> None:
        super().__init__(setup.model, setup.observe, [setup.agent], [setup.generator])
        self._generator = setup.generator

    def memory(self) -> dict[str, Any]:
        """All that it has seen and where its generator stands: integers, floats and a text."""
        return {
            "choices": self.choices[0].tolist(),
            "seen": self.seen[0].tolist(),
            "generator": json.dumps(state_of(self._generator)),
        }

    @classmethod
    def with_memory(cls, setup: AgentSetup, memory: dict[str, Any]) -> Self:
        """The agent that goes on from there."""
        generator = generator_of(json.loads(memory["generator"]))
        agent = cls(replace(setup, generator=generator))
        agent.resume(
            np.array([memory["choices"]], dtype=np.intp),
            np.array([memory["seen"]], dtype=np.float64),
        )
        return agent


def answer(message: Any, context: Any) -> Any:
    """Act on a broadcast and report (Algorithm 2), as a ClientApp's query function.

    Args:
        message: a ``flwr.app.Message`` with a broadcast.
        context: a ``flwr.app.Context``, whose state is kept on the agent's side.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    folder, agent, broadcast = _ready(message, context)
    turn = broadcast.round + 1
    with single_threaded():
        agent.act(broadcast)
        (report,) = agent.reports(turn)
    _keep(folder, agent, context)
    return Message(RecordDict({"report": ConfigRecord(report.to_dict())}), reply_to=message)


def finish(message: Any, context: Any) -> Any:
    """Act on the last broadcast; the answer says no more than that it was done."""
    from flwr.app import Message, RecordDict

    folder, agent, broadcast = _ready(message, context)
    with single_threaded():
        agent.act(broadcast)
    _keep(folder, agent, context)
    return Message(RecordDict(), reply_to=message)


def _ready(message: Any, context: Any) -> tuple[AgentFiles, OneAgent, Broadcast]:
    """The agent with its memory, and what it has been sent."""
    folder = AgentFiles(Path(context.node_config["folder"]))
    setup = folder.read()
    broadcast = Broadcast.from_dict(dict(message.content["broadcast"]))
    if setup.stop is not None and broadcast.round + 1 >= setup.stop:
        os.killpg(os.getpgrp(), signal.SIGKILL)  # its SuperNode and all: the plug is pulled
    if _MEMORY in context.state:
        return folder, OneAgent.with_memory(setup, dict(context.state[_MEMORY])), broadcast
    return folder, OneAgent(setup), broadcast


def _keep(folder: AgentFiles, agent: OneAgent, context: Any) -> None:
    from flwr.app import ConfigRecord

    context.state[_MEMORY] = ConfigRecord(agent.memory())
    files.write(folder.choices, json.dumps(agent.choices[0].tolist()))
