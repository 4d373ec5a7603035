"""Where an objective may be asked, and the server that asks, is told releases, and recommends.

Spaces are finite sets of points, and boxes of several dimensions. The server believes in features
of any kernel on any of them, and in what noisy values leave. It holds nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any, Self

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError
from dpaudit.base.fields import Checked, Count, Finite, Natural, Positive, Rate
from dpaudit.base.validate import shown
from dpaudit.project import read_data
from private_bo.gp.features import FeatureMap
from private_bo.gp.prior import Kernel, SquaredExponential
from private_bo.gp.types import Array, array_of, points_of
from private_bo.redacted_errors import NamedFunction, as_named

_LANDMARKS, _SCATTERED, _CANDIDATES = 300, 256, 512
_FEW = 64
"""So few allowed candidates are too few, and more are tried, as many times."""
_STARTS, _ITERATIONS = 2, 30
_STEP = 1e-5
"""Of central differences, in units of the box."""
_MOST_DIMENSIONS = 1000


class Space(Checked, ABC):
    """Points that may be asked about; all of it is public."""

    allowed: NamedFunction | None

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, (d, 2)."""

    @property
    @abstractmethod
    def candidates(self) -> Array:
        """Allowed points among which a search begins, (n, d)."""

    @property
    @abstractmethod
    def landmarks(self) -> Array:
        """Points for features to start from, in units of the unit cube, (n, d)."""

    @property
    def dimensions(self) -> int:
        """d, the number of coordinates."""
        return len(self.bounds)

    def climb(self, score: Callable[[Array], Array], values: Array) -> Array:
        """An allowed point of large score, (d,).

        Args:
            score: of points (n, d) in the space's units, (n,).
            values: the score of each candidate.
        """
        return np.asarray(self.candidates[int(values.argmax())])

    def unit(self, X: Array) -> Array:
        """The rows of ``X`` (n, d) in units of the bounds: the space is within the unit cube."""
        points = points_of(self.dimensions, X=X)
        low, high = self.bounds.T
        return np.asarray((points - low) / np.where(high > low, high - low, 1.0))

    def permitted(self, X: Array) -> Array:
        """The rows of ``X`` that the constraint allows, (n, d); maybe none."""
        if self.allowed is None:
            return X
        return X[np.array([self._permits(self.allowed(each)) for each in X], dtype=np.bool_)]

    def _permits(self, found: Any) -> bool:
        if not isinstance(found, bool | np.bool_ | Integral):
            raise InputError(f"allowed gave a {type(found).__name__}; it must give True or False.")
        return bool(found)

    def project(self, X: Array) -> Array:
        """Coordinates clipped to their bounds."""
        return np.asarray(np.clip(X, *self.bounds.T))

    def _some(self, X: Array) -> Array:
        if not len(X):
            raise InputError(
                "allowed permits none of the points that were tried; it must permit some."
            )
        return X


@dataclass(frozen=True, eq=False)
class PointSpace(Space):
    """A finite set of points.

    Attributes:
        points: (n, d); a read-only copy is kept.
        allowed: a predicate of a point (d,), or None for all. For a mask give ``points[mask]``.

    Raises:
        InputError: if there is no point, a value is not finite, or none is allowed.

    >>> PointSpace([[0.0, 1.0], [2.0, 5.0]], allowed=lambda x: x[0] > 1).candidates.tolist()
    [[2.0, 5.0]]
    """

    points: Annotated[Array, array_of("n", "d")]
    allowed: Annotated[NamedFunction | None, as_named] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.diff(self.bounds / 2, axis=1).max() > np.finfo(np.float64).max / 2:
            raise InputError("points lie too far apart; their distances must be finite.")
        _ = self.candidates

    @classmethod
    def from_csv(cls, path: str, columns: Sequence[str], **more: Any) -> Self:
        """The points in these columns of a CSV file with a header.

        Raises:
            InputError: if the file cannot be read, or has no such columns of numbers.
        """
        table: list[list[float]] = []
        try:
            table.extend([float(row[name]) for name in columns] for row in read_data(path))
        except (TypeError, ValueError, LookupError):
            raise InputError(
                f"columns is {shown(list(columns))}; {path} must have a header with all of them, "
                f"and a number in every row: row {len(table) + 1} lacks one."
            ) from None
        return cls(np.array(table), **more)

    @cached_property
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, (d, 2)."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)], axis=1)

    @cached_property
    def candidates(self) -> Array:
        """All allowed points."""
        return self._some(self.permitted(self.points))

    @cached_property
    def landmarks(self) -> Array:
        """All points, or three hundred of them."""
        order = np.random.default_rng(0).permutation(len(self.points))
        return self.unit(self.points[np.sort(order[:_LANDMARKS])])


