"""Laws after sampling: a Poisson sample, a part that may be disjoint, a subset of fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.soundness.oracle.laws import FiniteLaw, Floats, Law, Tails


def before(x: Floats, rate: float) -> Floats:
    """The u with e^x = 1 − q + q e^u; minus infinity where there is none."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(x, 30.0)) / rate, -1.0))
        large = x - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(x, 1.0)))
    return np.where(x < 30, small, large)


def after(u: float, rate: float) -> float:
    """ln(1 − q + q e^u)."""
    if u > 30:
        return u + math.log(rate + (1 - rate) * math.exp(-u))
    return math.log1p(rate * math.expm1(u))


@dataclass(frozen=True)
class RemovedLaw(Law):
    """(1 − q) Q + q P against Q: a sampled unit leaves."""

    base: Law
    rate: float

    @property
    def largest(self) -> float:
        return after(self.base.largest, self.rate) if self.base.largest < math.inf else math.inf

    @property
    def infinite(self) -> float:
        return self.rate * self.base.infinite

    def above(self, x: Floats) -> Tails:
        p, q = self.base.above(before(x, self.rate))
        least = np.asarray(x) < math.log1p(-self.rate)
        return np.where(least, 1.0, self.rate * p + (1 - self.rate) * q), np.where(least, 1.0, q)

    def below(self, x: Floats) -> Tails:
        p, q = self.base.below(before(x, self.rate))
        least = np.asarray(x) < math.log1p(-self.rate)
        return np.where(least, 0.0, self.rate * p + (1 - self.rate) * q), np.where(least, 0.0, q)


@dataclass(frozen=True)
class AddedLaw(Law):
    """Q against (1 − q) Q + q P: a sampled unit joins. The loss is at most −ln(1 − q)."""

    base: Law
    rate: float

    @property
    def largest(self) -> float:
        return -math.log1p(-self.rate)

    def _mixed(self, tails: Tails, x: Floats, end: float) -> Tails:
        p, q = tails
        most = np.asarray(x) >= -math.log1p(-self.rate)
        mixed = (1 - self.rate) * q + self.rate * p
        return np.where(most, end, q), np.where(most, end, mixed)

    def above(self, x: Floats) -> Tails:
        """Losses above x are losses of the base below that of −x, strictly."""
        edge = np.nextafter(before(-np.asarray(x), self.rate), -np.inf)
        return self._mixed(self.base.below(edge), x, 0.0)

    def below(self, x: Floats) -> Tails:
        edge = np.nextafter(before(-np.asarray(x), self.rate), -np.inf)
        return self._mixed(self.base.above(edge), x, 1.0)


@dataclass(frozen=True)
class ApartLaw(Law):
    """q P and q Q beside a part of weight 1 − q that neither meets: loss 0 there."""

    base: Law
    rate: float

    @property
    def largest(self) -> float:
        return self.base.largest

    @property
    def infinite(self) -> float:
        return self.rate * self.base.infinite

    def _with(self, tails: Tails, rest: Floats) -> Tails:
        p, q = tails
        return self.rate * p + rest, self.rate * q + rest

    def above(self, x: Floats) -> Tails:
        return self._with(self.base.above(x), np.where(np.asarray(x) < 0, 1 - self.rate, 0.0))

    def below(self, x: Floats) -> Tails:
        return self._with(self.base.below(x), np.where(np.asarray(x) < 0, 0.0, 1 - self.rate))


@dataclass(frozen=True)
class ReplacedLaw(Law):
    """What subsets of fixed size cost at most when one unit replaces another.

    Balle, Barthe and Gaboardi 2018: of losses above 0 the removed law, below 0 the added one.
    """

    base: Law
    rate: float

    @property
    def largest(self) -> float:
        return RemovedLaw(self.base, self.rate).largest

    @property
    def infinite(self) -> float:
        return self.rate * self.base.infinite

    def _joined(self, x: Floats, upper: Tails, lower: Tails) -> Tails:
        positive = np.asarray(x) >= 0
        return np.where(positive, upper[0], lower[0]), np.where(positive, upper[1], lower[1])

    def above(self, x: Floats) -> Tails:
        upper, lower = RemovedLaw(self.base, self.rate), AddedLaw(self.base, self.rate)
        return self._joined(x, upper.above(x), lower.above(x))

    def below(self, x: Floats) -> Tails:
        upper, lower = RemovedLaw(self.base, self.rate), AddedLaw(self.base, self.rate)
        return self._joined(x, upper.below(x), lower.below(x))


def finite(law: Law) -> FiniteLaw | None:
    """The law as finitely many losses, where it is one."""
    if isinstance(law, FiniteLaw):
        return law
    base = getattr(law, "base", None)
    if not isinstance(base, FiniteLaw) or base.losses.size > 64:
        return None
    q = law.rate  # type: ignore[attr-defined]
    if isinstance(law, ApartLaw):
        losses = np.append(base.losses, 0.0)
        p, other = np.append(q * base.p, 1 - q), np.append(q * base.q, 1 - q)
        order = np.argsort(losses)
        return FiniteLaw(losses[order], p[order], other[order], q * base.infinite, q * base.outside)
    moved = np.array([after(float(u), q) for u in base.losses])
    mixed, end = (1 - q) * base.q + q * base.p, math.log1p(-q)
    left, losses = (1 - q) * base.outside, np.append(end, moved)
    p, other = np.append(left, mixed), np.append(base.outside, base.q)
    if isinstance(law, RemovedLaw):
        return FiniteLaw(losses, p, other, q * base.infinite)
    if isinstance(law, AddedLaw):
        return FiniteLaw(-losses[::-1], other[::-1], p[::-1], 0.0, q * base.infinite)
    return None
