"""Priors: covariance functions, and where functions live: finite sets of points, boxes and balls.

Kernels have unit variance, k(x, x) = 1, as the four papers assume (k <= 1). All of it is public and
immutable and compares by content. A finite domain keeps the kernel matrices that were computed on
it, and on boxes and balls features are good.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Interval, Positive
from dpaudit.base.validate import integer_at_least, positive, real_array
from private_bo.gp.types import (
    Array,
    Indices,
    array_of,
    point_set,
    point_sets,
    points_of,
    read_only,
)

_LARGEST_NU = 100.0


class Kernel(ABC):
    """A positive semi-definite covariance function with k(x, x) <= 1.

    Kernels are immutable, compare by content and are hashable, so that a domain can keep the
    matrices it has computed.
    """

    @abstractmethod
    def __call__(self, X: Array, Y: Array) -> Array:
        """Covariances of shape (n, m) between the rows of ``X`` (n, d) and ``Y`` (m, d).

        Raises:
            InputError: if the point sets are not matrices of finite numbers of equal width.
        """

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Prior variances k(x, x) of the rows of ``X``, shape (n,)."""


class _Stationary(Checked, Kernel):
    """A kernel that is a function of the Euclidean distance alone."""

    @abstractmethod
    def _of_squares(self, squares: Array) -> Array:
        """Covariance at the given squared distances, which may serve as scratch memory."""

    def __call__(self, X: Array, Y: Array) -> Array:
        return self._of_squares(_squared_distances(*point_sets(X, Y)))

    def diagonal(self, X: Array) -> Array:
        return np.ones(point_set(X=X).shape[0])


def _squared_distances(X: Array, Y: Array) -> Array:
    """Summed by coordinate, and subtracted before squaring: nearby points keep their digits."""
    total = np.zeros((X.shape[0], Y.shape[0]))
    for x, y in zip(X.T, Y.T, strict=True):
        difference = np.subtract.outer(x, y)
        total += np.square(difference, out=difference)
    return total


@dataclass(frozen=True)
class SquaredExponential(_Stationary):
    """k(x, x') = exp(-‖x - x'‖² / (2 l²)).

    Attributes:
        length_scale: l > 0, in the units of the points.

    >>> SquaredExponential(length_scale=1.0)(np.zeros((1, 1)), np.ones((1, 1)))
    array([[0.60653066]])
    """

    length_scale: Positive

    def _of_squares(self, squares: Array) -> Array:
        squares *= -0.5 / self.length_scale**2
        return np.exp(squares, out=squares)


@dataclass(frozen=True)
class Matern(_Stationary):
    """k = 2^(1-ν)/Γ(ν) r^ν K_ν(r) with r = √(2ν) ‖x - x'‖ / l and the modified Bessel K_ν.

    Attributes:
        length_scale: l > 0, in the units of the points.
        nu: smoothness, 0 < ν <= 100 (beyond that the kernel is the squared exponential to
            about 1/ν, and the Bessel function overflows); 1/2, 3/2 and 5/2 use closed forms.

    >>> float(Matern(length_scale=1.0, nu=0.5)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    0.36787944117144233
    """

    length_scale: Positive
    nu: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu > _LARGEST_NU:
            raise InputError(
                f"nu is {self.nu!r}; it must be at most {_LARGEST_NU:g} "
                "(use SquaredExponential for smoother functions)."
            )

    def _of_squares(self, squares: Array) -> Array:
        distance = np.sqrt(squares, out=squares)
        distance *= math.sqrt(2.0 * self.nu) / self.length_scale
        if self.nu == 0.5:
            return np.exp(-distance)
        if self.nu == 1.5:
            return (1.0 + distance) * np.exp(-distance)
        if self.nu == 2.5:
            return (1.0 + distance * (1.0 + distance / 3.0)) * np.exp(-distance)
        return self._bessel(distance)

    def _bessel(self, r: Array) -> Array:
        """The general form in logarithms; where K_ν overflows, r is small enough for a parabola."""
        from scipy.special import gammaln, kve

        values = np.ones_like(r)
        with np.errstate(over="ignore"):
            bessel = kve(self.nu, r)
        regular = np.isfinite(bessel) & (r > 0.0)
        near = r[regular]
        constant = (1.0 - self.nu) * math.log(2.0) - float(gammaln(self.nu))
        logarithm = constant + self.nu * np.log(near) + np.log(bessel[regular]) - near
        values[regular] = np.exp(logarithm)
        if self.nu > 1.0:
            # DLMF 10.30.2 and 10.25.2: k = 1 - r²/(4(ν-1)) + O(r⁴).
            values[~regular] = np.exp(-np.square(r[~regular]) / (4.0 * (self.nu - 1.0)))
        return np.minimum(values, 1.0, out=values)


