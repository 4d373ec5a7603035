"""The cumulant function of a composed loss, to choose tilt, window and spacing.

Nothing here needs to be exact: a poor choice makes an interval wide, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.accounting.amplification import DirectedPair
from dpaudit.accounting.pld.grid import connect
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms.pairs import Floats

_NODES = 91
_POINTS = 2 * _NODES
_SAMPLE = 128
_WINDOW_LOG_TAIL = 21.0
"""Minus the logarithm of the mass outside the window, on either side, relative to δ, about."""

_ROOM, _STEEPEST = 12.0, 8.0
"""In deviations of what rounding spreads: room at either end, and inverse of the largest step."""

_DIGITS_TO_SPEND = math.log(1e5)


@dataclass(frozen=True)
class WeightedTerm:
    """A directed pair that stands for that many uses."""

    pair: DirectedPair
    count: float


@dataclass(frozen=True)
class Window:
    """Where a tilted loss lies.

    Attributes:
        theta: the tilt.
        bottom: lower end.
        top: upper end.
        down: Chernoff exponent that shows the lower end.
        up: Chernoff exponent that shows the upper end.
    """

    theta: float
    bottom: float
    top: float
    down: float
    up: float

    def spread_by(self, deviation: float) -> Window:
        """The window of a law that rounding to a grid has spread, with that sub-Gaussian deviation.

        What leaves it comes in again at its other end. An exponent d sees e^(d² s² / 2) of what is
        rounded, so that steps far above 1/s show nothing.
        """
        room, most = _ROOM * deviation, _STEEPEST / max(deviation, 1e-300)
        return Window(
            self.theta,
            self.bottom - room,
            self.top + room,
            min(self.down, most),
            min(self.up, most),
        )


@dataclass(frozen=True, eq=False)
class Cumulants:
    """K(θ) = Σ nᵢ ln E_P[e^(θLᵢ); Lᵢ < ∞] of coarsely discretised losses.

    Attributes:
        counts: how often each loss occurs, shape (m,).
        losses: losses, one row for each term, shape (m, n).
        masses: their P-masses, padded with zeros, shape (m, n).
    """

    counts: Floats
    losses: Floats
    masses: Floats

    @classmethod
    def of(cls, terms: Sequence[DirectedTerm], tail: float) -> Cumulants:
        """Of terms whose P-tails of that size are left out; a sample of them if they are many."""
        sample = _sample(terms, tail)
        coarse = [_points(term.pair, tail) for term in sample]
        # Nodes of a pair may be a few more than were asked for: the longest row decides.
        width = max(len(points) for points, _ in coarse)
        losses, masses = np.zeros((len(sample), width)), np.zeros((len(sample), width))
        for row, (points, mass) in enumerate(coarse):
            losses[row, : len(points)] = points
            losses[row, len(points) :] = points[-1]
            masses[row, : len(points)] = mass
        return cls(np.array([term.count for term in sample]), losses, masses)

    def value(self, theta: float) -> float:
        """K(θ)."""
        return float(self.counts @ self._rows(theta)[0])

    def tilted(self, theta: float) -> tuple[float, float, float]:
        """K(θ), K'(θ) and K''(θ): mean and variance of the loss tilted by e^(θL)."""
        logs, weights = self._rows(theta)
        means = (weights * self.losses).sum(axis=1)
        variances = (weights * (self.losses - means[:, None]) ** 2).sum(axis=1)
        return (
            float(self.counts @ logs),
            float(self.counts @ means),
            float(self.counts @ variances),
        )

    def _rows(self, theta: float) -> tuple[Floats, Floats]:
        exponents = theta * self.losses
        tops = exponents.max(axis=1)
        weights = self.masses * np.exp(exponents - tops[:, None])
        sums = np.maximum(weights.sum(axis=1), 1e-300)
        return tops + np.log(sums), weights / sums[:, None]

    def tilt_for_delta(self, log_delta: float) -> tuple[float, float]:
        """(θ, ε): the ε that K proves for δ, and the θ ≥ 0 that proves it.

        From (1 − e^(−u))₊ ≤ e^(θu) θ^θ / (1 + θ)^(1 + θ) (Canonne, Kamath and Steinke 2020,
        Proposition 12), minimised over θ.
        """
        return self._least(lambda k, t: (k + _log_factor(t) - log_delta) / t)

    def tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """(θ, ln δ): the δ that K proves for ε, and the θ ≥ 0 that proves it."""
        return self._least(lambda k, t: k + _log_factor(t) - t * epsilon)

    def _least(self, objective: Callable[[float, float], float]) -> tuple[float, float]:
        _, mean, variance = self.tilted(0.0)
        scale = 1 / max(math.sqrt(variance), abs(mean) * 1e-9, 1e-250)
        grid = np.geomspace(1e-5 * scale, 1e5 * scale, 41)
        best = (math.inf, float(grid[0]))
        for _ in range(3):
            for theta in grid:
                best = min(best, (objective(self.value(float(theta)), float(theta)), float(theta)))
            ratio = float(grid[1] / grid[0])
            grid = np.geomspace(best[1] / ratio, best[1] * ratio, 9)
        return best[1], best[0]

    def window(self, theta: float, epsilon: float) -> Window:
        """The narrowest window for that ε, at the best tilt θ or somewhat below it.

        A smaller tilt costs digits, of which there are plenty, but a loss with a heavy tail then
        needs a far narrower window.
        """
        best = self.value(theta) - theta * epsilon
        found = [
            self.window_at(theta * factor, cost)
            for factor in (1.0, 0.8, 0.65, 0.5, 0.35, 0.2)
            if (cost := self.value(theta * factor) - theta * factor * epsilon - best)
            < _DIGITS_TO_SPEND
        ]
        return min(found, key=lambda window: max(window.top, epsilon) - min(window.bottom, epsilon))

    def window_at(self, theta: float, cost: float = 0.0) -> Window:
        """The window for that tilt; ``cost`` is the logarithm of the digits to spend."""
        value, _, variance = self.tilted(theta)
        # A tilt may leave next to nothing but an atom; what lies beyond is then of the plain scale.
        # Nothing is told apart that lies closer together than a part in 10^9 of the losses.
        least = max(1e-9 * float(np.abs(self.losses).max()), 1e-250)
        plain = max(math.sqrt(self.tilted(0.0)[2]), least)
        narrow = min(max(math.sqrt(variance), 1e-4 * plain), plain)
        steps = np.geomspace(0.03 / max(plain, math.sqrt(variance)), 60 / narrow, 24)
        # Of two opposite atoms the tilt may leave one, which larger steps would not.
        steps = np.append(steps, [theta / 2, theta])
        needed = _WINDOW_LOG_TAIL + max(cost, 0.0) - value
        up = [(self.value(theta + t) + needed) / t for t in steps]
        down = [-(self.value(theta - t) + needed) / t for t in steps]
        high, low = int(np.argmin(up)), int(np.argmax(down))
        return Window(
            theta, float(down[low]), float(up[high]), float(steps[low]), float(steps[high])
        )


