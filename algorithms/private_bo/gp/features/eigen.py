"""Features from the leading eigenvectors of the kernel on a fixed public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Positive
from private_bo.gp.features.base import FeatureMap
from private_bo.gp.kernels import Matern, SquaredExponential
from private_bo.gp.regions import FeatureDomain
from private_bo.gp.types import Array

_MOST_GRID = 3_000
_CHUNK = 4_000
_MARGIN = 0.15
"""How far the grid reaches beyond the domain, in length scales: the error is largest at the rim."""


@dataclass(frozen=True)
class EigenFeatures(Checked, FeatureMap):
    """Φ(x) = Λ^(−½) Uᵀ k_G(x), with the m leading eigenpairs (Λ, U) of K_GG on a public grid G.

    Φ(x)ᵀΦ(y) is the kernel of the projection of k_x on an m-dimensional space of functions, so that
    ‖Φ(x)‖² <= k(x, x), and the error k − ΦᵀΦ is itself positive semi-definite: its largest value is
    on the diagonal, r(x) = k(x, x) − ‖Φ(x)‖². The grid is a function of the domain, never of data.

    Attributes:
        kernel: squared exponential or Matérn.
        domain: of few dimensions, since the grid is a lattice.
        features: m.
        spacing: of the grid, in length scales.

    Raises:
        InputError: if the grid is too large or too small for m features.

    >>> from private_bo.gp import Ball
    >>> EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), features=28).uniform_error < 3e-3
    True
    """

    kernel: SquaredExponential | Matern
    domain: FeatureDomain
    features: Count
    spacing: Positive = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (cells := self._cells(self._mesh)) <= _MOST_GRID:
            raise InputError(
                f"spacing is {self.spacing!r}, which makes a grid of about {cells:.3g} points; at "
                f"most {_MOST_GRID} are possible, so use a larger spacing, or AdditiveFeatures."
            )
        if self.features > len(self._grid):
            raise InputError(
                f"features is {self.features}, and the grid has {len(self._grid)} points; use "
                "fewer features or a smaller spacing."
            )
        if not self._spectrum[0][-1] > 1e-13 * self._spectrum[0][0]:
            raise InputError(
                f"features is {self.features}; that many eigenvalues of the kernel are not above "
                "rounding on this grid, so use fewer."
            )

    @property
    def size(self) -> int:
        """m, the number of features."""
        return self.features

    @property
    def _mesh(self) -> float:
        return self.spacing * self.kernel.length_scale

    @cached_property
    def _grid(self) -> Array:
        return self.domain.lattice(self._mesh, _MARGIN * self.kernel.length_scale)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """The leading eigenvalues, decreasing, and their eigenvectors with a fixed sign."""
        values, vectors = np.linalg.eigh(self.kernel(self._grid, self._grid))
        vectors = vectors[:, ::-1][:, : self.features]
        largest = np.abs(vectors).argmax(axis=0)
        signs = np.sign(vectors[largest, np.arange(self.features)])
        return values[::-1][: self.features], vectors * signs

    @cached_property
    def _whitener(self) -> Array:
        values, vectors = self._spectrum
        return np.asarray(vectors / np.sqrt(values))

    def __call__(self, X: Array) -> Array:
        """Features of the rows of ``X``, (n, m)."""
        features = self._raw(self.points(X))
        # Rounding alone can take a norm above 1.
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        features /= np.maximum(norms, 1.0)
        return features

    @cached_property
    def uniform_error(self) -> float:
        """Sup r, from a fine lattice and an interpolation argument in the kernel's Hilbert space.

        g(x) = (I − P) k_x has ‖g(x)‖² = r(x). On a cell of side h, multilinear interpolation of g
        is off by at most Σ_j (h²/8) sup ‖∂_j² g‖, and ‖∂_j² k_x‖² is the spectral fourth moment,
        3/l⁴ for the squared exponential; the interpolant is no longer than the longest corner. So
        √sup r <= max over corners √r + d (h²/8) √moment.
        """
        fine = 0.02 * self.kernel.length_scale
        while self._cells(fine) > 60_000:
            fine *= 1.25
        # A cell that meets the domain has no corner farther from it than its own diagonal.
        corners = self.domain.lattice(fine, fine * math.sqrt(self.dimension))
        residual = 1.0 - np.square(self._raw(corners)).sum(axis=1)
        rounding = 1e-13 * len(self._grid)
        worst = math.sqrt(max(0.0, float(residual.max())) + rounding)
        curvature = math.sqrt(_fourth_moment(self.kernel))
        bound = (worst + self.dimension * fine**2 / 8 * curvature) ** 2
        return math.nextafter(bound, math.inf)

    def _raw(self, X: Array) -> Array:
        """Features up to rounding, by blocks of rows."""
        blocks = [
            self.kernel(X[start : start + _CHUNK], self._grid) @ self._whitener
            for start in range(0, len(X), _CHUNK)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, self.features))

    def _cells(self, mesh: float) -> float:
        return float(np.prod(np.diff(self.domain.bounds)[:, 0] / mesh + 1))


def _fourth_moment(kernel: SquaredExponential | Matern) -> float:
    """k''''(0) along a line: E ω⁴ of the spectral density, normal or Student's t of 2ν degrees."""
    if isinstance(kernel, SquaredExponential):
        return 3 / kernel.length_scale**4
    if kernel.nu > 2:
        return 3 * kernel.nu**2 / ((kernel.nu - 1) * (kernel.nu - 2)) / kernel.length_scale**4
    raise UnsupportedError(
        f"nu is {kernel.nu}; the uniform error of eigenfeatures is proved for nu above 2."
    )
