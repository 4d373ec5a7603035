"""What an algorithm of the paper is made of: a learner, and a schedule of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from dpaudit.base.errors import InputError
from private_bo.local.schedules import Constants, Schedule, theorem_plays_per_epoch
from private_bo.local.users import Outcome, Users
from private_bo.problems import BanditProblem
from private_bo.threads import single_threaded

_Schedule = TypeVar("_Schedule", bound=Schedule)


@dataclass(frozen=True)
class Algorithm(Generic[_Schedule]):
    """A learner with its schedule.

    Attributes:
        learner: plays all rounds, given users, schedule and a generator without privacy role.
        schedule: the thresholds and widths, of public constants.
    """

    learner: Callable[[Users, _Schedule, np.random.Generator], Outcome]
    schedule: Callable[[Constants], _Schedule]

    def play(self, users: Users, constants: Constants, rng: np.random.Generator) -> Outcome:
        """Play every round, on one thread.

        Args:
            users: whom to ask.
            constants: what the schedule follows from.
            rng: source of the dictionaries.
        """
        with single_threaded():
            return self.learner(users, self.schedule(constants), rng)


class Epochs:
    """Mixin of MoMA-GP-UCB, which asks k users about each point (Algorithm 3, line 3).

    The dataclass has the fields ``steps`` (T), ``confidence`` (δ of the regret bound) and
    ``plays_per_epoch`` (k, or None for the theorem's).
    """

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        steps: int
        confidence: float
        plays_per_epoch: int | None

    @property
    def plays(self) -> int:
        """k, as given or as Theorem 4 has it."""
        if self.plays_per_epoch is not None:
            return self.plays_per_epoch
        return theorem_plays_per_epoch(self.steps, self.confidence)

    @property
    def epochs(self) -> int:
        """N = ⌊T/k⌋.

        Raises:
            InputError: if there is not one whole epoch.
        """
        if self.steps < self.plays:
            raise InputError(
                f"steps is {self.steps}; it must be at least the number of plays per epoch, "
                f"{self.plays}."
            )
        return self.steps // self.plays


def bandit_problem(**field: object) -> BanditProblem:
    """The value as a problem whose users can be asked.

    Raises:
        InputError: if it is none.
    """
    ((name, value),) = field.items()
    if not isinstance(value, BanditProblem):
        raise InputError(f"{name} is a {type(value).__name__}; it must be a BanditProblem.")
    return value
