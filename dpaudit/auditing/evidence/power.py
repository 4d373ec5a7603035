"""What an audit that found nothing would have found: power of the joint test, and fewest runs.

These are forecasts for planning and for reporting silence, computed from assumed probabilities of
an event; they are not evidence. The critical value is that of the fixed-order joint test, with the
nuisance interval that the expected counts would give.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.auditing.evidence.joint import likelihood_region
from dpaudit.auditing.evidence.nuisance import Box, Region, null_supremum, region_probability
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.base.validate import non_negative, open_fraction, probability


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
