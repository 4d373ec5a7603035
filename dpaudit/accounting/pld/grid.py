"""One privacy loss on a grid, and its composition by fast Fourier transform.

*The loss on a grid* lies above, with bounds on how far. Within a cell (x, x + h] an outcome of loss
L is moved to one of the two ends at random, up with probability (1 − e^(x−L)) / (1 − e^(−h)). This
is the one rule that keeps both the P-mass and the Q-mass of the cell; the curve δ(ε) then connects
the dots of the exact curve at the grid points (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi
2022, *Connect the dots*, Theorem 3.2), so that it is an upper bound everywhere and exact on the
grid for a single use.

Write D for the step from L to its grid point. Given L it has two values h apart, E[e^(−D)] = 1, and
0 ≤ E[D] ≤ κ(h) (:func:`drift`). The lower end of an interval follows from these three facts alone,
see :mod:`dpaudit.accounting.pld.bounds`.

*Composition* is under an exponential tilt. The masses of each loss are weighted by e^(θx) and
normalised before they are transformed (Esscher tilting). The part of the composed law that decides
δ is then of order one, and rounding errors and wrap-around, which are relative to the largest mass,
stay small beside a δ of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting.amplification import DirectedPair
from dpaudit.mechanisms.pairs import Floats

UNIT = 2.0**-53
"""The unit roundoff of a double."""

_TAIL_ERROR = 8 * UNIT
"""Relative error that is allowed for in a tail t of a pair, times 1 + ln(1/t).

