"""Finite feature maps Φ with Φ(x)ᵀΦ(y) ≈ k(x, y): eigenfeatures, quadrature and random Fourier.

Every map has ‖Φ(x)‖ <= 1, which is what sensitivities rest on; eigenfeatures and quadrature state a
proven bound of their uniform error (Dubey 2021, Definition 2).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Natural, Positive
from private_bo.gp.prior import FeatureDomain, Matern, SquaredExponential
from private_bo.gp.types import Array, points_of

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class FeatureMap(ABC):
    """Φ: R^d → R^m with ‖Φ(x)‖ <= 1 that approximates a kernel on a domain.

    Maps are immutable and compare by their public fields.
    """

    domain: FeatureDomain
    """Where the map is good; an additive one has that of its part."""

    @property
    @abstractmethod
    def size(self) -> int:
        """m, the number of features."""

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of a point."""
        return self.domain.dimensions

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Features of the rows of ``X`` (n, d), shape (n, m).

        Raises:
            InputError: if ``X`` has another width or is not finite.
        """

    @property
    def uniform_error(self) -> float:
        """A proven bound of |k(x, y) − Φ(x)ᵀΦ(y)| over the domain, rounded up.

        Raises:
            UnsupportedError: if there is no proof for these features, or for this kernel.
        """
        raise UnsupportedError(f"{type(self).__name__} have no proven error; use EigenFeatures.")


@dataclass(frozen=True)
class AdditiveFeatures(Checked, FeatureMap):
    """The features of one coordinate at a time, scaled by 1/√d: the mean of their kernels.

    The number of features grows with d and not exponentially in it, which is what makes functions
    of 20 variables tractable (Mutny & Krause 2018, Section 4).

    Attributes:
        part: a map of the line.
        dimensions: d.

    Raises:
        InputError: if ``part`` is not a map of the line.
    """

    part: FeatureMap
    dimensions: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part.dimension != 1:
            raise InputError(f"part takes points of dimension {self.part.dimension}; it must be 1.")

    @property
    def size(self) -> int:
        """D times the features of a coordinate."""
        return self.dimensions * self.part.size

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of a point."""
        return self.dimensions

    def __call__(self, X: Array) -> Array:
        """Coordinate by coordinate, shape (n, d m)."""
        points = points_of(self.dimension, X=X)
        flat = self.part(points.reshape(-1, 1)) / math.sqrt(self.dimensions)
        return flat.reshape(len(points), self.size)

    @property
    def uniform_error(self) -> float:
        """That of a coordinate: the mean of d equal bounds."""
        return self.part.uniform_error


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
        features = self._raw(points_of(self.dimension, X=X))
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