@dataclass(frozen=True)
class BoxSpace(Space):
    """A box, each coordinate with bounds of its own.

    Attributes:
        lower: least value of each coordinate.
        upper: largest value of each.
        allowed: a predicate of a point (d,), or None for all.

    Raises:
        InputError: if there is no coordinate, a bound is not finite, or lower is not below upper.

    >>> BoxSpace((0.0, 10.0), (1.0, 20.0)).unit(np.array([[0.5, 20.0]]))
    array([[0.5, 1. ]])
    """

    lower: tuple[float, ...] = (0.0, 0.0)
    upper: tuple[float, ...] = (1.0, 1.0)
    allowed: Annotated[NamedFunction | None, as_named] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            self._set(name, tuple(array_of("d")(**{name: getattr(self, name)}).tolist()))
        if len(self.lower) != len(self.upper) or len(self.lower) > _MOST_DIMENSIONS:
            raise InputError(
                f"lower has {len(self.lower)} coordinates and upper {len(self.upper)}; they must "
                f"have equally many, at most {_MOST_DIMENSIONS}."
            )
        for place, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not 0 < high - low < math.inf:
                raise InputError(
                    f"lower is {low:g} and upper {high:g} in coordinate {place}; lower must be "
                    "below upper, and their distance finite."
                )

    @cached_property
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, (d, 2)."""
        return np.stack([self.lower, self.upper], axis=1)

    @cached_property
    def candidates(self) -> Array:
        """The allowed of 512 points that fill the box, or where these are few, of many more."""
        found = self.permitted(self._scaled(_filling(_CANDIDATES, self.dimensions)))
        if len(found) < _FEW:
            found = self.permitted(self._scaled(_filling(_FEW * _CANDIDATES, self.dimensions)))
        return self._some(found)

    @cached_property
    def landmarks(self) -> Array:
        """A lattice in few dimensions, else points that fill the cube."""
        per_axis = int(_LANDMARKS ** (1 / self.dimensions) + 1e-9)
        if per_axis < 3:
            return _filling(_SCATTERED, self.dimensions)
        axes = [np.linspace(0.0, 1.0, per_axis)] * self.dimensions
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, self.dimensions)

    def climb(self, score: Callable[[Array], Array], values: Array) -> Array:
        """From the best candidates by L-BFGS-B, on gradients by central differences."""
        from scipy.optimize import minimize

        d = self.dimensions
        moves = np.concatenate([np.zeros((1, d)), _STEP * np.eye(d), -_STEP * np.eye(d)])

        def falling(x: Array) -> tuple[float, Array]:
            at = score(self._scaled(x + moves))
            return -float(at[0]), (at[d + 1 :] - at[1 : d + 1]) / (2 * _STEP)

        starts = self.candidates[np.argsort(-values, kind="stable")[:_STARTS]]
        ends = [
            minimize(
                falling, x, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * d,
                options={"maxiter": _ITERATIONS},
            ).x
            for x in self.unit(starts)
        ]  # fmt: skip
        climbed = self.permitted(self.project(self._scaled(np.array(ends))))
        tried = np.concatenate([starts[:1], climbed])
        return np.asarray(tried[int(score(tried).argmax())])

    def _scaled(self, X: Array) -> Array:
        low, high = self.bounds.T
        return np.asarray(low + X * (high - low))


def _filling(count: int, dimensions: int) -> Array:
    """2^k points of the unit cube that fill it, always the same."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, scramble=False).random(count))


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

    def chosen(self, options: Array, theta: Array, place: Array) -> tuple[int, float]:
        """The option of largest θᵀΦ, and how near it is to a place: the root of the kernel.

        Raises:
            InputError: if the options are no points of the space's dimension; how many is private.
        """
        if options.ndim != 2 or not len(options):
            raise PublicError("options is no list of points; it must hold at least one, (n, d).")
        found = int((self(options) @ theta).argmax())
        ends = self.domain.unit(np.stack([options[found], place]))
        return found, math.sqrt(min(1.0, max(0.0, float(self.kernel(ends[:1], ends[1:])[0, 0]))))

    def argmax(self, theta: Array) -> Array:
        """An allowed point where θᵀΦ is large, (d,)."""
        return np.asarray(self.domain.climb(lambda X: self(X) @ theta, self._candidates @ theta))


