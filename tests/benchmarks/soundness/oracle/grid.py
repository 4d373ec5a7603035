"""Laws on grids, whose curve is not below their own, with what the rounding can have moved.

P- and Q-mass of every cell are kept, by points at both of its ends: the curve is then that of the
law with its points on the grid connected. The loss L̃ on the grid is a randomised rounding of L with
E[e^−L̃ | L] = e^−L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tests.benchmarks.soundness.oracle.laws import BeyondGridError, Floats, Law

EPS = 2.3e-16


@dataclass(frozen=True, eq=False)
class Grid:
    """A law on the grid: masses from index ``first`` on, what it left out, how it was rounded."""

    first: int
    h: float
    mass: Floats
    infinite: float
    lost: float
    variance: float
    drift: float
    rounding: float

    @cached_property
    def losses(self) -> Floats:
        return self.h * np.arange(self.first, self.first + self.mass.size)

    @cached_property
    def log_mass(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.mass)

    def cumulant(self, s: float) -> float:
        return log_sum(self.log_mass + s * self.losses)

    @cached_property
    def thinned(self) -> Thinned:
        """About the same on few points, to choose by."""
        step = -(-self.mass.size // 1024)
        rows = (-1, step)
        mass = np.pad(self.mass, (0, -self.mass.size % step)).reshape(rows)
        first = np.pad(self.mass * self.losses, (0, -self.mass.size % step)).reshape(rows)
        total = mass.sum(axis=1)
        held = total > 0
        return Thinned(first.sum(axis=1)[held] / total[held], np.log(total[held]))


@dataclass(frozen=True, eq=False)
class Thinned:
    """A few losses and their log-masses."""

    losses: Floats
    log_mass: Floats

    def cumulant(self, s: float) -> float:
        return log_sum(self.log_mass + s * self.losses)


def log_sum(logs: Floats) -> float:
    """ln Σ e^x."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def on_grid(law: Law, h: float, tail: float, most: int) -> Grid:
    """The law on multiples of h, but for about ``tail`` of its mass at either end."""
    high, low = law.top(tail), law.bottom(tail)
    first, last = math.floor(low / h) - 1, math.ceil(high / h) + 1
    if last - first > most:
        raise BeyondGridError("the law needs too many points")
    x = h * np.arange(first, last + 1)
    (p_up, q_up), (p_down, q_down) = law.above(x), law.below(x)
    # Of either law from the nearer end: where P's tail is large, Q's may be below the floats of 1.
    p = np.where(p_up[1:] < 0.5, p_up[:-1] - p_up[1:], p_down[1:] - p_down[:-1])
    q = np.where(q_up[1:] < 0.5, q_up[:-1] - q_up[1:], q_down[1:] - q_down[:-1])
    p, q = np.maximum(p, 0.0), np.maximum(q, 0.0)
    known = (q > 1e-290) & (p > 1e-290)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -np.expm1(np.log(q) - np.log(p) + x[:-1]) / -math.expm1(-h)
    share = np.clip(np.where(known, share, 1.0), 0.0, 1.0)  # of the cell that goes up
    mass = np.zeros(x.size)
    mass[1:] += p * share
    mass[:-1] += p * (1 - share)
    mass[0] += p_down[0]
    unsure = (1e-14 + 4 * EPS * np.abs(x[1:])) / h
    spread = np.where(known, np.minimum(share * (1 - share) + unsure, 0.25), 0.25)
    rounding = 4 * EPS * float(np.minimum(p_up, p_down).sum())
    outside = float(p_up[-1])
    held = np.flatnonzero(mass)
    first, mass = first + int(held[0]), mass[held[0] : held[-1] + 1]
    variance = h * h * float((p * spread).sum())
    # ln E e^−(L̃ − E L̃) is at most h²/8 (Hoeffding), and at most Var (e^h − 1 − h)/h² (Bennett).
    bennett = spread * (math.expm1(h) - h) if h < 9 else np.full(p.size, math.inf)
    # Where Q's mass is below the floats, all of the cell went up, by up to h.
    drift = float((p * np.where(known, np.minimum(bennett, h * h / 8), h)).sum())
    return Grid(first, h, mass, outside, float(p_down[0]), variance, drift, rounding)
