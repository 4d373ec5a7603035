"""Covariance functions of unit variance: k(x, x) = 1, as the four papers assume (k <= 1)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Positive
from dpaudit.base.validate import positive, real_array
from private_bo.gp.types import Array, point_set, point_sets, read_only

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

    Raises:
        InputError: if a length scale is not positive.

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
        points = point_set(X=X)
        if points.shape[1] != len(self.length_scales):
            raise InputError(
                f"length_scales has {len(self.length_scales)} entries; it must have one for each "
                f"of the {points.shape[1]} coordinates."
            )
        return np.asarray(points / np.array(self.length_scales))


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
