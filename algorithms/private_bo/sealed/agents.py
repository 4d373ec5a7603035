"""What an agent of DP-FTS-DE does: act on its own objective, and send what it has learned.

It runs in a process of its own for every agent and round, in numpy alone. What it keeps for its
next round comes back to it as its state, and to nobody else. The server clips what it sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from private_bo.federated.draws import (
    clip_to_norm,
    fitted_on,
    kernel_root,
    likeliest,
    posterior_draws,
    squared_exponential,
    standardised,
)


def take_part(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    state: Any,
    *,
    turn: int,
    received: int,
    share: float,
    weights: Any,
    limit: float,
    **public: Any,
) -> tuple[list[float], Any]:
    """Algorithm 2 for one iteration, and line 10 of Algorithm 1 for what is sent.

    Args:
        records: at first the own objective: ``point`` and ``value``, and the agent's ``number``.
        rng: not used: an agent's draws have no privacy role, and follow from ``words`` and number.
        state: of the iteration before.
        turn: t.
        received: the point that the last broadcast likes best.
        share: p_t, with which the own process is followed.
        weights: φ_n^(i)/q of all agents, (P, N).
        limit: S/√P.
        public: see :class:`_Agent`.

    Returns:
        (φ_n^(i)/q) ω̂_n for i = 1…P, one after another, (P M,), and the state.
    """
    agent = _Agent(public, state or _joined(records, public))
    agent.act(turn, received, share)
    shortened = clip_to_norm(agent.shared_draw(), limit)
    return np.outer(weights[:, agent.number], shortened).ravel().tolist(), agent.state


def _joined(records: Mapping[str, Sequence[Any]], public: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an agent that has seen nothing: points that its table lacks have value 0."""
    values = np.zeros(len(public["grid"]))
    for point, value in zip(records["point"], records["value"], strict=True):
        if point is not None and value is not None:
            values[int(point)] = value
    number = next((int(each) for each in records["number"] if each is not None), 0)
    words = np.random.SeedSequence(tuple(public["words"]), spawn_key=(1, number))
    return {
        "values": values,
        "number": number,
        "draws": np.random.default_rng(words).bit_generator.state,
        "choices": np.empty(0, dtype=np.intp),
        "seen": np.empty(0),
    }


class _Agent:
    """One agent.

    Args:
        public: ``grid`` (G, d) and ``regions`` of its points (G,), ``initial``, ``noise`` of an
            observation, ``scales`` and ``variances`` of the own process, ``refit_every`` (0 for
            never), ``beta``, ``offset`` and ``scale`` of observations (0 where each agent takes its
            own), ``frequencies`` of the shared features, ``noise_variance``, and ``words``.
        state: what it holds.
    """

    def __init__(self, public: Mapping[str, Any], state: dict[str, Any]) -> None:
        self._public = public
        self.number: int = state["number"]
        self._values, self._choices, self._seen = (
            state[name] for name in ("values", "choices", "seen")
        )
        self._draws = np.random.default_rng(0)
        self._draws.bit_generator.state = state["draws"]

    @property
    def state(self) -> dict[str, Any]:
        """All that it holds."""
        return {
            "values": self._values,
            "number": self.number,
            "draws": self._draws.bit_generator.state,
            "choices": self._choices,
            "seen": self._seen,
        }

    def act(self, turn: int, received: int, share: float) -> None:
        """Lines 1 to 9 of Algorithm 2."""
        public = self._public
        if not len(self._choices):  # lines 1-2
            regions = public["regions"]
            inside = np.flatnonzero(regions == self.number % (regions.max() + 1))
            repeat = inside.size < public["initial"]
            self._query(self._draws.choice(inside, size=public["initial"], replace=repeat))
        if turn == 0:
            return
        own = self._draws.random() <= share  # lines 4-5
        point = self._own_maximum() if own else received  # lines 6-8
        self._query(np.array([point]))  # line 9

    def _query(self, points: Any) -> None:
        noise = self._public["noise"]
        seen = [
            self._values[point] + noise * float(self._draws.standard_normal())
            if noise
            else self._values[point]
            for point in points
        ]
        self._choices = np.concatenate([self._choices, points])
        self._seen = np.concatenate([self._seen, seen])

    def _own_maximum(self) -> int:
        public = self._public
        scale, variance = self._fitted()
        root = kernel_root(
            lambda X, Y: squared_exponential(X, Y, float(public["scales"][scale])), public["grid"]
        )
        drawn = self._draw(root[self._choices], public["variances"][variance], public["beta"])
        return int((root @ drawn).argmax())

    def _fitted(self) -> tuple[int, int]:
        public = self._public
        every = public["refit_every"] or None
        count = fitted_on(len(self._choices), public["initial"], every)
        if not count:
            return 0, 0
        points = public["grid"][self._choices[:count]]
        return likeliest(points, self._targets(count), public["scales"], public["variances"])

    def shared_draw(self) -> Any:
        """ω_n from its posterior (2) (line 10)."""
        angles = self._public["grid"][self._choices] @ self._public["frequencies"].T
        features = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        features *= np.sqrt(1 / angles.shape[1])
        return self._draw(features, self._public["noise_variance"], 1.0)

    def _draw(self, features: Any, variance: float, beta: float) -> Any:
        prior = beta * self._draws.standard_normal((1, features.shape[1]))
        noise = beta * self._draws.standard_normal((1, len(features)))
        targets = self._targets(len(features))[None]
        return posterior_draws(features[None], targets, np.array([variance]), prior, noise)[0]

    def _targets(self, count: int) -> Any:
        seen, public = self._seen[:count], self._public
        if not public["scale"]:
            return standardised(seen[None])[0]
        return (seen - public["offset"]) / public["scale"]
