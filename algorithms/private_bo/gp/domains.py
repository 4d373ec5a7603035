"""Where functions live: finite sets of points, and the boxes and balls that features are good on.

All of it is public and immutable. A finite domain keeps the kernel matrices that were computed on
it; domains and regions compare by content.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from dpaudit.base.fields import Checked, Count, Interval, Positive
from dpaudit.base.validate import integer_at_least
from private_bo.gp.kernels import Kernel
from private_bo.gp.types import Array, Indices, array_of, read_only

_LARGEST_KEPT_MATRIX = 1024


@dataclass(frozen=True, eq=False)
class FiniteDomain(Checked):
    """A finite set of points, addressed by row number.

    Attributes:
        points: the points, (n, d), n >= 1; a read-only copy is kept.

    Raises:
        InputError: if ``points`` is empty, not two-dimensional or not finite.

    >>> FiniteDomain.grid(4).points.ravel()
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> FiniteDomain.grid(2, dimensions=2).points.tolist()
    [[0.5, 0.5], [0.5, 1.0], [1.0, 0.5], [1.0, 1.0]]
    """

    points: Annotated[Array, array_of("n", "d")]

    @cached_property
    def _hash(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))

    @cached_property
    def _matrices(self) -> dict[Kernel, Array]:
        return {}

    @classmethod
    def grid(cls, per_axis: int, dimensions: int = 1) -> FiniteDomain:
        """The uniform grid {1/m, 2/m, ..., 1}^d in the unit cube, last coordinate fastest.

        ``grid(100)`` is 0.01, 0.02, ..., 1.00, the domain of Zhou & Tan 2021, Section 6.

        Args:
            per_axis: m >= 1, the number of values of each coordinate.
            dimensions: d >= 1; the grid has m^d points.

        Raises:
            InputError: if an argument is not a positive integer.
        """
        count = integer_at_least(1, per_axis=per_axis)
        depth = integer_at_least(1, dimensions=dimensions)
        axis = np.arange(1, count + 1, dtype=np.float64) / count
        mesh = np.meshgrid(*[axis] * depth, indexing="ij")
        return cls(np.stack([coordinate.ravel() for coordinate in mesh], axis=1))

    @classmethod
    def indices(cls, size: int) -> FiniteDomain:
        """The row numbers 0, ..., size - 1 as points, for a :class:`TableKernel`."""
        count = integer_at_least(1, size=size)
        return cls(np.arange(count, dtype=np.float64)[:, np.newaxis])

    @property
    def size(self) -> int:
        """n, the number of points."""
        return int(self.points.shape[0])

    @property
    def dimension(self) -> int:
        """d, the number of coordinates."""
        return int(self.points.shape[1])

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteDomain):
            return NotImplemented
        return self is other or np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[FiniteDomain], tuple[Array]]:
        return FiniteDomain, (self.points,)

    def kernel_matrix(self, kernel: Kernel) -> Array:
        """The prior covariance K (n, n) of all points, read-only; kept for later calls."""
        matrix = self._matrices.get(kernel)
        if matrix is None:
            matrix = kernel(self.points, self.points)
            matrix = read_only((matrix + matrix.T) / 2.0)
            self._matrices[kernel] = matrix
        return matrix

    def kernel_columns(self, kernel: Kernel, columns: Sequence[int] | Indices) -> Array:
        """The columns K[:, columns] (n, m), without forming K on a domain above 1024 points.

        Args:
            kernel: the covariance function.
            columns: row numbers of points.
        """
        if self.size <= _LARGEST_KEPT_MATRIX or kernel in self._matrices:
            return self.kernel_matrix(kernel)[:, columns]
        return kernel(self.points, self.points[columns])


class FeatureDomain(Checked, ABC):
    """A bounded set of R^d, known to the public: a dataclass with the field ``dimensions``, d."""

    dimensions: int

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance of two points."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, shape (d, 2)."""

    @abstractmethod
    def project(self, X: Array) -> Array:
        """The point of the domain nearest to each row of ``X`` (n, d)."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """``size`` uniform points, (size, d)."""

    def lattice(self, spacing: float, margin: float = 0.0) -> Array:
        """The points of a lattice that are no farther from the domain than the margin, (n, d).

        Args:
            spacing: of the lattice, at most.
            margin: at least 0.
        """
        axes = [
            np.linspace(
                low - margin, high + margin, 1 + math.ceil((high - low + 2 * margin) / spacing)
            )
            for low, high in self.bounds
        ]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        away = np.linalg.norm(self.project(points) - points, axis=1)
        return np.asarray(points[away <= margin + 1e-12 * self.diameter])


@dataclass(frozen=True)
class Ball(FeatureDomain):
    """The Euclidean ball around the origin.

    Attributes:
        radius: of the ball.
        dimensions: d.

    Raises:
        InputError: if a field is not positive.
    """

    radius: Positive = 2.0
    dimensions: Count = 2

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2.0 * self.radius

    @property
    def bounds(self) -> Array:
        """±radius in every coordinate."""
        return np.tile([-self.radius, self.radius], (self.dimensions, 1))

    def project(self, X: Array) -> Array:
        """Scaled down to the sphere where outside."""
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return np.asarray(X * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """A uniform direction at a radius of density r^(d−1)."""
        directions = rng.normal(size=(size, self.dimensions))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        radii = self.radius * rng.uniform(size=(size, 1)) ** (1 / self.dimensions)
        return np.asarray(directions * radii)


@dataclass(frozen=True)
class Box(FeatureDomain):
    """The cube [low, high]^d.

    Attributes:
        side: (low, high), of every coordinate.
        dimensions: d.

    Raises:
        InputError: if ``side`` is no interval or d is not positive.
    """

    side: Interval = (0.0, 1.0)
    dimensions: Count = 1

    @property
    def diameter(self) -> float:
        """√d times the length of a side."""
        return (self.side[1] - self.side[0]) * math.sqrt(self.dimensions)

    @property
    def bounds(self) -> Array:
        """The same side in every coordinate."""
        return np.tile(self.side, (self.dimensions, 1))

    def project(self, X: Array) -> Array:
        """Coordinates clipped to the side."""
        return np.asarray(np.clip(X, *self.side))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent uniform coordinates."""
        return rng.uniform(*self.side, size=(size, self.dimensions))
