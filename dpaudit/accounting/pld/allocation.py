"""Random allocation: every unit takes part in one of T releases, which is drawn uniformly.

Let each release be dominated by (P, Q), of loss L, whatever was released before. Then T draws from
Q, one of them replaced by a draw from P, are turned into the releases one after the other, by maps
that need not know which one it is: so (Σ_i Q…P_i…Q / T, Q^T) dominates an epoch, also of adaptive
releases (Feldman and Shenfeld 2025, *Privacy amplification by random allocation*; Chua et al. 2024,
*Balls-and-bins sampling for DP-SGD*). Its likelihood ratio is the mean R of T independent e^L, so
that both curves, E(R − α)₊ and E(1 − αR)₊ under Q, rise if mass of e^L is moved outwards with its
mean kept. So e^L is put on an even grid, to the two ends of each cell, and composed there. What is
cut off, and all rounding, counts as infinite loss. An epoch costs no more than one release, whose
place is known, and that is what replaced units cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification import Amplification, DirectedPair, PlainPair, amplification
from dpaudit.accounting.amplification.poisson import is_absent
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.pld.discretise import GridLoss, connect
from dpaudit.accounting.pld.spectrum import Composer, Tilt, tilt_transform
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation, RandomAllocation

_CUT = 1e-16
"""What may be cut off at each end."""
_CELLS = 40.0
"""Of a standard deviation of e^L."""
_MOST = 2**20
_LEAST_LOSS = -700.0


@dataclass(frozen=True, eq=False)
class AtomsPair(DirectedPair):
    """Finitely many losses, and mass beyond all of them.

    Attributes:
        losses: strictly increasing, shape (n,).
        p: P-mass of each.
        rest: P-mass of infinite loss.
    """

    truly_infinite = 0.0  # what is cut off is not infinite
    is_attained = False  # it is an upper bound
    losses: Floats
    p: Floats
    rest: float

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums from the top down."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p, q = (np.append(np.cumsum(one[::-1])[::-1], 0.0)[at] for one in self._masses)
        return p + self.rest, q

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Sums from the bottom up."""
        at = np.searchsorted(self.losses, np.asarray(loss, dtype=np.float64), side="right")
        p, q = (np.append(0.0, np.cumsum(one))[at] for one in self._masses)
        return p, q

    @property
    def _masses(self) -> tuple[Floats, Floats]:
        return self.p, self.p * np.exp(-self.losses)

    def nodes(self, tail: float, count: int) -> Floats:
        """Evenly spaced losses between quantiles."""
        low = int(np.searchsorted(np.cumsum(self.p), tail))
        high = len(self.p) - 1 - int(np.searchsorted(np.cumsum(self.p[::-1]), tail))
        return np.unique(np.linspace(self.losses[min(low, high)], self.losses[high], count))

    @property
    def max_loss(self) -> float:
        """Infinite, as something is always cut off."""
        return math.inf

    def atoms(self) -> tuple[Floats, Floats]:
        """All losses and masses."""
        return self.losses, self.p


