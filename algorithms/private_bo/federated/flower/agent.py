"""The agent's side: Flower starts it anew for every message, and keeps its memory in between."""

from __future__ import annotations

import json
import os
import pickle
import signal
from pathlib import Path
from typing import Any

from dpaudit.base import files
from private_bo.federated import Agents, Broadcast
from private_bo.federated.flower.parties import CHOICES, AgentSetup, setup_in
from private_bo.threads import single_threaded

_MEMORY = "agent"


def memory_of(agent: Agents) -> bytes:
    """All that it has seen and where its generator stands."""
    return pickle.dumps((agent.choices, agent.seen, agent.generators))


def resume(agent: Agents, memory: bytes) -> None:
    """Let an agent go on from the memory of its predecessor."""
    agent.choices, agent.seen, agent.generators = pickle.loads(memory)


def answer(message: Any, context: Any) -> Any:
    """Act on a broadcast and report (Algorithm 2), as a ClientApp's query function.

    Args:
        message: a ``flwr.app.Message`` with a broadcast.
        context: a ``flwr.app.Context``, whose state is kept on the agent's side.
    """
    from flwr.app import ConfigRecord, RecordDict

    return _answered(
        message,
        context,
        lambda agent, turn: RecordDict({"report": ConfigRecord(agent.reports(turn)[0].to_dict())}),
    )


def finish(message: Any, context: Any) -> Any:
    """Act on the last broadcast; the answer says no more than that it was done."""
    from flwr.app import RecordDict

    return _answered(message, context, lambda agent, turn: RecordDict())


def _answered(message: Any, context: Any, content: Any) -> Any:
    """The answer with a content, after the agent has acted and its memory is kept."""
    from flwr.app import ConfigRecord, Message

    folder = Path(context.node_config["folder"])
    setup: AgentSetup = setup_in(folder)
    broadcast = Broadcast.from_dict(dict(message.content["broadcast"]))
    turn = broadcast.round + 1
    if setup.stop is not None and turn >= setup.stop:
        os.killpg(os.getpgrp(), signal.SIGKILL)  # its SuperNode and all: the plug is pulled
    if _MEMORY in context.state:
        resume(setup.agent, context.state[_MEMORY]["history"])
    with single_threaded():
        setup.agent.act(broadcast)
        reply = Message(content(setup.agent, turn), reply_to=message)
    context.state[_MEMORY] = ConfigRecord({"history": memory_of(setup.agent)})
    files.write(folder / CHOICES, json.dumps(setup.agent.choices[0].tolist()))
    return reply
