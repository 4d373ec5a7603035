"""What an agent of a federated study of one's own does in a round, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from private_bo.federated.draws import clip_to_norm
from private_bo.federated.settings import Broadcast
from private_bo.own.agent import Agent
from private_bo.sealed.choices import function_of, unpacked


def evaluate(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    state: Any,
    *,
    turn: int,
    received: Any,
    objective: Sequence[str],
    features: str,
    settings: str,
    draws: Sequence[str],
    evaluations: int,
    weight: float,
    clip: float,
) -> tuple[list[float], Any]:
    """Take the last broadcast, evaluate the own objective, and report.

    Args:
        records: the agent's own, and its ``number``.
        rng: handed to the objective.
        state: of the round before.
        turn: t, from 0.
        received: the last broadcast, (1, M).
        objective: module and name of a function of ``records``, ``rng`` and a point.
        features: Φ, as :func:`~private_bo.sealed.choices.packed` writes it.
        settings: :class:`~private_bo.own.agent.AgentSettings`, likewise.
        draws: states of the generators of all agents, which have no privacy role.
        evaluations: how often the objective is asked.
        weight: of the report in the sum.
        clip: S.

    Returns:
        The clipped and weighted report, and the state.
    """
    number = next((int(each) for each in records["number"] if each is not None), 0)
    agent = Agent(unpacked(settings), number, unpacked(features), np.random.default_rng(0))
    if state is None:
        agent.rng.bit_generator.state = json.loads(draws[number])
    else:
        agent.resume(state)
        agent.receive(Broadcast(turn - 1, received))
    asked = function_of(objective)
    for _ in range(evaluations):
        question = agent.ask()
        agent.tell(question.number, asked(records, rng, question.point.tolist()))
    sent = clip_to_norm(agent.report(turn).vector, clip) * weight
    return sent.tolist(), agent.state
