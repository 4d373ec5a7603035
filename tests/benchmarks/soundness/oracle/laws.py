"""Laws of privacy losses, each by its two tails, written down from the mechanisms' densities.

A law is that of L = ln dP/dQ under P and under Q. Nothing of the package's own pairs is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]
Tails = tuple[Floats, Floats]


class BeyondGridError(ValueError):
    """No grid holds the law."""


class Law:
    """Tails of a loss; ``span`` is a loss that a grid should divide, if there is one."""

    span: float | None = None

    def above(self, x: Floats) -> Tails:
        """(P[L > x], Q[L > x]); infinite losses count."""
        raise NotImplementedError

    def below(self, x: Floats) -> Tails:
        """(P[L <= x], Q[L <= x])."""
        raise NotImplementedError

    @property
    def largest(self) -> float:
        """The largest loss."""
        return math.inf

    @property
    def infinite(self) -> float:
        """The P-mass of infinite loss."""
        return 0.0

    def top(self, tail: float) -> float:
        """A loss with at most that much of the finite P-mass above it."""
        if self.largest < math.inf:
            return self.largest
        return _least(lambda x: float(self.above(np.array(x))[0]) - self.infinite <= tail)

    def bottom(self, tail: float) -> float:
        """A loss with at most that much P-mass at or below it."""
        return -_least(lambda x: float(self.below(np.array(-x))[0]) <= tail)


def _least(enough: Callable[[float], bool]) -> float:
    """A number, near the least one, from which on ``enough`` holds."""
    if enough(0.0):
        return 0.0
    high = 1e-12
    while not enough(high):
        high *= 2
        if high > 1e18:
            raise BeyondGridError("the loss has no quantile within floats")
    low = high / 2
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class GaussianLaw(Law):
    """N(μ, 1) against N(0, 1)."""

    mu: float

    def above(self, x: Floats) -> Tails:
        z = np.asarray(x) / self.mu
        return ndtr(self.mu / 2 - z), ndtr(-self.mu / 2 - z)

    def below(self, x: Floats) -> Tails:
        z = np.asarray(x) / self.mu
        return ndtr(z - self.mu / 2), ndtr(z + self.mu / 2)


@dataclass(frozen=True)
class LaplaceLaw(Law):
    """Laplace(e, 1) against Laplace(0, 1): at y in [0, e] the loss is 2y − e."""

    epsilon: float

    @property
    def span(self) -> float:  # type: ignore[override]
        return self.epsilon

    @property
    def largest(self) -> float:
        return self.epsilon

    def above(self, x: Floats) -> Tails:
        x, e = np.asarray(x), self.epsilon
        inside = np.clip(x, -e, e)
        p = 1 - np.exp((inside - e) / 2) / 2
        q = np.exp(-(inside + e) / 2) / 2
        zero, one = x >= e, x < -e
        return np.where(zero, 0.0, np.where(one, 1.0, p)), np.where(zero, 0.0, np.where(one, 1, q))

    def below(self, x: Floats) -> Tails:
        x, e = np.asarray(x), self.epsilon
        inside = np.clip(x, -e, e)
        p = np.exp((inside - e) / 2) / 2
        q = 1 - np.exp(-(inside + e) / 2) / 2
        one, zero = x >= e, x < -e
        return np.where(one, 1.0, np.where(zero, 0.0, p)), np.where(one, 1.0, np.where(zero, 0, q))


@dataclass(frozen=True)
class TruncatedLaw(Law):
    """Laplace noise up to ±u, with and without a shift e < 2u, by its distribution function."""

    epsilon: float
    end: float

    def _beyond(self, y: Floats | float) -> Floats:
        """P[noise > y]."""
        size = np.minimum(np.abs(y), self.end)
        half = np.exp(-size) * np.expm1(size - self.end) / (2 * math.expm1(-self.end))
        return np.where(np.asarray(y) > 0, half, 1 - half)

    @property
    def infinite(self) -> float:
        return float(self._beyond(self.end - self.epsilon))

    def top(self, tail: float) -> float:
        """Of the outputs that both have, the loss at the last."""
        return min(self.epsilon, 2 * self.end - self.epsilon)

    def above(self, x: Floats) -> Tails:
        """The loss is above x, within its ends, where the output is above (x + e)/2."""
        x, top, sure = np.asarray(x), self.top(0.0), self.infinite
        y = (np.clip(x, -top, top) + self.epsilon) / 2
        p, q = self._beyond(y - self.epsilon), self._beyond(y)
        zero, one = x >= top, x < -top
        return np.where(zero, sure, np.where(one, 1.0, p)), np.where(
            zero, 0.0, np.where(one, 1 - sure, q)
        )

    def below(self, x: Floats) -> Tails:
        x, top, sure = np.asarray(x), self.top(0.0), self.infinite
        y = (np.clip(x, -top, top) + self.epsilon) / 2
        p, q = self._beyond(self.epsilon - y), self._beyond(-y)
        one, zero = x >= top, x < -top
        return np.where(one, 1 - sure, np.where(zero, 0.0, p)), np.where(
            one, 1.0, np.where(zero, sure, q)
        )


@dataclass(frozen=True, eq=False)
class FiniteLaw(Law):
    """Finitely many losses with their masses; the rest of P is infinite loss, of Q minus that."""

    losses: Floats
    p: Floats
    q: Floats
    infinite: float = 0.0  # type: ignore[misc]
    outside: float = 0.0
    """The Q-mass where P has none."""
    span: float | None = None  # type: ignore[misc]

    @property
    def largest(self) -> float:
        return float(self.losses[-1])

    def above(self, x: Floats) -> Tails:
        at = np.searchsorted(self.losses, x, side="right")
        p, q = (np.append(np.cumsum(one[::-1])[::-1], 0.0)[at] for one in (self.p, self.q))
        return p + self.infinite, q

    def below(self, x: Floats) -> Tails:
        at = np.searchsorted(self.losses, x, side="right")
        p, q = (np.append(0.0, np.cumsum(one))[at] for one in (self.p, self.q))
        return p, q + self.outside


@dataclass(frozen=True)
class BoundedRangeLaw(Law):
    """The pair whose curve is the worst of all choices of range ε (Dong, Durfee and Rogers 2020).

    δ(x) = (e^{ε/2} − e^{x/2})²/(e^ε − 1), whose slope in e^x gives the two tails.
    """

    epsilon: float

    @property
    def largest(self) -> float:
        return self.epsilon

    def _tails(self, x: Floats) -> Tails:
        e = self.epsilon
        gap = -np.expm1((x - e) / 2) / -math.expm1(-e)  # (1 − e^{(x−ε)/2})/(1 − e^−ε)
        return np.clip(gap, 0, 1), np.clip(gap * np.exp(-(x + e) / 2), 0, 1)

    def above(self, x: Floats) -> Tails:
        e = self.epsilon
        p, q = self._tails(np.clip(x, -e, e))
        one = np.asarray(x) < -e
        return np.where(one, 1.0, p), np.where(one, 1.0, q)

    def below(self, x: Floats) -> Tails:
        """By symmetry: P[L <= x] = Q[L >= −x], and there are no atoms."""
        q, p = self.above(-np.asarray(x))
        return p, q
