"""The largest probability of a monotone region over a privacy null, without a grid's gaps.

Under the null ``p <= exp(epsilon) q + delta`` the chance of a region that grows with the count
``a ~ Bin(n, p)`` and shrinks with ``b ~ Bin(m, q)`` is largest on the boundary
``p = k q + delta`` (``k = exp(epsilon)``). What remains is a supremum over the nuisance ``q``, and
a maximum over grid points would fall short of it. Along the boundary the log likelihood of (a, b)
is concave in q, so that around the centre c of a cell it lies below its tangent::

    f_q(a, b) <= f_c(a, b) exp(s_c(a, b) t),   t = q - c,   s_c the score, linear in a and b.

Summed over the region this is ``Z(t) P_t(region)``, a normaliser times the chance under two tilted
binomials; being a mixture of exponentials in t it is convex, hence largest at the ends of the
cell. A cell of width h overestimates by a factor of only about ``exp(h^2 I / 8)``, with Fisher
information I. The two end cells use monotonicity instead. All sums are exact up to rounding, for
which the result is raised; counts outside the summed range are added as if they were inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.auditing.evidence.types import Integers, PairCounts
from dpaudit.mechanisms.pairs import Floats

_CELL = 0.4  # width in standard errors: an excess of about 2 % of the probability
_TAIL = 1e-13  # what may lie outside the summed range of counts, and is added
_ROUNDING = 1.0 + 1e-8


@dataclass(frozen=True)
class Region:
    """The counts ``{(a, b): a >= least(b)}``, ``least`` non-decreasing.

    Attributes:
        runs: n, the runs behind a.
        other_runs: m, the runs behind b.
        least: smallest a in the region for an array of b; ``n + 1`` where there is none.
    """

    runs: int
    other_runs: int
    least: Callable[[Integers], Integers] = field(repr=False)


@dataclass(frozen=True)
class Box:
    """A rectangle of success probabilities ``p_low <= p <= p_high``, ``q_low <= q <= q_high``."""

    p_low: float = 0.0
    p_high: float = 1.0
    q_low: float = 0.0
    q_high: float = 1.0

    @classmethod
    def around(cls, counts: PairCounts, error: float) -> Box:
        """The Clopper-Pearson intervals of p and q, which both hold but for an ``error``."""
        return cls(
            *clopper_pearson(counts.hits, counts.runs, error / 2),
            *clopper_pearson(counts.other_hits, counts.other_runs, error / 2),
        )


def clopper_pearson(hits: int, runs: int, error: float) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval for a probability, at total error rate ``error``."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, error / 2))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - error / 2))
    return low, high


def _count_range(runs: int, low: float, high: float) -> tuple[int, int]:
    """Counts that hold all but ``_TAIL`` of the binomials with probabilities in [low, high]."""
    from scipy.stats import binom

    return max(0, int(binom.ppf(_TAIL, runs, low))), min(runs, int(binom.isf(_TAIL, runs, high)))


def _pmf(counts: Integers, runs: int, probabilities: Floats) -> Floats:
    """Binomial probabilities, shape ``(len(probabilities), len(counts))``."""
    from scipy.special import gammaln, xlog1py, xlogy

    choices = gammaln(runs + 1.0) - gammaln(counts + 1.0) - gammaln(runs - counts + 1.0)
    chance = probabilities[:, None]
    logs = choices + xlogy(counts, chance) + xlog1py(runs - counts, -chance)
    pmf: Floats = np.exp(logs)
    return pmf


def _above(count: int, runs: int, probabilities: Floats) -> Floats:
    """``P(Bin(runs, p) > count)`` for each p, for ``-1 <= count <= runs``."""
    from scipy.special import betainc

    if count >= runs:
        return np.zeros_like(probabilities)
    if count < 0:
        return np.ones_like(probabilities)
    above: Floats = betainc(count + 1.0, float(runs - count), probabilities)
    return above


def region_probability(region: Region, p: Floats, q: Floats) -> Floats:
    """The chance of a region (never too small) for each pair of success probabilities.

    Args:
        region: a monotone region.
        p: success probabilities of a, shape ``(j,)``.
        q: success probabilities of b, shape ``(j,)``.
    """
    first, last = _count_range(region.other_runs, float(q.min()), float(q.max()))
    low, high = _count_range(region.runs, float(p.min()), float(p.max()))
    others = np.arange(first, last + 1)
    tail = np.cumsum(_pmf(np.arange(low, high + 1), region.runs, p)[:, ::-1], axis=1)[:, ::-1]
    tail = np.hstack([tail + _above(high, region.runs, p)[:, None], np.zeros((p.size, 1))])
    least = region.least(others)
    index = np.clip(least - low, 0, high - low + 1)
    chance = tail[:, index]
    chance[:, least <= low] = 1.0
    beyond = (least > high) & (least <= region.runs)
    chance[:, beyond] = _above(high, region.runs, p)[:, None]
    inside = (_pmf(others, region.other_runs, q) * chance).sum(axis=1)
    outside = 1.0 - _above(first - 1, region.other_runs, q)
    outside += _above(last, region.other_runs, q)
    # 1 - (1 - x) leaves rounding of 1e-16, which is far below the tail that it stands for.
    total: Floats = np.minimum(1.0, (inside + outside) * _ROUNDING)
    return total


def _cells(low: float, high: float, k: float, delta: float, region: Region) -> Floats:
    """Edges of cells of about ``_CELL`` standard errors each."""
    n, m = region.runs, region.other_runs
    edges = [low]
    if low >= high:
        return np.array(edges)
    while edges[-1] < high:
        q = edges[-1]
        p = k * q + delta
        information = k * k * n / (p * (1 - p)) + m / (q * (1 - q))
        edges.append(min(high, q + _CELL / math.sqrt(information)))
    return np.array(edges)


def null_supremum(region: Region, epsilon: float, delta: float, box: Box) -> float:
    """An upper bound of the region's chance over ``p <= exp(epsilon) q + delta`` within a box.

    Args:
        region: a region that grows with a and shrinks with b.
        epsilon: the null's epsilon, at least 0.
        delta: the null's delta, in [0, 1).
        box: where to look for (p, q).

    Returns:
        The bound; 0 if no point of the null lies in the box.
    """
    k = math.exp(epsilon)
    low = max(box.q_low, (box.p_low - delta) / k)
    corner = (box.p_high - delta) / k  # from here on p stays at its largest, and q only hurts
    if low > box.q_high:
        return 0.0
    if low >= corner:
        return float(region_probability(region, np.full(1, box.p_high), np.full(1, low))[0])
    high = min(box.q_high, corner)
    # End cells by monotonicity, where p or q is so near 0 or 1 that the tangent is of no use.
    margin = 0.01 / (k * region.runs + region.other_runs)
    inner_low = max(low, min(10 * margin, (low + high) / 2))
    inner_high = min(high, max((1.0 - delta) / k - margin, (inner_low + high) / 2))
    bounds = [0.0]
    for left, right in ((low, inner_low), (inner_high, high)):
        if left < right:
            p = np.full(1, min(1.0, k * right + delta))
            bounds.append(float(region_probability(region, p, np.full(1, left))[0]))
    edges = _cells(inner_low, inner_high, k, delta, region)
    if edges.size > 1:
        bounds.append(_tangent_bound(region, edges, k, delta))
    return min(1.0, max(bounds))


def _tangent_bound(region: Region, edges: Floats, k: float, delta: float) -> float:
    """The largest of ``Z(t) P_t(region)`` over both ends of every cell."""
    centre = np.tile((edges[1:] + edges[:-1]) / 2, 2)
    half = (edges[1:] - edges[:-1]) / 2
    t = np.concatenate([-half, half])
    p, log_z_first = _tilt(k * centre + delta, k * t, region.runs)
    q, log_z_second = _tilt(centre, t, region.other_runs)
    return float((np.exp(log_z_first + log_z_second) * region_probability(region, p, q)).max())


def _tilt(chance: Floats, step: Floats, runs: int) -> tuple[Floats, Floats]:
    """The success probability and log normaliser of a binomial tilted by ``exp(score * step)``."""
    up, down = step / chance, -step / (1 - chance)
    excess = chance * np.expm1(up) + (1 - chance) * np.expm1(down)
    return chance * np.exp(up) / (1 + excess), runs * np.log1p(excess)
