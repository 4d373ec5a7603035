"""Quadratures of spectral densities on the line, and proven bounds of their uniform error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_bo.gp.kernels import Matern, SquaredExponential
from private_bo.gp.types import Array

_STEPS = 8_000
_TABLE = 1_000


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
    """A bound of |k(s) − Σ w cos ωs| over |s| <= reach."""
    return float(error_envelope(kernel, quadrature, reach)[1][-1])


def error_envelope(
    kernel: SquaredExponential | Matern, quadrature: Quadrature, reach: float
) -> tuple[Array, Array]:
    """Points s_0 = 0 < … < s_n = reach, and a bound of the error over [0, s_i] for each.

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
    bound = np.concatenate([[0.0], np.maximum.accumulate(np.maximum(local, 0.0))])
    if isinstance(kernel, SquaredExponential):
        bound = np.minimum(bound, _remainder(s / kernel.length_scale, len(quadrature.weights)))
    return s, bound + 1e-14 * len(quadrature.weights)


def product_error(
    kernel: SquaredExponential | Matern, quadrature: Quadrature, reach: float, dimensions: int
) -> float:
    """A bound of Σ_j e(δ_j) over ‖δ‖ <= reach, with e the increasing envelope on the line.

    By dynamic programming over the dimensions: F_d(r) = max_s e(s) + F_{d−1}(√(r² − s²)), on
    intervals of r and s, each at its worst end.
    """
    s, envelope = error_envelope(kernel, quadrature, reach)
    if dimensions == 1:
        return float(envelope[-1])
    radii = np.linspace(0.0, reach, _TABLE + 1)
    line = envelope[np.searchsorted(s, radii * (1 - 1e-12)).clip(max=_STEPS)]
    total = line
    for _ in range(dimensions - 1):
        total = np.array([_best_split(line, total, radii, at) for at in range(len(radii))])
    return float(total[-1])


def _best_split(line: Array, rest: Array, radii: Array, at: int) -> float:
    """Max over s in each [radii_i, radii_{i+1}] up to radii[at] of line(s) + rest(√(r² − s²))."""
    if at == 0:
        return float(line[0] + rest[0])
    low = radii[:at]
    left = np.sqrt(radii[at] ** 2 - low**2)
    index = np.minimum(np.searchsorted(radii, left * (1 - 1e-12)), at)
    return float((line[1 : at + 1] + rest[index]).max())


def _second_moment(kernel: SquaredExponential | Matern) -> float:
    """−k''(0), the variance of the spectral density, or infinity."""
    if isinstance(kernel, SquaredExponential):
        return 1 / kernel.length_scale**2
    return kernel.nu / (kernel.nu - 1) / kernel.length_scale**2 if kernel.nu > 1 else math.inf


def _remainder(s: Array, nodes: int) -> Array:
    """m̄! s^2m̄/(2m̄)!, by logarithms."""
    constant = math.lgamma(nodes + 1) - math.lgamma(2 * nodes + 1)
    with np.errstate(divide="ignore", over="ignore"):
        bound: Array = np.exp(constant + 2 * nodes * np.log(s)) * (1 + 1e-9)
    return bound
