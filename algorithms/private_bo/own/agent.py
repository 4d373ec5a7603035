"""One agent of a federated study: it asks its own objective, reports, and takes broadcasts."""

from __future__ import annotations

import math
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError
from private_bo.federated.draws import posterior_draws
from private_bo.federated.settings import Broadcast, Report
from private_bo.gp.types import Array
from private_bo.own.server import LandmarkFeatures, Question
from private_bo.redacted_errors import python_kind

_TRUST = (0.0, 1.0, 2.0, 4.0)
"""Multiples of the broadcast that an agent tries: means of few data are too short."""
_SPREAD = (1.0, 0.5, 0.25)
"""Of the prior deviation about it."""
_LEAST_VARIANCE = 1e-6
OUTSIDE: ContextVar[list[None] | None] = ContextVar("outside", default=None)
"""Where an experiment marks each answer that its range cuts off; a deployment counts none."""


def scale_answer(answer: Any, span: tuple[float, float]) -> float:
    """A private answer within the public range, scaled to [−½, ½].

    Raises:
        PublicError: if it is not one finite number; the sentence does not show it, nor how many.
    """
    own = None
    with suppress(InputError):  # whose sentence would allow an array
        own = validate.private(int(answer) if isinstance(answer, bool | np.bool_) else answer)
    if own is None:
        raise PublicError(
            f"answer, of type {python_kind(answer).__name__}, is no finite number; an objective "
            "must return one for each point and user."
        )
    if own.ndim != 0:
        raise PublicError("answer is an array; it must be one number.")
    low, high = span
    inside, marks = min(high, max(low, float(own))), OUTSIDE.get()
    if marks is not None and inside != own:
        marks.append(None)
    return (inside - low) / (high - low) - 0.5


@dataclass(frozen=True)
class AgentSettings:
    """Public facts of a federated study that an agent rests on, as the study has them.

    Attributes:
        entries: how many numbers a report has.
    """

    answers: tuple[float, float]
    deviation: float
    answer_deviation: float
    exploration: float
    entries: int


@dataclass(eq=False)
class Agent:
    """One agent: asks, is told, reports, receives. All that it holds is its own.

    Attributes:
        study: public configuration.
        number: from 0.
        features: Φ, the same for all.
        rng: its own.
    """

    study: AgentSettings
    number: int
    features: LandmarkFeatures
    rng: np.random.Generator
    _asked: list[Array] = field(default_factory=list, init=False, repr=False)
    _told: dict[int, float] = field(default_factory=dict, init=False, repr=False)
    _received: Array | None = field(default=None, init=False, repr=False)

    @property
    def state(self) -> tuple[Any, ...]:
        """What it was asked, told and sent, and where its generator is."""
        return self._asked, self._told, self._received, self.rng.bit_generator.state

    def resume(self, state: tuple[Any, ...]) -> None:
        """Go on from a :attr:`state`."""
        self._asked, self._told, self._received, self.rng.bit_generator.state = state

    def ask(self) -> Question:
        """Where to evaluate next; earlier questions may be unanswered."""
        point = self.features.argmax(self._theta(self.study.exploration))
        self._asked.append(point)
        return Question(len(self._asked) - 1, self.number, point)

    def tell(self, number: int, value: Any) -> None:
        """Learn what was found for a question.

        Raises:
            InputError: if it was not asked, or has been told, or the value is not a finite number.
        """
        if number not in range(len(self._asked)) or number in self._told:
            raise InputError(f"number is {number!r}; it must be of a question that is unanswered.")
        self._told[number] = scale_answer(value, self.study.answers)

    def report(self, turn: int) -> Report:
        """What the server is sent: the posterior mean of the own data alone. Private.

        Args:
            turn: the round, from 0.
        """
        mean = self._posterior(np.zeros(self.features.size), self.study.deviation, 0.0)
        return Report(turn, self.number, np.pad(mean, (0, self.study.entries - mean.size)))

    def receive(self, broadcast: Broadcast) -> None:
        """Take a broadcast for the mean of the prior, from now on."""
        vectors = validate.instance(Broadcast, broadcast=broadcast).vectors
        if vectors.shape != (shape := (1, self.study.entries)):
            raise InputError(f"broadcast has vectors of shape {vectors.shape}; it must be {shape}.")
        self._received = vectors[0, : self.features.size]

    def best(self) -> Array:
        """The point of largest posterior mean, (d,). Private."""
        return self.features.argmax(self._theta(0.0))

    def _theta(self, exploration: float) -> Array:
        return self._posterior(*self._prior(), exploration)

    @property
    def _data(self) -> tuple[Array, Array]:
        """Features (t, m) and scaled answers (t,)."""
        places = sorted(self._told)
        if not places:
            return np.empty((0, self.features.size)), np.empty(0)
        phi = self.features(np.array([self._asked[each] for each in places]))
        return phi, np.array([self._told[each] for each in places])

    @property
    def _variance(self) -> float:
        return max(self.study.answer_deviation**2, _LEAST_VARIANCE)

    def _prior(self) -> tuple[Array, float]:
        """Mean and deviation of the prior: the likeliest multiple of the broadcast."""
        deviation, nothing = self.study.deviation, np.zeros(self.features.size)
        if self._received is None:
            return nothing, deviation
        phi, seen = self._data
        gram, expected = phi @ phi.T, phi @ self._received
        best, chosen = -math.inf, (nothing, deviation)
        for share in _SPREAD:
            root = np.linalg.cholesky(
                (share * deviation) ** 2 * gram + self._variance * np.eye(len(seen))
            )
            volume = 2 * float(np.log(root.diagonal()).sum())
            for trust in _TRUST:
                misfit = np.linalg.solve(root, seen - trust * expected)
                value = -float(misfit @ misfit) - volume
                if value > best:
                    best, chosen = value, (trust * self._received, share * deviation)
        return chosen

    def _posterior(self, prior: Array, deviation: float, exploration: float) -> Array:
        """A draw of θ given the own data, its deviation times ``exploration``."""
        phi, seen = self._data
        draws = [exploration * self.rng.normal(size=(1, n)) for n in reversed(phi.shape)]
        missing, variance = (seen - phi @ prior)[None], np.array([self._variance])
        moved = posterior_draws(deviation * phi[None], missing, variance, *draws)
        return np.asarray(prior + deviation * moved[0])
