"""Where an objective may be asked: finite sets of points, and boxes of several dimensions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any, Self

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked
from dpaudit.base.validate import shown
from dpaudit.project import read_data
from private_bo.gp.types import Array, array_of, point_set
from private_bo.redacted_errors import Named, named

_LANDMARKS, _SCATTERED, _CANDIDATES = 300, 256, 512
_FEW = 64
"""So few allowed candidates are too few, and more are tried, as many times."""
_STARTS, _ITERATIONS = 2, 30
_STEP = 1e-5
"""Of central differences, in units of the box."""
_MOST_DIMENSIONS = 1000


class Space(Checked, ABC):
    """Points that may be asked about; all of it is public."""

    allowed: Named | None

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
        """The rows of ``X`` (n, d) in units of the bounds: the space is within the unit cube.

        Raises:
            InputError: if they are no finite points of d coordinates.
        """
        points = point_set(X=X)
        if points.shape[1] != self.dimensions:
            raise InputError(
                f"X has points of dimension {points.shape[1]}; the space has {self.dimensions}."
            )
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
            raise InputError("allowed permits none of the points that were tried; it must.")
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
    allowed: Annotated[Named | None, named] = None

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
                f"and a number in every row: row {len(table) + 1} has not."
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
    allowed: Annotated[Named | None, named] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            self._set(name, tuple(array_of("d")(**{name: getattr(self, name)}).tolist()))
        if len(self.lower) != len(self.upper) or len(self.lower) > _MOST_DIMENSIONS:
            raise InputError(
                f"lower has {len(self.lower)} coordinates and upper {len(self.upper)}; they must "
                f"have as many, at most {_MOST_DIMENSIONS}."
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