_STEPS = 8_000


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Symmetric nodes and weights of a spectral density; k(s) ≈ Σ w cos ωs.

    Attributes:
        frequencies: ω in increasing order, (m̄,).
        weights: positive, summing to one, (m̄,).
    """

    frequencies: Array
    weights: Array

    @classmethod
    def of(cls, kernel: SquaredExponential | Matern, nodes: int) -> Quadrature:
        """Gauss–Hermite for the squared exponential, Gauss–Gegenbauer for the Matérn kernel."""
        if isinstance(kernel, SquaredExponential):
            t, w = np.polynomial.hermite.hermgauss(nodes)
            frequencies = math.sqrt(2) * t / kernel.length_scale
        else:
            from scipy.special import roots_jacobi

            u, w = roots_jacobi(nodes, kernel.nu - 1, kernel.nu - 1)
            frequencies = math.sqrt(2 * kernel.nu) / kernel.length_scale * u / np.sqrt(1 - u * u)
        symmetric = (frequencies - frequencies[::-1]) / 2
        weights = (w + w[::-1]) / 2
        return cls(symmetric, weights / weights.sum())

    def __call__(self, s: Array) -> Array:
        """Σ w cos ωs, shape of s."""
        total = np.zeros_like(s)
        for frequency, weight in zip(self.frequencies, self.weights, strict=True):
            total += weight * np.cos(frequency * s)
        return total

    @property
    def second_moment(self) -> float:
        """Σ w ω², which bounds the second derivative."""
        return float(self.weights @ self.frequencies**2)


def line_error(kernel: SquaredExponential | Matern, quadrature: Quadrature, reach: float) -> float:
    """A bound of |k(s) − Σ w cos ωs| over |s| <= reach.

    Between two points a function differs from its chord by at most M h²/8, where M bounds its
    second derivative; for the difference M is at most the sum of the second moments. A Matérn
    kernel with ν <= 1 has no second derivative at 0, but it decreases, which is used instead. For
    the squared exponential the remainder of Gauss–Hermite quadrature, m̄! (s/l)^2m̄/(2m̄)!, is used
    where it is smaller.
    """
    s = np.linspace(0.0, reach, _STEPS + 1)
    h = reach / _STEPS
    k = kernel(s[:, None], np.zeros((1, 1)))[:, 0]
    q = quadrature(s)
    own = _second_moment(kernel)
    if own < math.inf:
        ends = np.abs(k - q)
        local = np.maximum(ends[1:], ends[:-1]) + (own + quadrature.second_moment) * h * h / 8
    else:
        above = np.maximum(q[1:], q[:-1]) - k[1:]
        below = k[:-1] - np.minimum(q[1:], q[:-1])
        local = np.maximum(above, below) + quadrature.second_moment * h * h / 8
    bound, nodes = max(0.0, float(local.max())), len(quadrature.weights)
    if isinstance(kernel, SquaredExponential):
        bound = min(bound, _remainder(reach / kernel.length_scale, nodes))
    return bound + 1e-14 * nodes


def _second_moment(kernel: SquaredExponential | Matern) -> float:
    """−k''(0), the variance of the spectral density, or infinity."""
    if isinstance(kernel, SquaredExponential):
        return 1 / kernel.length_scale**2
    return kernel.nu / (kernel.nu - 1) / kernel.length_scale**2 if kernel.nu > 1 else math.inf


def _remainder(s: float, nodes: int) -> float:
    """m̄! s^2m̄/(2m̄)!, by logarithms."""
    constant = math.lgamma(nodes + 1) - math.lgamma(2 * nodes + 1)
    with np.errstate(over="ignore"):
        return float(np.exp(constant + 2 * nodes * math.log(s)) * (1 + 1e-9))


_MOST_FEATURES = 20_000


class _FourierMap(Checked, FeatureMap):
    """√w cos ωᵀx and √w sin ωᵀx, with weights that sum to one: ‖Φ(x)‖² = Σ w = 1 exactly.

    A frequency of 0 needs no sine.
    """

    @property
    @abstractmethod
    def frequencies(self) -> Array:
        """ω, one frequency a row, (pairs, d)."""

    @property
    @abstractmethod
    def _weights(self) -> Array:
        """w, the weight of each frequency, (pairs,)."""

    @property
    def size(self) -> int:
        """Two for each frequency, and one for a frequency of 0."""
        return 2 * len(self._weights) - int(self._zeros.sum())

    @cached_property
    def _zeros(self) -> Mask:
        return np.asarray(~self.frequencies.any(axis=1))

    def __call__(self, X: Array) -> Array:
        """Cosines, then sines, shape (n, m)."""
        angles = points_of(self.dimension, X=X) @ self.frequencies.T
        roots = np.sqrt(self._weights)
        moving = ~self._zeros
        sines = np.sin(angles[:, moving]) * roots[moving]
        return np.concatenate([np.cos(angles) * roots, sines], axis=1)


@dataclass(frozen=True)
class QuadratureFeatures(_FourierMap):
    """Quadrature Fourier features (Mutny & Krause 2018), with one of each pair ±ω.

    The squared exponential has Gauss–Hermite nodes t and weights w in each dimension: ω = √2 t/l,
    weight ∏ w/√π; the Cartesian product has m̄^d nodes, of which ω and −ω give the same features,
    so that m̄^d features suffice. (Keeping only positive nodes in each dimension, as is sometimes
    seen, drops frequencies of mixed signs, and does not converge for d >= 2.)

    The Matérn kernel on the line has spectral density ∝ (1 + ω²l²/2ν)^−(ν+½). With
    ω = (√2ν/l) u/√(1 − u²) it becomes (1 − u²)^(ν−1) du, so that Gauss–Gegenbauer nodes apply. Its
    error falls algebraically. In several dimensions its density is no product; take
    :class:`~private_bo.gp.features.AdditiveFeatures` or eigenfeatures there.

    Attributes:
        kernel: squared exponential, or Matérn if the domain is a line.
        domain: where it is good.
        nodes: m̄, of each dimension.

    Raises:
        InputError: if ``nodes`` is not positive, or there would be more than 20 000 features.
        UnsupportedError: if the kernel has no quadrature in that dimension.

    >>> from private_bo.gp import Ball
    >>> QuadratureFeatures(SquaredExponential(1.0), Ball(2.0, 2), nodes=12).size
    144
    """

    kernel: SquaredExponential | Matern
    domain: FeatureDomain
    nodes: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, SquaredExponential | Matern):
            raise UnsupportedError(
                f"kernel is {self.kernel!r}; quadrature knows SquaredExponential and Matern."
            )
        if isinstance(self.kernel, Matern) and self.dimension > 1:
            raise UnsupportedError(
                "quadrature with a Matérn kernel needs a domain of dimension 1, and this one has "
                f"{self.dimension}; use AdditiveFeatures or EigenFeatures."
            )
        if self.nodes**self.dimension > _MOST_FEATURES:
            raise InputError(
                f"nodes is {self.nodes}, which makes {self.nodes**self.dimension} features; at "
                f"most {_MOST_FEATURES} are possible, so use AdditiveFeatures or EigenFeatures."
            )

    @cached_property
    def _line(self) -> Quadrature:
        return Quadrature.of(self.kernel, self.nodes)

    @cached_property
    def _half(self) -> tuple[Array, Array]:
        """One of each pair ±ω with doubled weight: the later half of the ordered product."""
        grids = np.meshgrid(*[self._line.frequencies] * self.dimension, indexing="ij")
        frequencies = np.stack(grids, axis=-1).reshape(-1, self.dimension)
        products = np.meshgrid(*[self._line.weights] * self.dimension, indexing="ij")
        weights = np.prod(np.stack(products, axis=-1).reshape(-1, self.dimension), axis=1)
        half = len(weights) // 2
        doubled = 2.0 * weights[half:]
        if len(weights) % 2:
            doubled[0] /= 2.0
        return frequencies[half:], doubled / doubled.sum()

    @property
    def frequencies(self) -> Array:
        """ω, one of each pair, (pairs, d)."""
        return self._half[0]

    @property
    def _weights(self) -> Array:
        return self._half[1]

    @cached_property
    def uniform_error(self) -> float:
        """From the error on the line, by |∏ k_j − ∏ q_j| <= Σ |k_j − q_j| for factors up to 1."""
        low, high = self.domain.bounds.T
        return self.dimension * line_error(self.kernel, self._line, float((high - low).max()))


@dataclass(frozen=True)
class RandomFourierFeatures(_FourierMap):
    """Random Fourier features (Rahimi & Recht 2008): cos and sin of frequencies drawn once.

    The frequencies follow from the seed, which is public: they are no private randomness.

    Attributes:
        kernel: squared exponential or Matérn.
        domain: where it is good.
        pairs: number of frequencies; there are twice as many features.
        seed: of the frequencies.
    """

    kernel: SquaredExponential | Matern
    domain: FeatureDomain
    pairs: Count
    seed: Natural = 0

    @cached_property
    def frequencies(self) -> Array:
        """ω, drawn by the seed, (pairs, d)."""
        rng = np.random.default_rng(self.seed)
        normal = rng.normal(size=(self.pairs, self.dimension)) / self.kernel.length_scale
        if isinstance(self.kernel, Matern):
            # The spectral density of the Matérn kernel is Student's t with 2ν degrees of freedom.
            normal /= np.sqrt(
                rng.chisquare(2 * self.kernel.nu, (self.pairs, 1)) / 2 / self.kernel.nu
            )
        return normal

    @property
    def _weights(self) -> Array:
        return np.full(self.pairs, 1 / self.pairs)
