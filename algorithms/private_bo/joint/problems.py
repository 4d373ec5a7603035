"""Problems whose users each bring a decision set: those of Dubey 2021, Section 6."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from private_bo.gp import Ball, Box, SquaredExponential
from private_bo.gp.types import Array


class DecisionProblem(ABC):
    """A sequence of users, each with a decision set and a reward for each arm of it.

    All of it is private to the user of the round.
    """

    name: str

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many users there are."""

    @abstractmethod
    def decision_set(self, turn: int) -> Array:
        """The arms of user ``turn`` (from 0), shape (n, d)."""

    @abstractmethod
    def reward(self, turn: int, arm: int) -> float:
        """What user ``turn`` answers to an arm."""

    @abstractmethod
    def means(self, turn: int) -> Array:
        """Mean rewards of the arms of user ``turn``, (n,): for evaluation only."""

    def regret(self, choices: Sequence[int]) -> Array:
        """Cumulative pseudo-regret of the arms chosen so far, (len(choices),)."""
        gaps = [
            float((means := self.means(turn)).max() - means[arm])
            for turn, arm in enumerate(choices)
        ]
        return np.cumsum(gaps)

    def uniform_regret(self) -> float:
        """Expected regret of choosing at random."""
        gaps = [(means := self.means(turn)).max() - means.mean() for turn in range(self.rounds)]
        return float(np.sum(gaps))


@dataclass(frozen=True, eq=False)
class TabledProblem(DecisionProblem):
    """A problem written out in full.

    Attributes:
        name: for reports.
        arms: (T, n, d).
        table: mean rewards, (T, n).
        noise: the randomness of each user's answer, (T,): uniform on [0, 1] for Bernoulli rewards,
            else added to the mean.
        bernoulli: whether rewards are 0 or 1.
    """

    name: str
    arms: Array
    table: Array
    noise: Array
    bernoulli: bool = True

    @property
    def rounds(self) -> int:
        """T, the number of users."""
        return len(self.arms)

    def decision_set(self, turn: int) -> Array:
        """The arms of user ``turn`` (from 0), (n, d)."""
        return np.asarray(self.arms[turn])

    def reward(self, turn: int, arm: int) -> float:
        """The same answer whenever it is asked."""
        mean, noise = float(self.table[turn, arm]), float(self.noise[turn])
        return float(noise < mean) if self.bernoulli else mean + noise

    def means(self, turn: int) -> Array:
        """Mean rewards of the arms of user ``turn``, (n,)."""
        return np.asarray(self.table[turn])


@dataclass(frozen=True, eq=False)
class AnotherUser(DecisionProblem):
    """The neighbour of a problem: one user is another.

    Attributes:
        name: for reports.
        problem: with the user.
        turn: which user, from 0.
        arms: the decision set, (n, d); None for that of the problem.
        answer: the reward for every arm.
    """

    name: str
    problem: DecisionProblem
    turn: int
    arms: Array | None
    answer: float

    @property
    def rounds(self) -> int:
        """T, the number of users."""
        return self.problem.rounds

    def decision_set(self, turn: int) -> Array:
        """The arms of user ``turn`` (from 0), (n, d)."""
        if turn == self.turn and self.arms is not None:
            return self.arms
        return self.problem.decision_set(turn)

    def reward(self, turn: int, arm: int) -> float:
        """What user ``turn`` answers to an arm."""
        return self.answer if turn == self.turn else self.problem.reward(turn, arm)

    def means(self, turn: int) -> Array:
        """Mean rewards of the arms of user ``turn``, (n,): the other user always answers alike."""
        if turn == self.turn:
            return np.full(len(self.decision_set(turn)), self.answer)
        return self.problem.means(turn)