A threshold rounded by a unit moves a normal tail by about 2 ln(1/t) units, other tails by less.
"""

_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True, eq=False)
class GridLoss:
    """One privacy loss on the grid, dominating the exact one up to ``lift``.

    Attributes:
        first: index of the first grid point; the point of index k is k h.
        masses: P-mass of each grid point, shape (n,).
        infinite: P-mass of infinite loss, truncation included.
        truly_infinite: P-mass of infinite loss in the exact law.
        displaced: P-mass that truncation moved further than one cell, infinity included.
        raised: P-mass that the cut moved up to the first grid point.
        moved: P-mass of each cell that was moved up a cell against rounding errors, shape (n,).
        lift: the exact loss is within this of one that obeys the three facts above.
        variance: sub-Gaussian variance proxy of D, h²/4 where anything was moved.
        drift: bound on the mean of D.
        excess: tilted mass, relative to the whole and under the tilt of the composition, by which
            the masses may differ from exact ones; not 0 only for a loss that was itself composed.
        carried: the same times the distance that it was moved up.
        relative: relative rounding error of the masses.
        chernoff: ln of the moment generating function, at the two exponents that bound the window
            of the composition, without the excess; None where there is no excess.
    """

    first: int
    masses: Floats
    infinite: float
    truly_infinite: float
    displaced: float
    moved: Floats
    lift: float
    variance: float
    drift: float
    raised: float = 0.0
    excess: float = 0.0
    carried: float = 0.0
    relative: float = 0.0
    chernoff: tuple[float, float] | None = None

    def points(self, spacing: float) -> Floats:
        """The losses of the grid points, shape (n,)."""
        return spacing * np.arange(self.first, self.first + len(self.masses), dtype=np.float64)


def drift(spacing: float) -> float:
    """κ(h): the largest mean step h (1 − e^(−y)) / (1 − e^(−h)) − y over y in [0, h].

    The maximum is at y = ln(h / (1 − e^(−h))); it is about h²/8 for small h.
    """
    if spacing < 1e-2:
        return spacing * spacing / 8 * (1 + spacing)
    slope = spacing / -math.expm1(-spacing)
    return (slope - 1 - math.log(slope)) * (1 + 1e-9)


def connect(
    pair: DirectedPair, losses: Floats
) -> tuple[Floats, Floats, Floats, tuple[float, float]]:
    """P-mass, Q-mass of each cell (losses[k], losses[k+1]], and the tails they come from.

    Each mass is a difference of the smaller of the two tails, so that it is as accurate as that.

    Returns:
        P-masses and Q-masses, shape (n − 1,), a bound on the rounding errors of P-mass and e^loss
        Q-mass together, and the P-mass up to the first loss and beyond the last.
    """
    p_split, q_split = _medians(pair, losses)
    start, end = min(p_split, q_split), max(p_split, q_split)
    above = pair.above(losses[start:])
    below = pair.below(losses[: end + 1])
    p, p_tail = _differences(above[0], below[0], start, p_split)
    q, q_tail = _differences(above[1], below[1], start, q_split)
    with np.errstate(over="ignore"):
        scale = np.exp(np.minimum(losses[:-1], _LARGEST_EXPONENT))
    outside = float(below[0][0]), float(above[0][-1])
    return p, q, _tail_error(p_tail) + scale * _tail_error(q_tail), outside


def discretise(pair: DirectedPair, spacing: float, tail: float, cut: float = -math.inf) -> GridLoss:
    """The loss of a pair on the grid of that spacing.

    Args:
        pair: the pair of one use.
        spacing: distance of grid points.
        tail: what P-tails fall to, about, where the law is truncated at either end.
        cut: losses below it are raised to it, at least.
    """
    atoms = pair.atoms()
    if atoms is not None:
        return _discretise_atoms(pair, *atoms, spacing, tail, cut)
    low, high = (float(node) for node in pair.nodes(tail, 2)[[0, -1]])
    # One cell more at either end, for atoms that lie on the ends up to rounding.
    least = min(max(low, cut), high)  # what is left of a law may all lie below the cut
    first, last = math.floor(least / spacing) - 1, math.ceil(high / spacing) + 1
    losses = spacing * np.arange(first, last + 1, dtype=np.float64)
    p, q, error, (beneath, beyond) = connect(pair, losses)
    lower, width = losses[:-1], -math.expm1(-spacing)
    error = error * (1 / width + 2)
    usable = (lower < _LARGEST_EXPONENT) & ((q > 1e-280) | (p < 1e-300))
    with np.errstate(over="ignore"):
        exact = (p - q * np.exp(np.minimum(lower, _LARGEST_EXPONENT))) / width
    up = np.clip(np.where(usable, exact + error, p), 0.0, p)
    masses = np.zeros(len(losses))
    masses[:-1] = p - up
    masses[1:] += up
    truly = pair.truly_infinite
    infinite = beyond * (1 + 1e-12)
    masses[0] += beneath
    raised = beneath if cut > low else 0.0
    # A cell whose Q-mass is beyond floats is moved up whole: a rounding of at most one cell more.
    coarse = float(p[~usable].sum())
    lift = _threshold_error(losses) + (spacing if coarse > tail else 0.0)
    displaced = beneath - raised + max(infinite - truly, 0.0) + (coarse if coarse <= tail else 0.0)
    moved = np.append(np.minimum(2 * error, p), 0.0)
    variance, shift = spacing**2 / 4, drift(spacing)
    return GridLoss(first, masses, infinite, truly, displaced, moved, lift, variance, shift, raised)


def _discretise_atoms(
    pair: DirectedPair, losses: Floats, p: Floats, spacing: float, tail: float, cut: float
) -> GridLoss:
    """Atoms one by one: those that lie on the grid stay, the others are split exactly."""
    nodes = pair.nodes(tail, 2)
    held = p > 0
    last = max(float(nodes[-1]), float(losses[held].min()))
    low = max(float(nodes[0]), cut)
    first = min(low, float(losses[held & (losses <= last)].max()))
    kept = (losses >= first) & (losses <= last) & held
    truly = pair.truly_infinite
    infinite = pair.infinite + float(p[losses > last].sum()) * (1 + 1e-12)
    beneath = float(p[losses < first].sum())
    raised = beneath if cut > nodes[0] else 0.0
    displaced = beneath - raised + max(infinite - truly, 0.0)
    start, masses, moved, snap = split_atoms(losses[kept], p[kept], spacing)
    masses[0] += beneath
    lift = _threshold_error(losses[kept]) + max(snap, 0.0)
    on_grid = snap >= 0
    return GridLoss(
        start,
        masses,
        infinite,
        truly,
        displaced,
        moved,
        lift,
        0.0 if on_grid else spacing**2 / 4,
        0.0 if on_grid else drift(spacing),
        raised,
    )


def split_atoms(losses: Floats, p: Floats, spacing: float) -> tuple[int, Floats, Floats, float]:
    """Atoms on the grid: kept where they lie on it, else split between their neighbours.

    Returns:
        Index of the first grid point, masses, masses moved up by rounding, and the largest distance
        that an atom was shifted to lie on the grid, or −1 if any was split.
    """
    cell = losses / spacing
    nearest = np.rint(cell)
    offset = np.abs(losses - nearest * spacing)
    snapped = offset <= 64 * UNIT * np.abs(losses)
    np.floor(cell, out=cell)
    np.copyto(cell, nearest, where=snapped)
    share = losses - cell * spacing
    np.clip(share, 0.0, spacing, out=share)
    share[snapped] = 0.0
    np.expm1(np.negative(share, out=share), out=share)
    share /= math.expm1(-spacing)
    share *= p
    first = int(cell.min())
    index = (cell - first).astype(np.int64)
    size = int(index.max()) + 2
    masses: Floats = np.bincount(index, p - share, size).astype(np.float64)
    upper = np.bincount(index, share, size)
    exact = bool(snapped.all())
    moved: Floats = np.zeros(size) if exact else 8 * UNIT * (masses + upper)
    masses[1:] += upper[:-1]
    return first, masses, moved, float(offset.max(initial=0.0)) if exact else -1.0


def _medians(pair: DirectedPair, losses: Floats) -> tuple[int, int]:
    """Indices from which on the upper tails of P and of Q are the smaller ones, about."""
    sample = np.append(np.arange(0, len(losses) - 1, max(len(losses) // 48, 1)), len(losses) - 1)
    p, q = pair.above(losses[sample])
    p_split, q_split = (min(int((tail > 0.5).sum()), len(sample) - 1) for tail in (p, q))
    return int(sample[p_split]), int(sample[q_split])


def _differences(above: Floats, below: Floats, start: int, split: int) -> tuple[Floats, Floats]:
    """Masses of the cells, from lower tails before ``split`` and upper tails after it.

    ``above`` begins at index ``start`` ≤ split, ``below`` ends at an index ≥ split.
    """
    rest = above[split - start :]
    masses = np.concatenate([np.diff(below[: split + 1]), rest[:-1] - rest[1:]])
    return np.maximum(masses, 0.0), np.concatenate([below[1 : split + 1], rest[:-1]])


def _tail_error(tail: Floats) -> Floats:
    bound: Floats = _TAIL_ERROR * tail * (1 - np.log(np.maximum(tail, 1e-300)))
    return bound


def _threshold_error(losses: Floats) -> float:
    """Bound how far rounding moves a threshold: a few units in its last place."""
    return 8 * UNIT * float(np.abs(losses).max(initial=0.0))


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
