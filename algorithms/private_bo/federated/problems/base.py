"""Federated problems: one objective for every agent, over one public grid."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural, NonNegative
from private_bo.experiments import in_parallel
from private_bo.gp.types import Array, array_of, read_only
from private_bo.threads import single_threaded


def unit_grid(per_axis: int, dimensions: int = 1) -> Array:
    """The grid {0, 1/(m-1), ..., 1}^d, shape (m^d, d), last coordinate fastest.

    It has both ends of every axis, and for even m no point in the middle, so that halves of the
    unit cube hold equally many points.

    Args:
        per_axis: m >= 2, the number of values of each coordinate.
        dimensions: d >= 1.

    Raises:
        InputError: if an argument is out of range.

    >>> unit_grid(2, dimensions=2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    axis = np.linspace(0.0, 1.0, validate.integer_at_least(2, per_axis=per_axis))
    depth = validate.integer_at_least(1, dimensions=dimensions)
    mesh = np.meshgrid(*[axis] * depth, indexing="ij")
    return np.stack([coordinate.ravel() for coordinate in mesh], axis=1)


class Objective(ABC):
    """One agent's objective over the grid; nobody else holds it. The same value at every call."""

    @property
    @abstractmethod
    def size(self) -> int:
        """G, the number of points."""

    @abstractmethod
    def value(self, index: int) -> float:
        """The objective at a point, 0 <= index < G, without noise."""

    def values(self) -> Array:
        """The objective at all points, (G,), read-only."""
        with single_threaded():
            return read_only(np.array([self.value(index) for index in range(self.size)]))


@dataclass(frozen=True, eq=False)
class TabledObjective(Checked, Objective):
    """An objective written out in full.

    Attributes:
        table: its values, (G,); a read-only copy is kept.

    Raises:
        InputError: if the table is empty, not a vector or not finite.
    """

    table: Annotated[Array, array_of("G")] = field(repr=False)

    @property
    def size(self) -> int:
        """G, the number of points."""
        return int(self.table.size)

    def value(self, index: int) -> float:
        """The entry of the table."""
        return float(self.table[index])

    def values(self) -> Array:
        """The table, (G,), read-only."""
        return self.table


class EvaluatedObjective(Objective):
    """An objective that is costly: a point is evaluated when first asked for, and then kept.

    An evaluation depends on the point alone, so values do not depend on the order of questions.
    """

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    @abstractmethod
    def evaluate(self, index: int) -> float:
        """The value at a point; deterministic."""

    def value(self, index: int) -> float:
        """The value, evaluated when first asked for."""
        if index not in self._known:
            self._known[index] = self.evaluate(index)
        return self._known[index]


@dataclass(frozen=True, eq=False)
class FederatedProblem(Checked):
    """Agents that each maximise an objective of their own over one public grid.

    Attributes:
        name: what the problem is called in reports.
        domain: the public grid, (G, d), within the unit cube; a read-only copy is kept.
        objectives: one for each agent, each private to it.
        noise: standard deviation of an observation's normal noise, at least 0.

    Raises:
        InputError: if the grid is empty or leaves the unit cube, there is no agent, an objective
            has another number of points, or ``noise`` is negative.

    >>> problem = FederatedProblem.tabled("two agents", unit_grid(3), [[0, 1, 0], [0, 0, 2]])
    >>> problem.agents, problem.size, problem.optimum.tolist()
    (2, 3, [1.0, 2.0])
    >>> problem.observe(1, 2, np.random.default_rng(0))
    2.0
    """

    name: str
    domain: Annotated[Array, array_of("G", "d")] = field(repr=False)
    objectives: tuple[Objective, ...] = field(repr=False)
    noise: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        domain = self.domain
        if domain.min() < 0 or domain.max() > 1:
            raise InputError(
                f"domain goes from {domain.min():g} to {domain.max():g}; all points must be within "
                "[0, 1]^d."
            )
        if not self.objectives:
            raise InputError("objectives is empty; it must hold one for each agent.")
        for agent, objective in enumerate(self.objectives):
            if objective.size != len(domain):
                raise InputError(
                    f"objectives has {objective.size} values for agent {agent}; it must have one "
                    f"for each of {len(domain)} points."
                )

    @classmethod
    def tabled(
        cls, name: str, domain: Array, table: Iterable[Iterable[float]], noise: float = 0.0
    ) -> FederatedProblem:
        """A problem whose objectives are the rows of a table (N, G).

        Raises:
            InputError: as for the class, or if a row is not finite.
        """
        rows = tuple(TabledObjective(np.asarray(row)) for row in table)
        return cls(name, domain, rows, noise)

    def with_agent(self, agent: int, objective: Objective) -> FederatedProblem:
        """The same problem with another objective of one agent."""
        others = [*self.objectives]
        others[agent] = objective
        return replace(self, objectives=tuple(others))

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return len(self.objectives)

    @property
    def size(self) -> int:
        """G, the number of points."""
        return int(self.domain.shape[0])

    @property
    def dimension(self) -> int:
        """d, the number of coordinates."""
        return int(self.domain.shape[1])

    def value(self, agent: int, index: int) -> float:
        """An agent's objective at a point, without noise.

        Raises:
            InputError: if there is no such agent or point.
        """
        objective = self._objective(agent)
        if not 0 <= index < self.size:
            raise InputError(f"index is {index!r}; it must be from 0 to {self.size - 1}.")
        return objective.value(int(index))

    def observe(self, agent: int, index: int, rng: np.random.Generator) -> float:
        """What an agent observes at a point: its objective and, if there is any, noise.

        Args:
            agent: 0 <= agent < N.
            index: row number of the point, 0 <= index < G.
            rng: the agent's own source of noise; untouched where ``noise`` is 0.

        Raises:
            InputError: if there is no such agent or point.
        """
        value = self.value(agent, index)
        return value + self.noise * float(rng.standard_normal()) if self.noise else value

    def values(self, agent: int) -> Array:
        """An agent's objective at all points, (G,), for evaluation only.

        Raises:
            InputError: if there is no such agent.
        """
        return self._objective(agent).values()

    @cached_property
    def table(self) -> Array:
        """All objectives, (N, G), read-only: for evaluation only; no party of the protocol has it.

        The first use evaluates every point of every agent, in as many processes as there are
        processors where that is costly.
        """
        costly = any(isinstance(each, EvaluatedObjective) for each in self.objectives)
        return read_only(np.stack(self._rows((os.cpu_count() or 1) if costly else 1)))

    @cached_property
    def optimum(self) -> Array:
        """The largest value of each agent's objective on the grid, (N,)."""
        return read_only(self.table.max(axis=1))

    def evaluated(self, workers: int = 1) -> FederatedProblem:
        """The same problem with every value computed, for many runs.

        Args:
            workers: processes; the values do not depend on them.

        Raises:
            InputError: if ``workers`` is not a positive integer.
        """
        jobs = validate.integer_at_least(1, workers=workers)
        return self.tabled(self.name, self.domain, self._rows(jobs), self.noise)

    def _rows(self, workers: int) -> list[Array]:
        return in_parallel(_values_of, ((each,) for each in self.objectives), workers)

    def _objective(self, agent: int) -> Objective:
        if not 0 <= agent < self.agents:
            raise InputError(f"agent is {agent!r}; it must be from 0 to {self.agents - 1}.")
        return self.objectives[int(agent)]


@dataclass(frozen=True)
class WithoutAgent(Checked):
    """The neighbour of a problem: one agent's contributions are zero; N and weights stay.

    Attributes:
        problem: with the agent.
        agent: whose vectors are taken for zero in every round.

    Raises:
        InputError: if there is no such agent.
    """

    problem: FederatedProblem
    agent: Natural

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.agent >= self.problem.agents:
            raise InputError(f"agent is {self.agent}; it must be below {self.problem.agents}.")


@dataclass(frozen=True, eq=False)
class Distorted(Objective):
    """An objective times a factor, such as one far beyond what others have.

    Attributes:
        objective: the original.
        factor: of its values.
    """

    objective: Objective
    factor: float

    @property
    def size(self) -> int:
        """G, the number of points."""
        return self.objective.size

    def value(self, index: int) -> float:
        """That of the original, times the factor."""
        return self.factor * self.objective.value(index)


def _values_of(objective: Objective) -> Array:
    """The values of an objective, in a worker process."""
    return objective.values()
