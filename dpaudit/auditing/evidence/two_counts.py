"""The exact test of a privacy claim from two counts: its p-value, lower bound and power.

*The largest probability of a monotone region over a privacy null, without a grid's gaps.* Under the
null ``p <= exp(epsilon) q + delta`` the chance of a region that grows with the count
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

*The test of* ``p <= exp(epsilon) q + delta`` *and its lower bound.* Auditors commonly put a
Clopper-Pearson bound on p and another on q, which pays twice. Here the null is tested as a whole,
unconditionally (as Barnard 1947 and Boschloo 1970 do for ``p = q``): outcomes are ordered by a
statistic, and the p-value is the largest probability, over the null, of an outcome at least as
extreme. The statistic is the profile likelihood ratio

    W(a, b) = min over q of  n KL(a/n || k q + delta) + m KL(b/m || q),    k = exp(epsilon),

and 0 where ``a/n <= k b/m + delta``. It grows with a and shrinks with b (move the minimiser of the
more extreme outcome towards the less extreme one: no term grows), so the supremum over the null is
on its boundary. The supremum over q is bounded from above as said, within
Clopper-Pearson intervals for p and q whose error is added (Berger and Boos 1994).

The lower bound orders outcomes by ``T(a, b)``, the epsilon at which ``W = z^2 / 2``. This order
does not depend on the null that is tested, so p-values grow with epsilon and inverting them gives
the one-sided confidence bound that is largest for this order (Buehler 1957).

*Power, and fewest runs.* These are forecasts for planning and for reporting silence, computed from
assumed probabilities of an event; they are not evidence. The critical value is that of the
fixed-order joint test, with the nuisance interval that the expected counts would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.auditing.evidence.events import Integers, PairCounts, confidence_failure
from dpaudit.base.validate import non_negative, open_fraction, probability
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
    return _least_count(runs, low), runs - _least_count(runs, 1 - high)


def _least_count(runs: int, chance: float) -> int:
    """A count that no more than ``_TAIL`` of a binomial is below."""
    from scipy.special import bdtrik  # scipy.stats takes half a second to load

    if not 0 < chance < 1:
        return 0 if chance <= 0 else runs
    count = float(bdtrik(_TAIL, runs, chance))
    return math.floor(count) if count > 0 else 0  # NaN is none


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


_TIE = 1e-9  # outcomes this close to the observed one count as equally extreme
_PRECISION = 1e-4  # of the bound on epsilon; the lower end is reported


def likelihood_ratio(a: Floats, b: Floats, n: int, m: int, epsilon: float, delta: float) -> Floats:
    """The statistic W for arrays of counts of equal shape, in nats."""
    from scipy.special import rel_entr

    k = math.exp(epsilon)
    p_hat, q_hat = a / n, b / m
    violated = p_hat > k * q_hat + delta
    # The minimiser lies between the q that fits b and the q whose p fits a.
    low, high = q_hat.copy(), np.where(violated, (p_hat - delta) / k, q_hat)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(48):
            q = (low + high) / 2
            p = k * q + delta
            slope = k * n * (p_hat - p) / (p * (1 - p)) + m * (q_hat - q) / (q * (1 - q))
            low, high = np.where(slope > 0, q, low), np.where(slope > 0, high, q)
    q = (low + high) / 2
    p = np.clip(k * q + delta, 0.0, 1.0)
    value = n * (rel_entr(p_hat, p) + rel_entr(1 - p_hat, 1 - p))
    value += m * (rel_entr(q_hat, q) + rel_entr(1 - q_hat, 1 - q))
    return np.where(violated, value, 0.0)


def single_ratio(a: float, b: float, n: int, m: int, epsilon: float, delta: float) -> float:
    """The statistic W of one outcome: the same numbers as of an array, in a twentieth of the time.

    Example:
        >>> whole = likelihood_ratio(np.array([9.0]), np.array([2.0]), 12, 15, 0.5, 0.01)
        >>> single_ratio(9, 2, 12, 15, 0.5, 0.01) == whole.item()
        True
    """
    from scipy.special import rel_entr

    k = math.exp(epsilon)
    p_hat, q_hat = a / n, b / m
    if not p_hat > k * q_hat + delta:
        return 0.0
    low, high = q_hat, (p_hat - delta) / k
    q = (low + high) / 2
    for _ in range(48):
        p = k * q + delta
        if not (0 < p < 1 and 0 < q < 1):  # a division by 0, which arrays take as infinite
            counts = np.array([float(a)]), np.array([float(b)])
            return float(likelihood_ratio(*counts, n, m, epsilon, delta)[0])
        slope = k * n * (p_hat - p) / (p * (1 - p)) + m * (q_hat - q) / (q * (1 - q))
        low, high = (q, high) if slope > 0 else (low, q)
        q = (low + high) / 2
        if q in (low, high):
            break
    p = min(max(k * q + delta, 0.0), 1.0)
    value = n * (rel_entr(p_hat, p) + rel_entr(1 - p_hat, 1 - p))
    value += m * (rel_entr(q_hat, q) + rel_entr(1 - q_hat, 1 - q))
    return float(value)


def likelihood_region(n: int, m: int, epsilon: float, delta: float, level: float) -> Region:
    """The outcomes with ``W >= level > 0``, as a monotone region."""

    def least(b: Integers) -> Integers:
        other = b.astype(np.float64)
        low = np.clip(np.floor(n * (math.exp(epsilon) * other / m + delta)), -1, n)
        high = np.full_like(low, n + 1)
        while (high - low > 1).any():
            a = np.floor((low + high) / 2)
            inside = likelihood_ratio(a, other, n, m, epsilon, delta) >= level
            done = high - low <= 1
            high = np.where(inside & ~done, a, high)
            low = np.where(inside | done, low, a)
        smallest: Integers = np.minimum.accumulate(high[::-1])[::-1].astype(np.int64)
        return smallest

    return Region(n, m, least)


def _cached(region: Region) -> Region:
    """The same region, remembering one range of b (searches ask for nearly the same again)."""
    start, values = 0, np.empty(0, dtype=np.int64)

    def least(b: Integers) -> Integers:
        nonlocal start, values
        if values.size == 0 or b[0] < start or b[-1] >= start + values.size:
            margin = b.size // 4 + 8
            first = max(0, int(b[0]) - margin)
            last = min(region.other_runs, int(b[-1]) + margin)
            start, values = first, region.least(np.arange(first, last + 1))
        return values[b - start]

    return Region(region.runs, region.other_runs, least)


def joint_p_value(
    counts: PairCounts, epsilon: float, delta: float, *, nuisance_error: float = 1e-6
) -> float:
    """Exact p-value of the null ``p <= exp(epsilon) q + delta``.

    Args:
        counts: hits of an event fixed before these runs were drawn.
        epsilon: claimed epsilon, at least 0.
        delta: claimed delta, in [0, 1).
        nuisance_error: error rate of the intervals for p and q, which is added to the p-value.

    Returns:
        A number that is at most alpha with probability at most alpha, for every alpha, whenever
        the null is true.

    Raises:
        InputError: if a number is out of its range.

    Example:
        >>> counts = PairCounts(hits=90, runs=100, other_hits=10, other_runs=100)
        >>> joint_p_value(counts, epsilon=1.0, delta=0.0) < 1e-5
        True
    """
    non_negative(epsilon=epsilon)
    probability(delta=delta)
    open_fraction(nuisance_error=nuisance_error)
    n, m = counts.runs, counts.other_runs
    level = single_ratio(counts.hits, counts.other_hits, n, m, epsilon, delta) * (1 - _TIE)
    if level <= 0:
        return 1.0
    region = likelihood_region(n, m, epsilon, delta, level)
    box = Box.around(counts, nuisance_error)
    return min(1.0, null_supremum(region, epsilon, delta, box) + nuisance_error)


def joint_lower_bound(counts: PairCounts, delta: float, confidence: float = 0.95) -> float:
    """Exact lower confidence bound on epsilon at ``delta``.

    Args:
        counts: hits of an event fixed before these runs were drawn.
        delta: in [0, 1).
        confidence: the probability that the bound is not above the truth, in (0, 1).

    Raises:
        InputError: if a number is out of its range.

    Example:
        >>> counts = PairCounts(hits=5000, runs=10_000, other_hits=1839, other_runs=10_000)
        >>> round(joint_lower_bound(counts, delta=0.0), 2)
        0.96
    """
    probability(delta=delta)
    return _largest_refuted(counts, delta, confidence_failure(confidence))


def _largest_refuted(counts: PairCounts, delta: float, error: float) -> float:
    """The largest epsilon (rounded down) whose null is rejected at level ``error``."""
    from scipy.special import ndtri

    n, m = counts.runs, counts.other_runs
    level = max(float(ndtri(error)) ** 2 / 2, 0.01)

    def statistic(epsilon: float) -> float:
        return single_ratio(counts.hits, counts.other_hits, n, m, epsilon, delta)

    if statistic(0.0) < level:
        return 0.0
    # T(a, b): the lower end, so that the observed outcome itself is in the region.
    order = _bisect(lambda epsilon: statistic(epsilon) >= level, 0.0, 1.0, 1e-12)
    region = _cached(likelihood_region(n, m, order, delta, level * (1 - _TIE)))
    nuisance_error = error / 1000
    box = Box.around(counts, nuisance_error)

    def rejected(epsilon: float) -> bool:
        return null_supremum(region, epsilon, delta, box) + nuisance_error <= error

    if not rejected(0.0):
        return 0.0
    step = max(_PRECISION, 0.02 * order)
    start = order
    while start > 0 and not rejected(start):
        start = max(0.0, start - step)
        step *= 2
    return _bisect(rejected, start, max(_PRECISION, 0.01 * start), _PRECISION)


def _bisect(accept: Callable[[float], bool], low: float, step: float, precision: float) -> float:
    """The last accepted value, from an accepted ``low`` upwards, for a monotone ``accept``."""
    while accept(low + step):
        low += step
        step *= 2
    high = low + step
    while high - low > precision:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if accept(middle):
            low = middle
        else:
            high = middle
    return low


def critical_region(
    runs: int, epsilon: float, delta: float, error: float, box: Box
) -> Region | None:
    """The largest likelihood-ratio region whose chance under the null is at most ``error``.

    Args:
        runs: on each side.
        epsilon: the null's epsilon.
        delta: the null's delta.
        error: the level of the test.
        box: where the null's probabilities are looked for.

    Returns:
        The region, or ``None`` if even the most extreme outcome is too likely under the null.
    """
    high = 1.0

    def keeps_error(level: float) -> bool:
        region = likelihood_region(runs, runs, epsilon, delta, level)
        return null_supremum(region, epsilon, delta, box) <= error

    while high < 4.0 * runs and not keeps_error(high):
        high *= 2
    if high >= 4.0 * runs:
        return None
    low = 0.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if keeps_error(middle):
            high = middle
        else:
            low = middle
    return likelihood_region(runs, runs, epsilon, delta, high)


def power(
    p: float, q: float, runs: int, epsilon: float, delta: float, error: float = 0.05
) -> float:
    """Probability that the joint test refutes (epsilon, delta) if the truth is (p, q).

    Args:
        p: the event's probability on the large side.
        q: its probability on the small side.
        runs: test runs on each side.
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        error: the level of the test.
    """
    expected = PairCounts(round(runs * p), runs, round(runs * q), runs)
    box = Box.around(expected, error / 1000)
    region = critical_region(runs, epsilon, delta, error * (1 - 1 / 1000), box)
    if region is None:
        return 0.0
    return float(region_probability(region, np.array([p]), np.array([q]))[0])


def fewest_runs(epsilon: float, delta: float, error: float = 0.05) -> int:
    """The smallest n at which n runs a side could ever refute (epsilon, delta).

    The most extreme outcome is n hits against 0; under the null its chance is at most
    ``max over q of ((k q + delta)(1 - q))^n`` with ``k = exp(epsilon)``.

    Raises:
        InputError: if a number is out of its range.

    Example:
        >>> fewest_runs(epsilon=1.0, delta=0.0)
        7
    """
    k = math.exp(non_negative(epsilon=epsilon))
    probability(delta=delta)
    open_fraction(error=error)
    q = min((k - delta) / (2 * k), (1 - delta) / k)
    chance = min(1.0, k * q + delta) * (1 - q)
    return math.ceil(math.log(error) / math.log(chance) - 1e-9)
