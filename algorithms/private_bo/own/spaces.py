"""Where an objective may be asked: finite sets of points, and boxes of several dimensions."""

from __future__ import annotations

import hashlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from dpaudit.errors import InputError
from dpaudit.project import read_data
from dpaudit.validate import shown
from private_bo.gp import FeatureDomain
from private_bo.gp.types import Array, array_of, point_set

__all__ = ["BoxSpace", "Named", "PointSpace", "Space", "named"]

_LANDMARKS = 300
_SCATTERED = 256
_MOST_DIMENSIONS = 1000
_CANDIDATES = 512
_TRIES = 64
_STARTS = 2
_STEP = 1e-5
"""Of central differences, in units of the box."""


@dataclass(frozen=True, repr=False)
class Named:
    """A function that a certificate tells by its name and the hash of its source.

    Attributes:
        function: what is called.
    """

    function: Callable[..., Any]

    def __call__(self, *given: Any) -> Any:
        """As the function."""
        return self.function(*given)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            return f"{name}, without source"
        return f"{name}, sha256 of its source {hashlib.sha256(source.encode()).hexdigest()}"


def named(**given: Any) -> Named | None:
    """The value as a named function, or None.

    Raises:
        InputError: if it is neither a function nor None.
    """
    ((name, value),) = given.items()
    if value is None or isinstance(value, Named):
        return value
    if not callable(value):
        raise InputError(f"{name} is {shown(value)}; it must be a function.")
    return Named(value)


class Space(FeatureDomain):
    """Points that may be asked about; all of it is public."""

    allowed: Named | None

    @property
    @abstractmethod
    def candidates(self) -> Array:
        """Allowed points among which a search begins, (n, d)."""

    @property
    @abstractmethod
    def landmarks(self) -> Array:
        """Points for features to start from, in units of the unit cube, (n, d)."""

    def climb(self, score: Callable[[Array], Array], values: Array) -> Array:
        """An allowed point of large score, (d,).

        Args:
            score: of points (n, d) in the space's units, (n,).
            values: the score of each candidate.
        """
        point: Array = self.candidates[int(values.argmax())]
        return point

    def unit(self, X: Array) -> Array:
        """The rows of ``X`` (n, d) in units of the bounds, so that the space is in the unit cube.

        Raises:
            InputError: if they are no finite points of d coordinates.
        """
        points = point_set(X=X)
        if points.shape[1] != self.dimensions:
            raise InputError(
                f"X has points of dimension {points.shape[1]}; the space has {self.dimensions}."
            )
        low, high = self.bounds.T
        scaled: Array = (points - low) / np.where(high > low, high - low, 1.0)
        return scaled

    @property
    def diameter(self) -> float:
        """Diagonal of the bounds."""
        return float(np.linalg.norm(np.diff(self.bounds)))

    def permitted(self, X: Array) -> Array:
        """The rows of ``X`` that the constraint allows.

        Raises:
            InputError: if it allows none.
        """
        if self.allowed is None:
            return X
        kept = X[np.array([bool(self.allowed(each)) for each in X], dtype=np.bool_)]
        if not len(kept):
            raise InputError(f"allowed permits none of {len(X)} points; it must permit some.")
        return kept


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
    allowed: Annotated[Named | None, named] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.candidates

    @classmethod
    def from_csv(cls, path: str, columns: Sequence[str], **more: Any) -> Self:
        """The points in these columns of a CSV file with a header.

        Raises:
            InputError: if the file cannot be read, or has no such columns of numbers.
        """
        try:
            table = [[float(row[name]) for name in columns] for row in read_data(path)]
        except (TypeError, ValueError, LookupError):
            raise InputError(
                f"columns is {shown(list(columns))}; {path} must have a header with all of them, "
                "and a number in every row."
            ) from None
        return cls(np.array(table), **more)

    @property
    def dimensions(self) -> int:  # type: ignore[override]
        """d, the number of coordinates."""
        return int(self.points.shape[1])

    @property
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, (d, 2)."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)], axis=1)

    @cached_property
    def candidates(self) -> Array:
        """All allowed points."""
        return self.permitted(self.points)

    @property
    def landmarks(self) -> Array:
        """All points, or three hundred of them."""
        order = np.random.default_rng(0).permutation(len(self.points))
        return self.unit(self.points[np.sort(order[:_LANDMARKS])])

    def project(self, X: Array) -> Array:
        """The nearest point, by the units of the bounds."""
        squares = np.square(self.unit(X)[:, None] - self.unit(self.points)[None]).sum(axis=2)
        return np.asarray(self.points[squares.argmin(axis=1)])

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Uniform allowed points, (size, d)."""
        return np.asarray(rng.choice(self.candidates, size))


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
    allowed: Annotated[Named | None, named] = field(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            ends = array_of("d")(**{name: getattr(self, name)})
            self._set(name, tuple(ends.tolist()))
        if len(self.lower) != len(self.upper) or len(self.lower) > _MOST_DIMENSIONS:
            raise InputError(
                f"lower has {len(self.lower)} coordinates and upper {len(self.upper)}; they must "
                f"have as many, at most {_MOST_DIMENSIONS}."
            )
        for place, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low < high:
                raise InputError(
                    f"lower is {low:g} and upper {high:g} in coordinate {place}; lower must be "
                    "below upper."
                )

    @property
    def dimensions(self) -> int:  # type: ignore[override]
        """d, the number of coordinates."""
        return len(self.lower)

    @property
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, (d, 2)."""
        return np.stack([self.lower, self.upper], axis=1)

    @cached_property
    def candidates(self) -> Array:
        """The allowed of 512 points that fill the box, or where few are, of many more."""
        points = self._scaled(_filling(_CANDIDATES, self.dimensions))
        if self.allowed is None or sum(bool(self.allowed(each)) for each in points) > _TRIES:
            return self.permitted(points)
        return self.permitted(self._scaled(_filling(_TRIES * _CANDIDATES, self.dimensions)))

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

        best, point = -np.inf, self.candidates[0]
        for start in self.candidates[np.argsort(-values, kind="stable")[:_STARTS]]:
            found = minimize(
                falling, self.unit(start[None])[0], jac=True, method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * d, options={"maxiter": 30},
            )  # fmt: skip
            for each in (start, self.project(self._scaled(found.x[None]))[0]):
                value = float(score(each[None])[0])
                if value > best and (self.allowed is None or bool(self.allowed(each))):
                    best, point = value, each
        return np.asarray(point)

    def project(self, X: Array) -> Array:
        """Coordinates clipped to their bounds."""
        return np.asarray(np.clip(X, self.lower, self.upper))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Uniform allowed points, (size, d); among the candidates where few are allowed."""
        points = self._scaled(rng.random((_TRIES * size, self.dimensions)))
        if self.allowed is None:
            return points[:size]
        kept = points[np.array([bool(self.allowed(each)) for each in points])][:size]
        return kept if len(kept) == size else np.asarray(rng.choice(self.candidates, size))

    def _scaled(self, X: Array) -> Array:
        low, high = self.bounds.T
        return np.asarray(low + X * (high - low))


def _filling(count: int, dimensions: int) -> Array:
    """2^k points of the unit cube that fill it, always the same."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, scramble=False).random(count))
