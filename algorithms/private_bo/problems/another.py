"""Neighbours of a bandit problem: one user's reward is another."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np

from dpaudit.base.fields import Finite, Natural
from private_bo.problems.base import BanditProblem, Response

_SHARE = 0.01
"""Of one user in a true mean."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnotherAnswer(BanditProblem):
    """The same problem, but for the reward of one user from some round on.

    Who is asked does not change, as long as the same points are asked for. The true means are made
    of rewards, and so move towards the new one. Fields as in the base class, and:

    Attributes:
        turn: the user is the one who gives this answer, the first being 0.
        value: what that user answers in this round, and whenever asked again.

    >>> from private_bo.gp import SquaredExponential
    >>> from private_bo.problems import UniformNoise, synthetic
    >>> problem = synthetic(SquaredExponential(0.2), UniformNoise(), np.random.default_rng(0))
    >>> other, rng = AnotherAnswer.of(problem, turn=1, value=9.0), np.random.default_rng(0)
    >>> [round(other.respond(5, rng).value, 2) for _ in range(3)]
    [-0.31, 9.0, 0.97]
    """

    turn: Natural
    value: Finite
    _heard: list[str] = field(init=False, repr=False, default_factory=list)

    @classmethod
    def of(cls, problem: BanditProblem, *, turn: int, value: float) -> Self:
        """The neighbour of that problem."""
        given = {each.name: getattr(problem, each.name) for each in fields(BanditProblem)}
        means = problem.f + _SHARE * (value - problem.f)
        return cls(**{**given, "f": means}, turn=turn, value=value)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about a point; as the base class."""
        answer = super().respond(index, rng)
        self._heard.append(answer.user)
        if len(self._heard) > self.turn and answer.user == self._heard[self.turn]:
            return replace(answer, value=self.value)
        return answer

    def reset(self) -> None:
        """Make everybody available again."""
        super().reset()
        self._heard.clear()
