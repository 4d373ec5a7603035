"""Random allocation: every unit takes part in one of T releases, which is drawn uniformly.

Let each release be dominated by (P, Q), of loss L, whatever was released before. Then T draws from
Q, one of them replaced by a draw from P, are turned into the releases one after the other, by maps
that need not know which one it is: so (Σ_i Q…P_i…Q / T, Q^T) dominates an epoch, also of adaptive
releases (Feldman and Shenfeld 2025, *Privacy amplification by random allocation*; Chua et al. 2024,
*Balls-and-bins sampling for DP-SGD*). Its likelihood ratio is the mean R
of T independent X = e^L, so that the curves of both directions, E(R − α)₊ and E(1 − αR)₊ under Q,
rise where mass of X is moved outwards with its mean kept, the first also where X grows and the
second where X falls. So X is put on an even grid, to the two ends of each cell, and composed there,
once for each direction: every rounding error moves mass to the side that costs more, or adds some
where it is. A measure that is somewhat above a law then stands for it, so that many epochs
multiply what is proved by a factor near 1; only what is cut off, beyond a Chernoff bound, counts as
infinite loss, as it would add up. An epoch costs no more than one release, whose place is known,
and that is what replaced units cost. So it counts where X has so heavy a tail (σ below 0.6, about)
that no even grid holds it; Poisson samples, which need no sum of X, may then seem cheaper by far.
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
from dpaudit.accounting.pld.engine import MOST_INFINITE
from dpaudit.accounting.pld.grid import UNIT, Composer, GridLoss, Tilt, connect, tilt_transform
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float
from dpaudit.plan import Invocation, RandomAllocation

_GRIDS = ((40.0, 1e-30), (40.0, 1e-24), (20.0, 1e-20), (10.0, 1e-16), (5.0, 1e-14), (3.0, 1e-12))
"""Cells of a standard deviation of X, and what may be cut off at each end; the finest that fits."""
_CUT, _RARE = 1e-30, 1e-9
_MOST = 2**20


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
        """Return the pairs of an epoch."""
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
    """The (remove, add) pairs of one epoch; None where no grid holds X, or it has no variance.

    Args:
        base: the symmetric pair of one release.
        steps: T.
    """
    if not base.has_law or PlainPair(base).infinite > MOST_INFINITE:
        return None
    deviation = _deviation(base)
    if not deviation > 1e-6:
        return None
    remove = add = None
    for cells, cut in _GRIDS:
        remove = remove or _removed(_grid(base, deviation / cells, cut), steps)
        add = add or _added(_low_grid(base, deviation, cells, steps), steps)
    return None if remove is None or add is None else (remove, add)


def _removed(grid: _Grid | None, steps: int) -> AtomsPair | None:
    found = None if grid is None else _mean(grid, steps, tilted=True)
    if grid is None or found is None:
        return None
    ratio, masses = found
    held, rest = ratio > 0, grid.lost * steps + grid.beyond + 4 * _CUT
    return AtomsPair(np.log(ratio[held]), (masses * ratio)[held], rest)


def _added(grid: _Grid | None, steps: int) -> AtomsPair | None:
    found = None if grid is None else _mean(grid, steps, tilted=False)
    if grid is None or found is None:
        return None
    ratio, masses = found
    held = ratio > 0
    rest = float(masses[~held].sum()) + grid.lost * steps + 4 * _CUT
    return AtomsPair(-np.log(ratio[held])[::-1], masses[held][::-1], rest)


@dataclass(frozen=True, eq=False)
class _Grid:
    """A measure under Q that stands for X.

    Attributes:
        points: evenly spaced, shape (n,).
        masses: of the points, shape (n,).
        lost: Q-mass of X that the points leave out.
        beyond: P-mass of that.
    """

    points: Floats
    masses: Floats
    lost: float
    beyond: float

    @property
    def least(self) -> float:
        """The first point."""
        return float(self.points[0])

    @property
    def spacing(self) -> float:
        """Of the points."""
        return float(self.points[-1] - self.points[0]) / (len(self.points) - 1)

    @property
    def values(self) -> Floats:
        """The points, less the first."""
        return self.spacing * np.arange(len(self.masses), dtype=np.float64)


def _deviation(base: DominatingPair) -> float:
    """About the standard deviation of X where it is finite, as of its law without far tails."""
    whole = float(base.renyi(2.0))
    if whole < 100:
        return math.sqrt(math.expm1(whole))
    pair = PlainPair(base)
    p, q, _, _ = connect(pair, pair.nodes(1e-6, 512))
    held = q > 1e-290
    return math.sqrt(max(float((p[held] ** 2 / q[held]).sum()) - 1, 0.0))


def _grid(base: DominatingPair, wanted: float, cut: float) -> _Grid | None:
    """What is no less than X for E(R − α)₊; None where it has too many points."""
    points = _points(base, wanted, cut)
    if points is None:
        return None
    law = _cells(base, points)
    masses = _split(law, law.doubt)
    masses[1:] += law.off
    masses[0] += law.under
    return _Grid(points, masses, law.over, law.beyond)


def _low_grid(base: DominatingPair, deviation: float, cells: float, steps: int) -> _Grid | None:
    """What is no less than X for E(1 − αR)₊, for which X may be cut at the last point.

    Means of a tenth of what T draws may all be below are told apart.
    """
    rare = min(_RARE ** (1 / steps), 0.4)
    fewest = steps * math.exp(-min(base.upper_quantile(rare), 500.0))
    points = _points(base, min(deviation, 4 * fewest) / cells, _RARE)
    if points is None:
        return None
    law = _cells(base, points)
    masses = _split(law, -law.doubt)
    masses[:-1] += law.off
    masses[-1] += law.over
    ends_there = points[0] == 0 or as_float(base.pure_epsilon) < math.inf
    masses[0] += law.under if ends_there else 0.0
    return _Grid(points, masses, 0.0 if ends_there else law.under, 0.0)


def _points(base: DominatingPair, wanted: float, cut: float) -> Floats | None:
    """An even grid of about that spacing for X, from its least value or nearly so."""
    top = math.exp(min(base.upper_quantile(cut), 700.0))
    end = min(as_float(base.pure_epsilon), base.upper_quantile(_CUT))
    least = math.exp(-end) if end < 500 and PlainPair(base).infinite == 0 else 0.0
    count = math.ceil(min((top - least) / max(wanted, 1e-7), 2.0 * _MOST))
    if not 0 < count < _MOST:
        return None
    ends: Floats = least + (top - least) / count * np.arange(count + 2, dtype=np.float64)
    return ends


@dataclass(frozen=True, eq=False)
class _Cells:
    """What lies between the points, shape (n − 1,), and beyond them.

    Attributes:
        q: Q-mass.
        share: that part of it which goes to the upper end, so that the mean is kept.
        doubt: what that may be off by.
        off: Q-mass that may lie in the next cell.
        under: Q-mass up to the first point.
        over: Q-mass beyond the last.
        beyond: P-mass there.
    """

    q: Floats
    share: Floats
    doubt: Floats
    off: Floats
    under: float
    over: float
    beyond: float


def _cells(base: DominatingPair, points: Floats) -> _Cells:
    losses = np.log(np.maximum(points, 1e-300))
    p, q, error, (_, beyond) = connect(PlainPair(base), losses)
    above, below = base.above(losses)[1], base.below(losses)[1]
    edge = np.minimum(above, below)
    off = 16 * UNIT * edge * (1 - np.log(np.maximum(edge, 1e-300)))
    spacing = float(points[-1] - points[0]) / (len(points) - 1)
    share, doubt = (p - points[:-1] * q) / spacing, error / spacing
    return _Cells(q, share, doubt, off[:-1] + off[1:], float(below[0]), float(above[-1]), beyond)


def _split(cells: _Cells, more: Floats) -> Floats:
    """The masses of the points, with so much more at the upper ends than keeps the mean."""
    up = np.clip(cells.share + more, 0.0, cells.q)
    masses = np.append(cells.q - up, 0.0)
    masses[1:] += up
    return masses


def _tilt(masses: Floats, values: Floats, steps: int, width: float) -> float:
    """A tilt under which large sums are rarer than they are dear, and no others are dearer by far.

    What a transform may be off by counts R times in the law of P: a heavy tail needs it to fall.
    What wraps around is cut off below e^−60, and comes back by ``width`` further down.
    """
    theta = min(1.0 / steps, 30 / width)
    while theta * width > 1e-3:
        if steps * math.log(float(masses @ np.exp(theta * values))) < theta * steps + 1:
            return theta
        theta /= 2
    return 0.0


def _mean(grid: _Grid, steps: int, *, tilted: bool) -> tuple[Floats, Floats] | None:
    """The mean of T draws: its values, and masses that are no less than those of the measure."""
    h, masses, values = grid.spacing, grid.masses, grid.values
    bottom, top = _window(grid, steps)
    theta = _tilt(masses, values, steps, top - bottom) if tilted else 0.0
    first, size = math.floor(bottom / h), math.ceil((top - bottom) / h) + 3
    size += size % 2
    if size > 2 * _MOST:
        return None
    loss = GridLoss(0, masses, 0.0, 0.0, 0.0, np.zeros(len(masses)), 0.0, 0.0, 0.0)
    spectrum = tilt_transform(loss, h, Tilt(theta, 0.0, 0.0), size)
    composer = Composer(size)
    composer.multiply(spectrum, steps)
    law = composer.law(first)
    sums = h * np.arange(first, first + size, dtype=np.float64)
    rounding = UNIT * (32 * (steps + 4) + steps * (16 + 4 * spectrum.exponent))
    scale = np.exp(steps * spectrum.logs[0] - theta * sums) * (1 + rounding)
    return grid.least + sums / steps, (np.maximum(law.masses, 0.0) + law.error) * scale


def _window(grid: _Grid, steps: int) -> tuple[float, float]:
    """Sums of T draws, less T times the least, between which all but the cut lies, of P and of Q.

    By Chernoff's bounds: Q[S < b] <= M(−θ)^T e^(θb), and P[S > t] = E[X₁ 1(S > t)] under Q is at
    most E[X e^(θX)] M(θ)^(T−1) e^(−θt).
    """
    masses, values = grid.masses, grid.values
    mean = float(masses @ values)
    deviation = math.sqrt(float(masses @ (values - mean) ** 2))
    bottom, top, cut = 0.0, float(values[-1]) * steps, math.log(_CUT)
    for theta in np.geomspace(0.01, 100.0, 60) / (deviation * math.sqrt(steps)):
        if theta * values[-1] < 600:
            weighted = masses * np.exp(theta * values)
            size = (steps - 1) * math.log(float(weighted.sum()))
            ahead = math.log(float(weighted @ (values + grid.least)))
            top = min(top, (ahead + size - cut) / theta)
        down = float(masses @ np.exp(-theta * values))
        if down > 1e-300:
            bottom = max(bottom, (cut - steps * math.log(down)) / theta)
    return bottom, top