def bump(rng: np.random.Generator, steps: int = 1024, arms: int = 25) -> TabledProblem:
    """The synthetic problem of Section 6.1.

    f = Σ_{i<=4} a_i k(x_i, ·) with k the squared exponential, l = 1, x_i uniform in the ball of
    radius 2 and ‖a‖₁ = 1, drawn again until max f >= 0.8. Each round has one arm with f >= 0.8,
    uniform among such points, and others with f <= 0.6. Rewards are Bernoulli(f).

    Raises:
        InputError: if ``steps`` or ``arms`` is not positive.
    """
    steps = validate.integer_at_least(1, steps=steps)
    arms = validate.integer_at_least(1, arms=arms)
    ball, kernel = Ball(2.0, 2), SquaredExponential(1.0)
    scan = ball.lattice(0.1)
    while True:
        centres = ball.sample(4, rng)
        weights = rng.exponential(size=4) * rng.choice([-1.0, 1.0], size=4)
        weights /= np.abs(weights).sum()
        if float((kernel(scan, centres) @ weights).max()) >= 0.8:
            break

    def f(points: Array) -> Array:
        return np.asarray(kernel(points, centres) @ weights)

    good, bad = np.empty((0, 2)), np.empty((0, 2))
    while len(good) < 2_000 or len(bad) < 20_000:
        points = ball.sample(40_000, rng)
        values = f(points)
        good = np.concatenate([good, points[values >= 0.8]])
        bad = np.concatenate([bad, points[values <= 0.6]])
    chosen = bad[rng.integers(len(bad), size=(steps, arms))]
    place = rng.integers(arms, size=steps)
    chosen[np.arange(steps), place] = good[rng.integers(len(good), size=steps)]
    table = f(chosen.reshape(-1, 2)).reshape(steps, arms)
    return TabledProblem("bump", chosen, table, rng.uniform(size=steps))


@dataclass(frozen=True)
class Benchmark:
    """A test function on [−½, ½]^d (Mutny & Krause 2018), scaled to [0, 1].

    Attributes:
        name: of the function.
        dimension: d.
        extremes: bounds of its raw values, which the scale is made from.
    """

    name: str
    dimension: int
    extremes: tuple[float, float]

    @property
    def domain(self) -> Box:
        """The cube [−½, ½]^d."""
        return Box((-0.5, 0.5), self.dimension)

    def __call__(self, X: Array) -> Array:
        """Values to be maximised, within [0, 1], (n,), for points (n, d)."""
        low, high = self.extremes
        return np.asarray((self.raw(X) - low) / (high - low))

    def raw(self, X: Array) -> Array:
        """Values before scaling, (n,)."""
        if self.name == "camelback":
            x, y = 4 * X[:, 0], 2 * X[:, 1]
            six = (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2
            return np.asarray(-six / 5)
        if self.name == "styblinski-tang":
            z = 8 * X
            total = (z**4 - 16 * z**2 + 5 * z).sum(axis=1)
            return np.asarray(-(total / 2 / (200 * self.dimension) + 0.5))
        z = (X / 0.75 + 0.5) * math.pi
        steps = np.arange(1, self.dimension + 1)
        michalewicz: Array = (np.sin(z) * np.sin(steps * z**2 / math.pi) ** 20).sum(axis=1)
        return michalewicz / self.dimension


BENCHMARKS = {
    "camelback": Benchmark("camelback", 2, (-1.1467, 0.20633)),
    "styblinski-tang-20": Benchmark("styblinski-tang", 20, (-0.525, -0.30416)),
    "michalewicz-10": Benchmark("michalewicz", 10, (-0.5, 0.96602)),
}
"""The functions of Table 1."""


def benchmark(
    name: str, rng: np.random.Generator, steps: int = 10_000, arms: int = 25, noise: float = 0.1
) -> TabledProblem:
    """A function of Table 1: every round has ``arms`` uniform points, and normal noise.

    Raises:
        InputError: if there is no such function, or a number is out of range.
    """
    if name not in BENCHMARKS:
        raise InputError(f"name is {name!r}; it must be one of {', '.join(BENCHMARKS)}.")
    steps = validate.integer_at_least(1, steps=steps)
    arms = validate.integer_at_least(1, arms=arms)
    function = BENCHMARKS[name]
    points = function.domain.sample(steps * arms, rng)
    table = function(points).reshape(steps, arms)
    shape = (steps, arms, function.dimension)
    errors = rng.normal(scale=validate.positive(noise=noise), size=steps)
    return TabledProblem(name, points.reshape(shape), table, errors, bernoulli=False)
