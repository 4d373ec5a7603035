"""Fourier features: by Gaussian quadrature, and by random frequencies."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Natural, OpenProbability
from private_bo.gp.features.base import FeatureMap, Mask
from private_bo.gp.features.fourier_error import Quadrature, line_error, product_error
from private_bo.gp.kernels import Matern, SquaredExponential
from private_bo.gp.regions import Box, FeatureDomain
from private_bo.gp.types import Array

_MOST_FEATURES = 20_000


class _FourierMap(Checked, FeatureMap):
    """√w cos ωᵀx and √w sin ωᵀx, with weights that sum to one: ‖Φ(x)‖² = Σ w = 1 exactly.

    A frequency of 0 needs no sine.
    """

    @property
    @abstractmethod
    def _frequencies(self) -> Array:
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
        return np.asarray(~self._frequencies.any(axis=1))

    def __call__(self, X: Array) -> Array:
        """Cosines, then sines, shape (n, m)."""
        angles = self.points(X) @ self._frequencies.T
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
                f"domain has dimension {self.dimension}; the Matérn kernel's spectral density is a "
                "product on the line only, so use AdditiveFeatures or EigenFeatures."
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
    def _frequencies(self) -> Array:
        return self._half[0]

    @property
    def _weights(self) -> Array:
        return self._half[1]

    @cached_property
    def uniform_error(self) -> float:
        """From the error on the line, by |∏ k_j − ∏ q_j| <= Σ |k_j − q_j| for factors up to 1."""
        if isinstance(self.domain, Box):
            return self.dimension * line_error(
                self.kernel, self._line, self.domain.side[1] - self.domain.side[0]
            )
        return product_error(self.kernel, self._line, self.domain.diameter, self.dimension)


@dataclass(frozen=True)
class RandomFourierFeatures(_FourierMap):
    """Random Fourier features (Rahimi & Recht 2008): cos and sin of frequencies drawn once.

    The frequencies follow from the seed, which is public: they are no private randomness.

    Attributes:
        kernel: squared exponential or Matérn.
        domain: where it is good.
        pairs: number of frequencies; there are twice as many features.
        seed: of the frequencies.
        confidence: probability, over seeds, that the uniform error does not hold.

    Raises:
        InputError: if a field is out of range.
    """

    kernel: SquaredExponential | Matern
    domain: FeatureDomain
    pairs: Count
    seed: Natural = 0
    confidence: OpenProbability = 1e-3

    @cached_property
    def _frequencies(self) -> Array:
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

    @cached_property
    def uniform_error(self) -> float:
        """Hoeffding's bound on a net of differences, plus the Lipschitz constants times its mesh.

        The net of mesh r in the ball of differences, radius the diameter D, has at most
        (1 + 2D/r)^d points, and half of them by symmetry. The constant of the features is the mean
        of ‖ω‖, that of the kernel at most sup |k'|. Holds with probability 1 − ``confidence`` over
        the seed, and is at most 2.
        """
        steep = float(np.linalg.norm(self._frequencies, axis=1).mean()) + _slope_bound(self.kernel)
        diameter = self.domain.diameter
        best = 2.0
        for mesh in diameter * np.logspace(-6, 0, 61):
            log_net = self.dimension * math.log(1 + 2 * diameter / mesh)
            tail = math.sqrt(2 * (log_net + math.log(2 / self.confidence)) / self.pairs)
            best = min(best, tail + steep * float(mesh))
        return math.nextafter(best * (1 + 1e-12), math.inf)


def _slope_bound(kernel: SquaredExponential | Matern) -> float:
    """A bound of the slope of the kernel in the distance.

    |k'| is at most the root of the spectral second moment: e.g. 1/l for the squared exponential.
    """
    if isinstance(kernel, SquaredExponential):
        return 1 / kernel.length_scale
    if kernel.nu > 1:
        return math.sqrt(kernel.nu / (kernel.nu - 1)) / kernel.length_scale
    raise UnsupportedError(
        f"nu is {kernel.nu}; a uniform error is proved for random features of nu above 1 only."
    )
