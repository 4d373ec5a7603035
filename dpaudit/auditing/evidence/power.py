"""What an audit that found nothing would have found: power of the joint test, and runs needed.

These are forecasts for planning and for reporting silence, computed from assumed probabilities of
an event; they are not evidence. The critical value is that of the fixed-order joint test, with the
nuisance interval that the expected counts would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.auditing.evidence.joint import likelihood_region
from dpaudit.auditing.evidence.nuisance import Box, Region, null_supremum, region_probability
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.errors import InputError
from dpaudit.validate import (
    finite,
    integer_at_least,
    interval,
    non_negative,
    open_fraction,
    probability,
)

__all__ = ["critical_region", "detectable", "fewest_runs", "power", "runs_needed"]

_MOST_RUNS = 10**9


def _closed(**field: float) -> float:
    ((name, value),) = field.items()
    if not 0 <= finite(**field) <= 1:
        raise InputError(f"{name} is {value!r}; it must be a number in [0, 1].")
    return float(value)


def critical_region(
    n: int, m: int, epsilon: float, delta: float, error: float, box: Box
) -> Region | None:
    """The largest likelihood-ratio region whose chance under the null is at most ``error``.

    Args:
        n: runs on the large side.
        m: runs on the small side.
        epsilon: the null's epsilon.
        delta: the null's delta.
        error: the level of the test.
        box: where the null's probabilities are looked for.

    Returns:
        The region, or ``None`` if even the most extreme outcome is too likely under the null.
    """
    high = 1.0
    while high < 2.0 * (n + m) and not _fits(n, m, epsilon, delta, high, error, box):
        high *= 2
    if high >= 2.0 * (n + m):
        return None
    low = 0.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if _fits(n, m, epsilon, delta, middle, error, box):
            high = middle
        else:
            low = middle
    return likelihood_region(n, m, epsilon, delta, high)


def _fits(
    n: int, m: int, epsilon: float, delta: float, level: float, error: float, box: Box
) -> bool:
    region = likelihood_region(n, m, epsilon, delta, level)
    return null_supremum(region, epsilon, delta, box) <= error


def power(
    p: float, q: float, n: int, m: int, epsilon: float, delta: float, error: float = 0.05
) -> float:
    """Probability that the joint test refutes (epsilon, delta) if the truth is (p, q).

    Args:
        p: the event's probability on the large side.
        q: its probability on the small side.
        n: test runs on the large side.
        m: test runs on the small side.
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        error: the level of the test.

    Raises:
        InputError: if a number is out of its range.
    """
    _closed(p=p)
    _closed(q=q)
    integer_at_least(1, n=n)
    integer_at_least(1, m=m)
    non_negative(epsilon=epsilon)
    probability(delta=delta)
    open_fraction(error=error)
    expected = PairCounts(round(n * p), n, round(m * q), m)
    box = Box.around(expected, error / 1000)
    region = critical_region(n, m, epsilon, delta, error * (1 - 1 / 1000), box)
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


def runs_needed(
    p: float,
    q: float,
    epsilon: float,
    delta: float,
    error: float = 0.05,
    wanted_power: float = 0.9,
) -> int:
    """Test runs a side with which the joint test has the wanted power (to about 2 %).

    Raises:
        InputError: if (p, q) does not violate the claim, or would need over 1e9 runs, or a number
            is out of range.
    """
    open_fraction(wanted_power=wanted_power)
    low = fewest_runs(epsilon, delta, error) - 1
    if _closed(p=p) <= math.exp(epsilon) * _closed(q=q) + delta:
        raise InputError(
            f"p is {p} and q is {q}; p must exceed exp(epsilon) q + delta, or no number of runs "
            "can refute the claim."
        )
    high = max(16, 2 * low)
    while power(p, q, high, high, epsilon, delta, error) < wanted_power:
        low, high = high, 2 * high
        if high > _MOST_RUNS:
            raise InputError(f"p is {p} and q is {q}; to refute them takes over 1e9 runs a side.")
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        if power(p, q, middle, middle, epsilon, delta, error) < wanted_power:
            low = middle
        else:
            high = middle
    return high


def detectable(
    family: Callable[[float], tuple[float, float]],
    between: tuple[float, float],
    n: int,
    epsilon: float,
    delta: float,
    error: float = 0.05,
    wanted_power: float = 0.9,
) -> float | None:
    """The mildest fault of a family that would have been detected with the wanted power.

    Args:
        family: probabilities (p, q) of the tested event as a function of a parameter, such as the
            true epsilon or the factor by which noise is too small.
        between: the parameter of a correct mechanism, and that of the gravest fault; in either
            order of size. Power is taken to grow from the first to the second.
        n: test runs a side.
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        error: the level of the test.
        wanted_power: the probability of detection.

    Returns:
        The parameter to a thousandth of the range, on its detected side; ``None`` if even the
        gravest fault would probably have been missed.

    Raises:
        InputError: if a number is out of its range.
    """
    open_fraction(wanted_power=wanted_power)
    interval(between=tuple(sorted(between)))
    harmless, grave = between

    def detected(parameter: float) -> bool:
        p, q = family(parameter)
        return power(p, q, n, n, epsilon, delta, error) >= wanted_power

    if not detected(grave):
        return None
    while abs(grave - harmless) > abs(between[1] - between[0]) / 1000:
        middle = (harmless + grave) / 2
        if detected(middle):
            grave = middle
        else:
            harmless = middle
    return grave
