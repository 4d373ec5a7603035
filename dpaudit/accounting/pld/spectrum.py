"""Composition on a grid by fast Fourier transform, under an exponential tilt.

The masses of each loss are weighted by e^(θx) and normalised before they are transformed (Esscher
tilting). The part of the composed law that decides δ is then of order one, and rounding errors and
wrap-around, which are relative to the largest mass, stay small beside a δ of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.pld.discretise import UNIT, GridLoss
from dpaudit.mechanisms.pairs import Floats

_BUTTERFLY = 8 * UNIT
"""Relative error allowed for in each of the log₂N stages of a transform.

Every output of a fast Fourier transform is a sum of its inputs along paths of log₂N roundings, so
that its error is at most this times log₂N times the sum of the inputs' magnitudes (Higham 2002,
*Accuracy and stability of numerical algorithms*, sections 3.1 and 24.1; a complex product and sum
with a rounded twiddle factor costs less than eight units).
"""

_MANY = 1024
_VANISHED = 60.0
_VANISHED_LOG = -746.0
_BLOCK = 2**15
_LARGEST_DIRECT = 2 * 10**7


@dataclass(frozen=True)
class Tilt:
    """The exponents at which moment generating functions are evaluated.

    Attributes:
        theta: the tilt θ ≥ 0.
        down: Chernoff step below it.
        up: Chernoff step above it.
    """

    theta: float
    down: float
    up: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The transform of one tilted loss.

    Attributes:
        offset: grid index that the transform takes for 0.
        weights: the tilted masses, of sum 1, shape (n,).
        centre: position in ``weights`` of the grid index ``offset``.
        transform: real Fourier transform of the tilted masses, shape (N // 2 + 1,).
        logs: ln M at θ, at θ − down and at θ + up.
        moved: tilted mass moved up against rounding, times how far it moved, and all that the cut
            raised, over M(θ).
        exponent: largest |θx|, which scales the rounding error of the masses.
    """

    offset: int
    weights: Floats
    centre: int
    transform: NDArray[np.complex128]
    logs: tuple[float, float, float]
    moved: float
    exponent: float


@dataclass(frozen=True, eq=False)
class TiltedLaw:
    """The tilted law of the composed loss on a window of the grid.

    Attributes:
        first: grid index of the first point.
        masses: computed masses, shape (N,): the law modulo N, up to ``error`` each.
        error: bound on the rounding error of each mass.
        total_error: bound on the sum of those errors, by Parseval and Cauchy–Schwarz.
    """

    first: int
    masses: Floats
    error: float
    total_error: float


def log_mgf(loss: GridLoss, spacing: float, exponent: float) -> float:
    """Ln of Σ masses e^(exponent x)."""
    return _normalised(exponent * loss.points(spacing), loss.masses)[0]


def tilt_transform(loss: GridLoss, spacing: float, tilt: Tilt, size: int) -> Spectrum:
    """Tilt, centre and transform one loss."""
    points = loss.points(spacing)
    exponents = tilt.theta * points
    log_mass, weights = _normalised(exponents, loss.masses)
    log_down, log_up = loss.chernoff or (
        log_mgf(loss, spacing, tilt.theta - tilt.down),
        log_mgf(loss, spacing, tilt.theta + tilt.up),
    )
    centre = round(_dot(weights, np.arange(len(weights), dtype=np.float64)))
    folded = _folded(weights, -centre % size, size)
    reach = exponents + tilt.theta * spacing - log_mass
    moved = spacing * _dot(loss.moved, np.exp(np.minimum(reach, 700.0)))
    moved += loss.raised * math.exp(min(float(exponents[0]) - log_mass, 700.0))
    return Spectrum(
        loss.first + centre,
        weights,
        centre,
        np.fft.rfft(folded),
        (log_mass, log_down, log_up),
        moved,
        float(np.abs(exponents).max()),
    )