def _covariance(**field: Any) -> Array:
    """The value as a read-only covariance matrix, symmetric to the last bit."""
    table = real_array(**field)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
        raise InputError(f"table has shape {table.shape}; it must be a non-empty square matrix.")
    rounding = 1e-10 * max(1.0, float(np.abs(table).max()))
    if float(np.abs(table - table.T).max()) > rounding:
        raise InputError("table is not symmetric; it must be a covariance matrix.")
    if float(table.diagonal().max()) > 1.0 + rounding:
        raise InputError(
            f"table has a variance of {float(table.diagonal().max())!r}; "
            "it must be at most 1 (divide the table by its largest variance)."
        )
    smallest = float(np.linalg.eigvalsh(table)[0])
    if smallest < -rounding * table.shape[0]:
        raise InputError(
            f"table has the eigenvalue {smallest!r}; it must be positive semi-definite."
        )
    return read_only((table + table.T) / 2.0)


@dataclass(frozen=True)
class ARD(Checked, Kernel):
    """A kernel with a length scale for each coordinate: k(x/l, x'/l).

    Attributes:
        kernel: k, usually of length scale 1.
        length_scales: l, one positive number a coordinate.

    >>> ARD(SquaredExponential(1.0), (1.0, 2.0))(np.zeros((1, 2)), np.array([[0.0, 2.0]]))
    array([[0.60653066]])
    """

    kernel: Kernel
    length_scales: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        scales = tuple(positive(length_scales=each) for each in self.length_scales)
        object.__setattr__(self, "length_scales", scales)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Covariances of the scaled rows of ``X`` (n, d) and ``Y`` (m, d), shape (n, m)."""
        return self.kernel(self._scaled(X), self._scaled(Y))

    def diagonal(self, X: Array) -> Array:
        """Prior variances of the rows of ``X`` (n, d), shape (n,)."""
        return self.kernel.diagonal(self._scaled(X))

    def _scaled(self, X: Array) -> Array:
        scales = np.array(self.length_scales)
        return np.asarray(points_of(len(scales), X=X) / scales)


@dataclass(frozen=True, eq=False)
class TableKernel(Checked, Kernel):
    """A covariance given by its matrix over a finite domain; a point is its row number, (n, 1).

    Attributes:
        table: symmetric positive semi-definite matrix (n, n) with diagonal at most 1, for example
            the correlation matrix of past readings. A read-only copy is kept.

    Raises:
        InputError: if the table is not square, finite, symmetric, positive semi-definite up to
            rounding, or has a diagonal above 1.

    >>> TableKernel(np.eye(2))(np.array([[0.0], [1.0]]), np.array([[1.0]])).ravel()
    array([0., 1.])
    """

    table: Annotated[Array, _covariance]

    @cached_property
    def _hash(self) -> int:
        return hash((self.table.shape, self.table.tobytes()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableKernel):
            return NotImplemented
        return self is other or np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[TableKernel], tuple[Array]]:
        return TableKernel, (self.table,)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Entries of the table at row numbers ``X`` (n, 1) and ``Y`` (m, 1), shape (n, m)."""
        return self.table[np.ix_(self._rows(X), self._rows(Y))]

    def diagonal(self, X: Array) -> Array:
        """Variances at row numbers ``X`` (n, 1), shape (n,)."""
        return self.table.diagonal()[self._rows(X)]

    def _rows(self, X: Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        points = point_set(X=X)
        rows = points[:, 0].astype(np.intp) if points.shape[1] == 1 else None
        size = self.table.shape[0]
        if (
            rows is None
            or not np.array_equal(rows, points[:, 0])
            or not np.all((rows >= 0) & (rows < size))
        ):
            raise InputError(
                f"X must have shape (n, 1) and hold row numbers of the table, integers "
                f"from 0 to {size - 1}."
            )
        return rows


_LARGEST_KEPT_MATRIX = 1024


@dataclass(frozen=True, eq=False)
class FiniteDomain(Checked):
    """A finite set of points, addressed by row number.

    Attributes:
        points: the points, (n, d), n >= 1; a read-only copy is kept.

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