def _sample(terms: Sequence[DirectedTerm], tail: float) -> Sequence[WeightedTerm]:
    """At most about ``_SAMPLE`` terms that stand for all, by systematic sampling along max loss."""
    if len(terms) <= _SAMPLE:
        return [WeightedTerm(term.pair, float(term.count)) for term in terms]
    ends = [float(term.pair.nodes(tail, 2)[-1]) for term in terms]
    order = np.argsort(ends, kind="stable")
    groups = np.array_split(order, _SAMPLE)
    return [
        WeightedTerm(terms[group[len(group) // 2]].pair, math.fsum(terms[at].count for at in group))
        for group in groups
    ]


def _log_factor(theta: float) -> float:
    """Ln of θ^θ / (1 + θ)^(1 + θ)."""
    return -theta * math.log1p(1 / theta) - math.log1p(theta)


def _points(pair: DirectedPair, tail: float) -> tuple[Floats, Floats]:
    """Losses and P-masses that stand for the law: its atoms where they are few.

    What is truncated is left out.
    """
    atoms = pair.atoms()
    if atoms is not None and len(atoms[0]) <= _POINTS:
        held = atoms[0] <= max(float(pair.nodes(tail, 2)[-1]), float(atoms[0].min()))
        return atoms[0][held], atoms[1][held]
    return _coarse(pair, pair.nodes(tail, _NODES))


def _coarse(pair: DirectedPair, nodes: Floats) -> tuple[Floats, Floats]:
    """Points and masses with nearly the mean and variance of the exact loss.

    Moving a cell's mass to its ends shifts the mean by h²/12 and the variance by h²/6; merging it
    at ln(p/q) shifts them by −h²/24 and −h²/12. One third of the first and two thirds of the second
    shift neither.
    """
    if len(nodes) == 1:
        return nodes, np.ones(1)
    p, q, _, (beneath, beyond) = connect(pair, nodes)
    lower, upper = nodes[:-1], nodes[1:]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        up = (p - q * np.exp(np.minimum(lower, 600.0))) / -np.expm1(lower - upper)
        merged = np.clip(np.log(p) - np.log(q), lower, upper)
    up = np.clip(np.where(lower < 600, up, p), 0.0, p)
    merged = np.where(np.isfinite(merged), merged, upper)
    ends = np.append((p - up) / 3, 0.0)
    ends[1:] += up / 3
    # Atoms at the ends of the law may lie beyond the nodes by a rounding error.
    ends[0] += beneath
    ends[-1] += max(beyond - pair.infinite, 0.0)
    return np.append(merged, nodes), np.append(p * (2 / 3), ends)