class Composer:
    """Multiplies transforms, and bounds the rounding error of the product as it goes.

    With |φ̂ − φ| ≤ e for every factor, |Πφ̂ − Πφ| ≤ Π(|φ̂| + e) − Π|φ̂|; e also covers the rounding of
    the product and of powers, n times a few units each.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._offset = 0
        self._product = np.ones(size // 2 + 1, dtype=np.complex128)
        self._bound = np.ones(size // 2 + 1)
        self._stage = _BUTTERFLY * math.log2(size)

    def multiply(self, spectrum: Spectrum, count: int) -> None:
        """Compose with ``count`` uses of one loss."""
        self._offset += spectrum.offset * count
        size = np.abs(spectrum.transform)
        allowed = size + (self._stage + 16 * UNIT)
        if count == 1:
            self._product *= spectrum.transform
            self._bound *= allowed
            return
        log_bound = count * np.log(allowed)
        # Beyond, neither the power nor its bound is a float above 0.
        held = np.flatnonzero(log_bound > _VANISHED_LOG)
        transform, log_bound = spectrum.transform[held], log_bound[held]
        with np.errstate(divide="ignore"):
            logs = np.log(size[held])
        angles = np.angle(transform)
        if count >= _MANY:
            active = np.flatnonzero(count * (1 - size[held]) < _VANISHED)
            if 0 < len(active) * len(spectrum.weights) <= _LARGEST_DIRECT:
                exact, error = _logarithms(spectrum, held[active], self._size)
                logs[active], angles[active] = exact
                log_bound[active] = count * (exact[0] + error)
        turned = count * angles
        power = np.exp(count * logs)
        turns = np.zeros(len(self._product), dtype=np.complex128)
        turns[held] = power * (np.cos(turned) + 1j * np.sin(turned))
        bound = np.zeros(len(self._bound))
        bound[held] = np.maximum(np.exp(log_bound), power)
        self._product *= turns
        self._bound *= bound

    def law(self, first: int) -> TiltedLaw:
        """The composed law on the window that starts at that grid index."""
        size = np.abs(self._product)
        gap = np.maximum(self._bound * (1 + 16 * UNIT) - size, 0.0)
        rounding = self._stage * _two_sided_mean(size, self._size)
        masses = np.fft.irfft(self._product, self._size)
        return TiltedLaw(
            first,
            np.roll(masses, (self._offset - first) % self._size),
            _two_sided_mean(gap, self._size) + rounding,
            math.sqrt(self._size * _two_sided_mean(gap * gap, self._size)) + self._size * rounding,
        )


def _logarithms(
    spectrum: Spectrum, frequencies: NDArray[np.int64], size: int
) -> tuple[tuple[Floats, Floats], Floats]:
    """Ln φ (real and imaginary part) at low frequencies, accurate relative to φ − 1.

    A fast transform has an error of some units in the last place of 1, which a count of 10⁹ would
    multiply. Summing φ − 1 = Σ w (e^(−ia) − 1) directly leaves some units of Σ w |e^(−ia) − 1|.

    Returns:
        The two parts, and a bound on the error of the logarithm.
    """
    positions = np.arange(len(spectrum.weights)) - spectrum.centre
    real, imaginary, scale = (np.empty(len(frequencies)) for _ in range(3))
    rows = max(1, _BLOCK // len(positions))  # of few weights many frequencies at once
    for start in range(0, len(frequencies), rows):
        block = slice(start, start + rows)
        turns = (np.multiply.outer(frequencies[block], positions) + size // 2) % size - size // 2
        half = (np.pi / size) * turns
        sine = np.sin(half)
        weighted = spectrum.weights * sine
        real[block] = -2 * (weighted * sine).sum(axis=1)
        imaginary[block] = -2 * (weighted * np.cos(half)).sum(axis=1)
        scale[block] = 2 * np.abs(weighted).sum(axis=1)
    logs = 0.5 * np.log1p(2 * real + real * real + imaginary * imaginary)
    angles = np.arctan2(imaginary, 1 + real)
    # Sums are pairwise over blocks of 128 in eight lanes: some 24 units and a few for each term.
    error = UNIT * (64 * scale / np.exp(logs) + 8 * (np.abs(logs) + np.abs(angles)))
    return (logs, angles), error


def _normalised(exponents: Floats, masses: Floats) -> tuple[float, Floats]:
    """Ln of Σ masses e^exponents, and the terms over their sum; exponents are monotone."""
    top = max(float(exponents[0]), float(exponents[-1]))
    weights = masses * np.exp(exponents - top)
    total = float(weights.sum())
    if not total > 1e-200:  # where next to no mass lies at that end
        top = float(exponents[masses > 0].max())
        weights = masses * np.exp(np.minimum(exponents - top, 700.0))
        total = float(weights.sum())
    return top + math.log(total), weights / total


def _folded(weights: Floats, start: int, size: int) -> Floats:
    """The weights from ``start`` on, wrapped around a circle of that size."""
    turns = np.zeros(-(-(start + len(weights)) // size) * size)
    turns[start : start + len(weights)] = weights
    folded: Floats = turns.reshape(-1, size).sum(axis=0)
    return folded


def _dot(a: Floats, b: Floats) -> float:
    """Σ ab without BLAS, whose threads cost far more than they save on thousands of short sums."""
    return float(np.einsum("i,i->", a, b))


def _two_sided_mean(half: Floats, size: int) -> float:
    """Mean over all N frequencies of a symmetric quantity given on the first half."""
    return float(2 * half.sum()) / size