@dataclass(eq=False)
class Belief:
    """The posterior of θ ~ N(0, τ²I) under values φᵀθ + N(0, v) of known variance v.

    Values may come in any order. The evidence is the log density of all of them.

    Attributes:
        size: of θ.
        deviation: τ.
    """

    size: int
    deviation: float
    evidence: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._precision = np.eye(self.size) / self.deviation**2
        self._vector = np.zeros(self.size)

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
class ReleasedAnswer(Checked):
    """What left the ledger about one point: noisy, and all that a server is told.

    Attributes:
        group: which questions it answers.
        value: noisy mean answer, in the units of the answers.
        variance: of the value about the objective, a public number.
    """

    group: Natural
    value: Finite
    variance: Positive

    @classmethod
    def of(
        cls, group: int, value: float, variance: float, answers: tuple[float, float]
    ) -> ReleasedAnswer:
        """From value and variance on the scale where the range of answers is [−½, ½]."""
        low, high = answers
        return cls(group, low + (value + 0.5) * (high - low), variance * (high - low) ** 2)


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
        drawn: θ of the last draw.
    """

    maps: Sequence[LandmarkFeatures]
    answers: tuple[float, float]
    users: int
    group_size: int
    deviation: float
    exploration: float
    rng: np.random.Generator
    trace: list[tuple[Array, ReleasedAnswer]] = field(default_factory=list, init=False)
    drawn: Array = field(init=False, repr=False)

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
        if self._asked % self.group_size == 0:  # about another point than the one before
            best = self.best_map
            factor = max(self.exploration, 1 - self._asked / self.users)
            self.drawn = self._beliefs[best].draw(self.rng, factor)
            self._points.append(self.maps[best].argmax(self.drawn))
        self._asked += 1
        group = len(self._points) - 1
        return Question(self._asked - 1, group, self._points[group])

    def tell(self, released: ReleasedAnswer) -> None:
        """Learn from a release, in whatever order they come.

        Raises:
            InputError: if it answers no question, or one that has been answered.
        """
        if not isinstance(released, ReleasedAnswer):
            raise InputError(f"released is a {type(released).__name__}; it must be a Released.")
        self.require_waiting(released.group)
        self._told.add(released.group)
        point = self._points[released.group]
        self._learn(point, released.value, released.variance)
        self.trace.append((point, released))

    def require_waiting(self, group: int) -> None:
        """Refuse what answers no question.

        Raises:
            InputError: if the group was not asked, or has been answered.
        """
        if group >= len(self._points):
            raise InputError(
                f"group is {group}, which was not asked; it must be below {len(self._points)}."
            )
        if group in self._told:
            raise InputError(f"group is {group}, whose result was given already; give each once.")

    def inform(self, points: Array, values: Array, deviation: float) -> None:
        """Learn from public data, such as of an earlier study.

        Args:
            points: (n, d).
            values: of the objective there, (n,), in the units of the answers.
            deviation: of their errors.
        """
        known = array_of("n")(values=values)
        chosen = array_of("n", "d")(points=points)
        spread = validate.positive(deviation=deviation)
        if len(known) != len(chosen):
            raise InputError(f"values has {len(known)} entries; it must have {len(chosen)}.")
        low, high = self.answers
        if max(np.abs(known).max(), spread, (high - low) / spread) > 1e100:  # squares overflow
            raise InputError(
                f"deviation is {spread:g}; values and deviation must be at most 1e100, and "
                "deviation at least 1e-100 of the range of answers."
            )
        for point, value in zip(chosen, known, strict=True):
            self._learn(point, float(value), spread**2)

    def best(self) -> Array:
        """The recommended point: of largest posterior mean, (d,)."""
        return self.maps[self.best_map].argmax(self._beliefs[self.best_map].mean)

    def mean(self, X: Array) -> Array:
        """What the server believes of the objective at the rows of ``X`` (n, d), (n,)."""
        low, high = self.answers
        shape = self.maps[self.best_map](X) @ self._beliefs[self.best_map].mean
        return np.asarray((shape + 0.5) * (high - low) + low)

    @property
    def best_map(self) -> int:
        """The number of the feature map under which the releases are likeliest."""
        return int(np.argmax([belief.evidence for belief in self._beliefs]))

    def _learn(self, point: Array, value: float, variance: float) -> None:
        low, high = self.answers
        scaled, spread = (value - low) / (high - low) - 0.5, variance / (high - low) ** 2
        for each, belief in zip(self.maps, self._beliefs, strict=True):
            belief.observe(each(point[None])[0], scaled, spread)
