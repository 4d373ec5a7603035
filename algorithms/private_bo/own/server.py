"""The server of a study: asks, is told what was released, and recommends. It holds nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Finite, Natural, Positive
from private_bo.gp.types import Array, array_of
from private_bo.own.features import Belief, LandmarkFeatures


@dataclass(frozen=True, eq=False)
class Question(Checked):
    """What one user is asked; public.

    Attributes:
        number: of the question, from 0.
        group: of users who are asked about the same point, from 0.
        point: (d,), read-only.
    """

    number: Natural
    group: Natural
    point: Annotated[Array, array_of("d")] = field(repr=False)


@dataclass(frozen=True)
class Released(Checked):
    """What left the ledger about one point: noisy, and all that a server is told.

    Attributes:
        group: which questions it answers.
        value: noisy mean answer, in the units of the answers.
        variance: of the value about the objective, a public number.
    """

    group: Natural
    value: Finite
    variance: Positive


@dataclass(eq=False)
class Server:
    """Thompson sampling from releases, asynchronous: several questions may wait at once.

    Among several feature maps (kernels), the one under which the releases are likeliest is used.

    Attributes:
        maps: candidates; at least one.
        answers: (low, high), public range of an answer.
        groups: how many points may be asked about.
        group_size: how many users are asked about each.
        users: how many users there are; the last group may be smaller.
        deviation: prior deviation of the objective, in units of the range.
        exploration: factor on the deviation of a draw: it falls evenly from 1, which is Thompson
            sampling, but not below this.
        rng: of the draws, which have no privacy role.
        trace: what was released, with its point, in the order of arrival.
    """

    maps: Sequence[LandmarkFeatures]
    answers: tuple[float, float]
    users: int
    group_size: int
    deviation: float
    exploration: float
    rng: np.random.Generator
    trace: list[tuple[Array, Released]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._beliefs = [Belief(each.size, self.deviation) for each in self.maps]
        self._asked = 0
        self._points: list[Array] = []
        self._told: set[int] = set()

    def ask(self) -> Question:
        """The next question, for a user who has not been asked; earlier ones may be unanswered.

        Raises:
            InputError: if all users have been asked.
        """
        if self._asked >= self.users:
            raise InputError(f"users is {self.users}, and all have been asked; declare more.")
        if self._asked % self.group_size == 0:
            best = self._best
            factor = max(self.exploration, 1 - self._asked / self.users)
            draw = self._beliefs[best].draw(self.rng, factor)
            self._points.append(self.maps[best].argmax(draw))
        self._asked += 1
        group = len(self._points) - 1
        return Question(self._asked - 1, group, self._points[group])

    def tell(self, released: Released) -> None:
        """Learn from a release, in whatever order they come.

        Raises:
            InputError: if it answers no question, or one that has been answered.
        """
        if not isinstance(released, Released):
            raise InputError(f"released is a {type(released).__name__}; it must be a Released.")
        if released.group >= len(self._points):
            raise InputError(
                f"group is {released.group}, which was not asked; it must be below "
                f"{len(self._points)}."
            )
        if released.group in self._told:
            raise InputError(f"group is {released.group}, which has been told; tell it once.")
        self._told.add(released.group)
        point = self._points[released.group]
        self._learn(point, released.value, released.variance)
        self.trace.append((point, released))

    def inform(self, points: Array, values: Array, deviation: float) -> None:
        """Learn from public data, such as of an earlier study.

        Args:
            points: (n, d).
            values: of the objective there, (n,), in the units of the answers.
            deviation: of their errors.

        Raises:
            InputError: if they do not fit together.
        """
        known = array_of("n")(values=values)
        chosen = array_of("n", "d")(points=points)
        spread = validate.positive(deviation=deviation)
        if len(known) != len(chosen):
            raise InputError(f"values has {len(known)} entries; it must have {len(chosen)}.")
        low, high = self.answers
        if max(np.abs(known).max(), spread, (high - low) / spread) > 1e100:  # squares overflow
            raise InputError(
                f"deviation is {spread:g}; it and values must be at most 1e100, and not much less "
                "than the range of answers."
            )
        for point, value in zip(chosen, known, strict=True):
            self._learn(point, float(value), spread**2)

    def best(self) -> Array:
        """The recommended point: of largest posterior mean, (d,)."""
        return self.maps[self._best].argmax(self._beliefs[self._best].mean)

    def mean(self, X: Array) -> Array:
        """What the server believes of the objective at the rows of ``X`` (n, d), (n,)."""
        low, high = self.answers
        shape = self.maps[self._best](X) @ self._beliefs[self._best].mean
        return np.asarray((shape + 0.5) * (high - low) + low)

    @property
    def _best(self) -> int:
        return int(np.argmax([belief.evidence for belief in self._beliefs]))

    def _learn(self, point: Array, value: float, variance: float) -> None:
        low, high = self.answers
        scaled, spread = (value - low) / (high - low) - 0.5, variance / (high - low) ** 2
        for each, belief in zip(self.maps, self._beliefs, strict=True):
            belief.observe(each(point[None])[0], scaled, spread)
