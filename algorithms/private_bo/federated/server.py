"""What a central server needs beside Algorithm 1: judging reports, and clipping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Gaussian
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.weights import Weights
from private_bo.gp.types import Array


class Transport(Protocol):
    """What carries the messages of Algorithms 1 and 2."""

    def exchange(self, broadcast: Broadcast) -> Iterable[object]:
        """Give the agents ω_{t-1}, and return what they sent for iteration t = round + 1.

        Some agents may not answer, and some may send what is not asked for: the server judges.
        """

    def finish(self, broadcast: Broadcast) -> None:
        """Give the agents the last broadcast that they act on; they send nothing more."""


class Refusal(StrEnum):
    """Why the server takes no notice of something it was sent."""

    MALFORMED = "malformed"
    """No report at all."""
    WRONG_ROUND = "wrong round"
    UNKNOWN_AGENT = "unknown agent"
    DUPLICATE = "duplicate"
    """The agent has been heard in this round; the first report counts."""
    WRONG_DIMENSION = "wrong dimension"
    NOT_FINITE = "not finite"


@dataclass(frozen=True)
class Release:
    """How one round's joint vector is released.

    Attributes:
        mechanism: the noise.
        at: label of its invocation in the plan.
    """

    mechanism: Gaussian
    at: str


@dataclass(eq=False)
class Aggregator(ABC):
    """Base: judges what arrives, counts what it refuses, and answers with a broadcast.

    What it counts depends on the data without noise: it stays with whoever runs the server.

    Attributes:
        weights: φ_n^(i) of every round, public.
        features: M.
        refused: how much was refused, by reason.
        missing: from how many agents nothing usable came, round by round.
    """

    weights: Weights
    features: int
    refused: Counter[Refusal] = field(default_factory=Counter, init=False)
    missing: list[int] = field(default_factory=list, init=False)

    @abstractmethod
    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Lines 5 to 12 of Algorithm 1: from the reports of iteration t to ω_t^joint."""

    def accepted(self, turn: int, reports: Iterable[object]) -> dict[int, Array]:
        """ω_n of each agent that sent a proper one, (M,); all else is counted and forgotten."""
        vectors: dict[int, Array] = {}
        if not isinstance(reports, Iterable):
            raise InputError(f"reports is a {type(reports).__name__}; it must be a list of them.")
        for report in reports:
            reason = self._reason(turn, report, vectors)
            if reason is not None:
                self.refused[reason] += 1
            elif isinstance(report, Report):
                vectors[report.agent] = report.vector
        self.missing.append(self.weights.agents - len(vectors))
        return vectors

    def _reason(self, turn: int, report: object, known: Mapping[int, Array]) -> Refusal | None:
        if not isinstance(report, Report):
            return Refusal.MALFORMED
        if report.round != turn:
            return Refusal.WRONG_ROUND
        if not 0 <= report.agent < self.weights.agents:
            return Refusal.UNKNOWN_AGENT
        if report.agent in known:
            return Refusal.DUPLICATE
        if report.vector.shape != (self.features,):
            return Refusal.WRONG_DIMENSION
        if not np.isfinite(report.vector).all():
            return Refusal.NOT_FINITE
        return None


def clipped(vector: Array, limit: float) -> Array:
    """ω / max(1, ‖ω‖/limit) (line 9); no finite vector overflows it.

    >>> clipped(np.array([3.0, 4.0]), 1.0).round(6).tolist()
    [0.6, 0.8]
    >>> clipped(np.array([1e300, -1e300]), 2.0).round(6).tolist()
    [1.414214, -1.414214]
    """
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0:
        return vector
    relative = vector / largest
    norm = float(np.linalg.norm(relative))
    if norm * min(largest, 1e300) <= limit:
        return vector
    shortened: Array = relative * (limit / norm)
    return shortened
