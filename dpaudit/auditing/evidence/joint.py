"""One exact test of ``p <= exp(epsilon) q + delta`` from two counts, and its lower bound.

Auditors commonly put a Clopper-Pearson bound on p and another on q, which pays twice. Here the null
is tested as a whole, unconditionally (as Barnard 1947 and Boschloo 1970 do for ``p = q``): outcomes
are ordered by a statistic, and the p-value is the largest probability, over the null, of an outcome
at least as extreme. The statistic is the profile likelihood ratio

    W(a, b) = min over q of  n KL(a/n || k q + delta) + m KL(b/m || q),    k = exp(epsilon),

and 0 where ``a/n <= k b/m + delta``. It grows with a and shrinks with b (move the minimiser of the
more extreme outcome towards the less extreme one: no term grows), so the supremum over the null is
on its boundary. The supremum over q is bounded from above by :mod:`.nuisance`, within
Clopper-Pearson intervals for p and q whose error is added (Berger and Boos 1994).

The lower bound orders outcomes by ``T(a, b)``, the epsilon at which ``W = z^2 / 2``. This order
does not depend on the null that is tested, so p-values grow with epsilon and inverting them gives
the one-sided confidence bound that is largest for this order (Buehler 1957).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.auditing.evidence.nuisance import Box, Region, null_supremum
from dpaudit.auditing.evidence.types import Integers, PairCounts, confidence_failure
from dpaudit.base.validate import non_negative, open_fraction, probability
from dpaudit.mechanisms.pairs import Floats

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
