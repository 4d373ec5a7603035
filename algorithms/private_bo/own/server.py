"""The server of a study: asks, is told what was released, and recommends. It holds nothing else.

It believes in features of any kernel on any space, and in what noisy values of them leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Finite, Natural, Positive, Rate
from private_bo.gp import FeatureMap, Kernel, SquaredExponential
from private_bo.gp.types import Array, array_of

_RANK = 1e-9
"""Least eigenvalue that is kept, relative to the largest: smaller ones are rounding."""


@dataclass(frozen=True, eq=False)
class LandmarkFeatures(Checked, FeatureMap):
    """A constant, and the leading eigenvectors of a kernel on public landmarks of a space.

    Φ(x) = (√s, √(1−s) Λ^(−½) Uᵀ k_G(x)) with (Λ, U) of K_GG (Nyström). The second part is a
    projection of k_x in the kernel's Hilbert space, so that ‖Φ(x)‖² <= s + (1−s) k(x, x) <= 1, the
    bound that sensitivities rest on. Nothing of it depends on data.

    Attributes:
        domain: a space.
        kernel: of points in the unit cube, to which the space's bounds are scaled.
        features: how many, at most; fewer where the kernel's eigenvalues end.
        constant: s, the prior share of a common level of the objective.
    """

    domain: Any
    kernel: Kernel = field(default_factory=lambda: SquaredExponential(0.25))
    features: Count = 40
    constant: Rate = 0.3

    @property
    def size(self) -> int:
        """m, the constant included."""
        return 1 + len(self._whitener.T)

    @cached_property
    def _whitener(self) -> Array:
        grid = self.domain.landmarks
        values, vectors = np.linalg.eigh(self.kernel(grid, grid))
        kept = min(self.features - 1, int((values > _RANK * values[-1]).sum()))
        values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
        return np.asarray(vectors * signs / np.sqrt(values))

    def __call__(self, X: Array) -> Array:
        """Features of the rows of ``X`` (n, d), in the space's units, shape (n, m)."""
        moving = self.kernel(self.domain.unit(X), self.domain.landmarks) @ self._whitener
        level = np.full((len(X), 1), math.sqrt(self.constant))
        phi = np.concatenate([level, math.sqrt(1 - self.constant) * moving], axis=1)
        # Rounding alone can take a norm above 1.
        return np.asarray(phi / np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0))

    @cached_property
    def _candidates(self) -> Array:
        return self(self.domain.candidates)

    def argmax(self, theta: Array) -> Array:
        """An allowed point where θᵀΦ is large, (d,)."""
        return np.asarray(self.domain.climb(lambda X: self(X) @ theta, self._candidates @ theta))

    @property
    def uniform_error(self) -> float:
        """Not known.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("features of landmarks have no proven error; use EigenFeatures.")


@dataclass(eq=False)
class Belief:
    """The posterior of θ ~ N(m, τ²I) under values φᵀθ + N(0, v) of known variance v.

    Values may come in any order. The evidence is the log density of all of them.

    Attributes:
        size: of θ.
        deviation: τ.
        prior: m, (size,); None for 0.
    """

    size: int
    deviation: float
    prior: Array | None = None
    evidence: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        start = np.zeros(self.size) if self.prior is None else self.prior
        self._precision = np.eye(self.size) / self.deviation**2
        self._vector = start / self.deviation**2

    @property
    def mean(self) -> Array:
        """Posterior mean of θ, (size,)."""
        return np.asarray(np.linalg.solve(self._precision, self._vector))

    def observe(self, phi: Array, value: float, variance: float) -> None:
        """Condition on one value, of features φ (size,)."""
        seen, mean = np.linalg.solve(self._precision, np.stack([phi, self._vector], axis=1)).T
        spread = variance + float(phi @ seen)
        missing = value - float(phi @ mean)
        self.evidence -= 0.5 * (missing**2 / spread + math.log(2 * math.pi * spread))
        self._precision += np.outer(phi, phi) / variance
        self._vector = self._vector + phi * (value / variance)

    def draw(self, rng: np.random.Generator, exploration: float) -> Array:
        """The mean, and ``exploration`` times the deviation of a draw of the posterior, (size,)."""
        root = np.linalg.cholesky(self._precision)
        drawn = np.linalg.solve(root.T, rng.standard_normal(self.size))
        return self.mean + exploration * drawn


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
