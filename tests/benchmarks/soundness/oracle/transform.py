"""Compositions of losses by fast Fourier transforms, with an end rounded each way.

The curve of laws on a grid (:mod:`tests.benchmarks.soundness.oracle.grid`) is an upper end. The
rounded loss is on average at most h²/8 below the true one, and its deviation is bounded by
Bernstein's inequality: that gives the lower end. Masses are tilted by e^θL before the transform, so
that the tail that matters is not below its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tests.benchmarks.soundness.oracle.grid import EPS, Grid, Thinned, on_grid
from tests.benchmarks.soundness.oracle.laws import Law

Part = tuple[Law, int]


class Composition:
    """δ(ε) of a composition, by both ends; sharpest near the δ that it is made for."""

    def __init__(self, parts: Sequence[Part], delta: float, points: int = 2**18) -> None:
        self.delta_near, self._points = delta, points
        self._counts = np.array([float(count) for _, count in parts])
        total = sum(count for _, count in parts)
        self._tail = max(delta * 1e-9 / total, 1e-305)
        grids = [self._coarse(law) for law, _ in parts]
        for _ in range(6):
            reach = max(law.top(self._tail) - law.bottom(self._tail) for law, _ in parts)
            tilt = self._tilt(grids)
            theta = min(tilt, 2 / max(grid.h for grid in grids))  # finer grids bear more
            low, high = self._window(grids, theta)
            h = self._spacing(parts, max((high - low) / (points - 128), reach / (4 * points)))
            grids = [on_grid(law, h, self._tail, 8 * points) for law, _ in parts]
            if self._is_covered(grids, theta, h * points) and theta == tilt:
                break
        self._transform(parts, grids, theta, h)

    def _coarse(self, law: Law) -> Grid:
        high, low = law.top(self._tail), law.bottom(self._tail)
        return on_grid(law, max((high - low) / 4096, 1e-300), self._tail, 5000)

    def _spacing(self, parts: Sequence[Part], h: float) -> float:
        spans = [law.span for law, _ in parts if law.span]
        if spans and spans[0] > h:
            return spans[0] / math.floor(spans[0] / h)
        return max([h, *spans[:1]]) if len(parts) == 1 else h

    def _total(self, grids: Sequence[Grid | Thinned], s: float) -> float:
        return float(sum(n * g.cumulant(s) for n, g in zip(self._counts, grids, strict=True)))

    def _tilt(self, grids: Sequence[Grid]) -> float:
        """The order of the best Chernoff bound at δ."""
        grids = [grid.thinned for grid in grids]
        log = math.log(1 / min(self.delta_near, 0.5))
        values = np.geomspace(1e-9, 1e9, 73)
        best = min(values, key=lambda s: (self._total(grids, s) + log) / s)
        near = best * np.geomspace(0.56, 1.78, 17)
        return float(min(near, key=lambda s: (self._total(grids, s) + log) / s))

    def _window(self, grids: Sequence[Grid], theta: float) -> tuple[float, float]:
        """Sums beyond which less than e^−36 of the tilted mass lies."""
        few, steps = [grid.thinned for grid in grids], theta * np.geomspace(1e-4, 1e4, 49)
        about, base = self._total(few, theta), self._total(grids, theta)
        up = min(steps, key=lambda s: (self._total(few, theta + s) - about + 36) / s)
        down = min(steps, key=lambda s: (self._total(few, theta - s) - about + 36) / s)
        high = (self._total(grids, theta + up) - base + 36) / up
        low = (base - self._total(grids, theta - down) - 36) / down
        n = self._counts
        most = sum(k * g.losses[-1] for k, g in zip(n, grids, strict=True))
        least = sum(k * g.losses[0] for k, g in zip(n, grids, strict=True))
        return max(low, least), min(high, most)

    def _is_covered(self, grids: Sequence[Grid], theta: float, width: float) -> bool:
        low, high = self._window(grids, theta)
        return high - low <= width * 1.02

    def _transform(
        self, parts: Sequence[Part], grids: Sequence[Grid], theta: float, h: float
    ) -> None:
        size = self._points
        self._theta, self._h = theta, h
        self._log_scale = self._total(grids, theta)
        log_phi, place = np.zeros(size // 2 + 1, dtype=complex), 0
        for (_, count), grid in zip(parts, grids, strict=True):
            tilted = np.exp(grid.log_mass + theta * grid.losses - grid.cumulant(theta))
            tilted /= tilted.sum()
            index = np.arange(tilted.size)
            centre = round(float((tilted * index).sum()))
            folded = np.bincount((index - centre) % size, tilted, minlength=size)
            place += count * (grid.first + centre)
            transformed = np.fft.rfft(folded)
            log_phi += count * np.log(np.where(transformed == 0, 1e-300, transformed))
        phi = np.exp(log_phi)
        wrapped = np.fft.irfft(phi, size)
        low, high = self._window(grids, theta)
        start = round((low + high) / 2 / h) - size // 2
        order = (start - place + np.arange(size)) % size
        self._mass = wrapped[order]
        self._losses = h * (start + np.arange(size))
        total = float(self._counts.sum())
        self._noise = float(np.abs(phi).sum()) * 2 / size * (total + 64) * 16 * EPS
        self._aliased = self._outside(grids, theta)
        self._infinite = any_of(
            (n, grid.infinite) for n, grid in zip(self._counts, grids, strict=True)
        )
        largest = sum(n * law.largest for law, n in parts)
        self._largest = largest + 1e-12 * abs(largest)
        self._surely = any_of((n, law.infinite) for law, n in parts) * (1 - 1e-12)
        each = np.array([[g.lost, g.drift + g.rounding, g.variance, g.rounding] for g in grids])
        self._lost, self._drift, self._variance, self._up = (self._counts @ each).tolist()
        self._eta = self.delta_near * 1e-4
        log = math.log(1 / self._eta)
        jump = h * log / 3  # Bernstein
        self._moved = self._drift + jump + math.sqrt(jump * jump + 2 * self._variance * log)
        self._relative = 1e-12 + 2e-15 * total + 4e-16 * abs(self._log_scale)

    def _outside(self, grids: Sequence[Grid], theta: float) -> float:
        """A Chernoff bound on the tilted mass outside the window."""
        few, steps = [grid.thinned for grid in grids], theta * np.geomspace(1e-3, 1e3, 49)
        mass = 0.0
        for sign, end in ((1.0, self._losses[-1]), (-1.0, self._losses[0])):
            last = [sign * grid.losses[-1 if sign > 0 else 0] for grid in grids]
            if float(self._counts @ last) <= sign * end:  # no sum is beyond
                continue
            s = sign * min(steps, key=lambda x: self._total(few, theta + sign * x) - sign * x * end)
            mass += math.exp(min(self._total(grids, theta + s) - self._log_scale - s * end, 0.0))
        return mass

    @property
    def width(self) -> float:
        """About how far the two ends are apart, relative to ε."""
        bound = (self._log_scale - math.log(min(self.delta_near, 0.5))) / self._theta
        return self._moved / max(abs(bound), 1e-300)

    def _rounded(self, epsilon: float) -> tuple[float, float]:
        """δ on the grid, and a bound on its numerical error."""
        exponent = self._log_scale - self._theta * epsilon
        reach = epsilon + max(exponent + 750, 0.0) / self._theta
        start, stop = np.searchsorted(self._losses, [epsilon, reach], side="right")
        gaps = self._losses[start:stop] - epsilon
        logs = exponent - self._theta * gaps
        if exponent > 650:  # far below the tail that the tilt is for
            return 0.0, 1.0
        weights = np.exp(logs) * -np.expm1(-gaps)
        error = self._aliased * math.exp(exponent) + self._noise * float(weights.sum())
        return float(self._mass[start:stop] @ weights), error

    def upper(self, epsilon: float) -> float:
        """A δ that is not below that of the composition."""
        if epsilon >= self._largest:
            return self._surely * (1 + 1e-11)
        at = epsilon - self._up - 1e-14 * abs(epsilon)
        if at < self._losses[0]:
            return 1.0
        value, error = self._rounded(at)
        return min(1.0, max(value, 0.0) + error + self._infinite + self._relative * max(value, 0.0))

    def lower(self, epsilon: float) -> float:
        """A δ that is not above that of the composition."""
        at = epsilon + self._moved + 1e-14 * abs(epsilon)
        value, error = self._rounded(at)
        finite = value * (1 - self._relative) - error - self._eta - self._lost
        return max(0.0, finite) + self._surely


def any_of(events: Iterable[tuple[float, float]]) -> float:
    """The probability that any of so many independent events of a probability happens."""
    each = [(n, p) for n, p in events if p > 0]
    if any(p >= 1 for _, p in each):
        return 1.0
    return -math.expm1(sum(n * math.log1p(-p) for n, p in each))
