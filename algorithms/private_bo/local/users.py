"""Asking users through a channel: the one place where an algorithm meets a reward."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dpaudit.base.errors import InputError
from private_bo.gp.types import Array, Indices
from private_bo.problems import BanditProblem, RealSellers, RewardSource

Channel: TypeAlias = Callable[[str, float], float]
"""What happens to a user's raw reward on its way to the learner: (user, reward) -> response."""


def in_the_clear(user: str, reward: float) -> float:
    """The channel of the non-private algorithms: the learner sees the reward.

    Raises:
        InputError: if it is no finite number.
    """
    try:
        if math.isfinite(reward):
            return reward
    except TypeError:
        pass
    raise InputError(f"reward of {user!r} is {reward!r:.60}; it must be one finite number.")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an algorithm did and believes in the end.

    Attributes:
        choices: row number of the point of every response, (T,).
        mean: posterior mean of every point, (n,), in the units of the reward.
    """

    choices: Indices
    mean: Array

    @property
    def recommended(self) -> int:
        """The played point of largest posterior mean, the first of equals."""
        played = np.unique(self.choices)
        return int(played[self.mean[played].argmax()])


@dataclass(eq=False)
class Users:
    """The users of one problem, as an algorithm meets them.

    Attributes:
        problem: where and whom to ask.
        channel: what a reward passes before the algorithm sees it.
        rng: source of the rewards; it draws no privacy noise.
        plays: how many users are asked about a point in a row.
    """

    problem: BanditProblem
    channel: Channel
    rng: np.random.Generator
    plays: int = 1
    _choices: list[int] = field(init=False, repr=False, default_factory=list)
    _unlimited: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        source = type(self.problem.rewards)
        self._unlimited = source.available is RewardSource.available

    def choose(self, scores: Array) -> int:
        """The point of largest score, the first of equals, among those with enough users left.

        Raises:
            InputError: if no point has enough.
        """
        if self._unlimited:
            return int(scores.argmax())
        playable = self._playable()
        if not playable.any():
            raise InputError(
                f"steps is too large for {self.problem.name!r}: after {len(self._choices)} answers "
                f"no point has {self.plays} more; it must be smaller."
            )
        return int(np.where(playable, scores, -np.inf).argmax())

    def _playable(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which points have ``plays`` users left."""
        available = self.problem.available
        source = self.problem.rewards
        if self.plays == 1 or not isinstance(source, RealSellers):
            return available
        answers = np.array([len(sales) for sales in source.sellers]) * source.answers_per_user
        asked = np.bincount(np.array(self._choices, dtype=np.intp), minlength=answers.size)
        return np.asarray(available & (answers - asked >= self.plays))

    def ask(self, index: int) -> float:
        """One user's response about a point, after the channel."""
        answer = self.problem.respond(index, self.rng)
        response = self.channel(answer.user, answer.value)
        self._choices.append(index)
        return response

    def outcome(self, mean: Array) -> Outcome:
        """The record of the run, given the final posterior mean."""
        return Outcome(np.array(self._choices, dtype=np.intp), np.array(mean))
