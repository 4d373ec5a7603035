"""What an agent of DP-FTS-DE does in a round, in a process of its own: Algorithm 2, for one agent.

What it keeps for its next round comes back to it as its state, and to nobody else. The server clips
what it sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from private_bo.federated.agents import AgentModel, Agents, Streams
from private_bo.federated.draws import clip_to_norm
from private_bo.federated.settings import Broadcast
from private_bo.sealed.choices import unpacked


def take_part(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    state: Any,
    *,
    turn: int,
    received: Any,
    weights: Any,
    limit: float,
    model: str,
    noise: float,
    words: Sequence[int],
) -> tuple[list[float], Any]:
    """Algorithm 2 for one iteration, and line 10 of Algorithm 1 for what is sent.

    Args:
        records: at first the own objective: ``point`` and ``value``, and the agent's ``number``.
        rng: not used: an agent's draws have no privacy role, and follow from ``words`` and number.
        state: of the iteration before.
        turn: t.
        received: the last broadcast, (P, M).
        weights: φ_n^(i)/q of all agents, (P, N).
        limit: S/√P.
        model: what all agents know, as :func:`~private_bo.sealed.choices.packed` writes it.
        noise: standard deviation of an observation.
        words: the seed of what all agents draw.

    Returns:
        (φ_n^(i)/q) ω̂_n for i = 1…P, one after another, (P M,), and the state.
    """
    known: AgentModel = unpacked(model)
    number, values, *earlier = state or _joined(records, len(known.grid))

    def observe(agent: int, point: int, draws: np.random.Generator) -> float:
        value = float(values[point])
        return value + noise * float(draws.standard_normal()) if noise else value

    agent = Agents(known, observe, [number], [Streams(tuple(words)).agent(number)])
    if earlier:
        agent.resume(*earlier)
    agent.act(Broadcast(turn - 1, received))
    shortened = clip_to_norm(agent.shared_draws()[0], limit)
    sent = np.outer(weights[:, number], shortened).ravel().tolist()
    return sent, (number, values, agent.state)


def _joined(records: Mapping[str, Sequence[Any]], size: int) -> tuple[int, Any]:
    """The number of an agent, and its objective: points that its table lacks have value 0."""
    values = np.zeros(size)
    for point, value in zip(records["point"], records["value"], strict=True):
        if point is not None and value is not None:
            values[int(point)] = value
    return next((int(each) for each in records["number"] if each is not None), 0), values