@dataclass(frozen=True)
class AllocationAmplification(Amplification):
    """One of so many releases in each epoch.

    Attributes:
        steps: releases of an epoch.
        hidden: whether it stays unknown which one, as where the unit is absent from a neighbour.
    """

    steps: int
    hidden: bool
    is_attained: ClassVar[bool] = False

    def uses(self, count: int) -> int:
        """Epochs."""
        return -(-count // self.steps)

    def epsilon(self, epsilon: Fraction | float) -> Fraction | float:
        """Unchanged: all releases may look like it."""
        return epsilon

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """Of an epoch."""
        plain = PlainPair(pair)
        return (self.hidden and allocated(pair, self.steps)) or (plain, plain)

    def log_moments(self, pair: DominatingPair) -> Floats:
        """Those of one release."""
        return (ORDERS - 1) * pair.renyi(ORDERS)


@amplification.register(RandomAllocation)
def _(sampling: RandomAllocation, use: Invocation) -> Amplification | None:
    if sampling.steps == 1:
        return None
    return AllocationAmplification(1 - 2.0**-53, sampling.steps, is_absent(use))


@lru_cache(maxsize=64)
def allocated(base: DominatingPair, steps: int) -> tuple[AtomsPair, AtomsPair] | None:
    """The (remove, add) pairs of one epoch; None where no grid holds e^L, or it has no variance.

    Args:
        base: the symmetric pair of one release.
        steps: T.
    """
    variance = math.expm1(min(float(base.renyi(2.0)), 700.0))
    top = math.exp(min(base.upper_quantile(_CUT), 700.0))
    spacing = max(math.sqrt(variance) / _CELLS, 1e-7)
    if not (base.has_law and variance > 1e-12 and top / spacing < _MOST):
        return None
    ends = spacing * np.arange(math.ceil(top / spacing) + 2, dtype=np.float64)
    losses = np.append(_LEAST_LOSS, np.log(ends[1:]))
    p, q, error, (beneath, beyond) = connect(PlainPair(base), losses)
    up = np.clip((p - ends[:-1] * q) / spacing, 0.0, q)
    masses = np.append(q - up, 0.0)
    masses[1:] += up
    outside = float(base.above(losses[-1])[1]) * steps
    masses[0] += float(base.below(_LEAST_LOSS)[1])
    return _composed(masses, spacing, steps, float(error.sum()) + beneath, beyond, outside)


def _composed(
    masses: Floats, spacing: float, steps: int, error: float, beyond: float, outside: float
) -> tuple[AtomsPair, AtomsPair] | None:
    """The mean of T draws from a grid.

    Args:
        masses: Q-mass of the points 0, h, 2h, …
        spacing: h.
        steps: T.
        error: P-mass that may be at another place, in all.
        beyond: P-mass of one draw beyond the grid.
        outside: Q-mass of any of T draws there, at most.
    """
    values = spacing * np.arange(len(masses), dtype=np.float64)
    bottom, top = _window(masses, values, steps)
    first, size = math.floor(bottom / spacing), math.ceil((top - bottom) / spacing) + 3
    size += size % 2
    if size > 2 * _MOST:
        return None
    loss = GridLoss(0, masses, 0.0, 0.0, 0.0, np.zeros(len(masses)), 0.0, 0.0, 0.0)
    spectrum = tilt_transform(loss, spacing, Tilt(0.0, 0.0, 0.0), size)
    composer = Composer(size)
    composer.multiply(spectrum, steps)
    law = composer.law(first)
    ratio = spacing * np.arange(first, first + size, dtype=np.float64) / steps
    found = np.maximum(law.masses, 0.0) * math.exp(steps * spectrum.logs[0])
    kept, nothing = (found > 0) & (ratio > 0), float(found[ratio <= 0].sum())
    ratio, found = ratio[kept], found[kept]
    rounding = law.total_error + 1e-15 * steps + 4 * _CUT
    joined = beyond + outside + error + rounding * float(ratio[-1])
    left = outside + rounding + error / float(ratio[0]) + nothing
    log = np.log(ratio)
    return AtomsPair(log, found * ratio, joined), AtomsPair(-log[::-1], found[::-1], left)


def _window(masses: Floats, values: Floats, steps: int) -> tuple[float, float]:
    """Sums of T draws between which all lie but for P- and Q-mass of at most the cut.

    By Chernoff's bounds: Q[S < b] <= M(−θ)^T e^(θb), and P[S > t] = E[S 1(S > t)]/T under Q is at
    most M'(θ) M(θ)^(T−1) e^(−θt).
    """
    deviation = math.sqrt(float(masses @ (values - 1.0) ** 2))
    bottom, top, cut = 0.0, float(values[-1]) * steps, math.log(_CUT)
    for theta in np.geomspace(0.01, 100.0, 60) / (deviation * math.sqrt(steps)):
        if theta * values[-1] < 600:
            weighted = masses * np.exp(theta * values)
            size = (steps - 1) * math.log(float(weighted.sum()))
            top = min(top, (math.log(float(weighted @ values)) + size - cut) / theta)
        down = float(masses @ np.exp(-theta * values))
        if down > 1e-300:
            bottom = max(bottom, (cut - steps * math.log(down)) / theta)
    return bottom, top
