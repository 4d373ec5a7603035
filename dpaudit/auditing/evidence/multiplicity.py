"""Paying for many looks: error rates shared over pairs, directions and events.

Choosing on a pilot (:mod:`.events`) costs nothing; testing several things on the same level does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.types import LowerBound, PairCounts, confidence_failure
from dpaudit.errors import InputError
from dpaudit.validate import finite, integer_at_least, open_fraction, positive

__all__ = ["best_lower_bound", "mean_log_e_value", "share_error", "split_error"]


def share_error(error: float, *, pairs: int = 1, directions: int = 1, events: int = 1) -> float:
    """The Bonferroni share of an error rate for each of ``pairs * directions * events`` tests.

    Example:
        >>> share_error(0.05, pairs=5, directions=2)
        0.005

    Raises:
        InputError: if ``error`` is not in (0, 1) or a number of tests is below 1.
    """
    open_fraction(error=error)
    integer_at_least(1, pairs=pairs)
    integer_at_least(1, directions=directions)
    integer_at_least(1, events=events)
    return error / (pairs * directions * events)


def split_error(error: float, weights: Iterable[float]) -> list[float]:
    """An error rate split in proportion to weights that were fixed in advance.

    Example:
        >>> split_error(0.08, [2, 1, 1])
        [0.04, 0.02, 0.02]

    Raises:
        InputError: if ``error`` is not in (0, 1), or a weight is not positive, or there are none.
    """
    open_fraction(error=error)
    values = [positive(weight=weight) for weight in weights]
    if not values:
        raise InputError("weights is empty; at least one test is needed.")
    total = math.fsum(values)
    return [error * value / total for value in values]


def best_lower_bound(
    tests: Sequence[PairCounts], delta: float, confidence: float = 0.95
) -> tuple[int, LowerBound]:
    """The largest of several lower bounds, each at a Bonferroni share of the error.

    Args:
        tests: counts of events fixed before the counted runs, one per pair, direction or event.
        delta: in [0, 1).
        confidence: the confidence of the returned bound, multiplicity included.

    Returns:
        The index of the test, and its bound.

    Raises:
        InputError: if there are no tests, or a number is out of range.
    """
    if not tests:
        raise InputError("tests is empty; at least one test is needed.")
    each = 1.0 - share_error(confidence_failure(confidence), events=len(tests))
    bounds = [joint_lower_bound(counts, delta, each) for counts in tests]
    best = max(range(len(bounds)), key=lambda index: bounds[index].epsilon)
    bound = bounds[best]
    return best, LowerBound(bound.epsilon, delta, confidence, bound.method, bound.runs)


def mean_log_e_value(log_e_values: Sequence[float]) -> float:
    """Logarithm of the average of e-values: an e-value again, whatever their dependence.

    The values must be the *present* ones of processes at one time, not their peaks.

    Raises:
        InputError: if there are no values, or one is not finite.
    """
    values = np.array([finite(log_e_value=value) for value in log_e_values])
    if values.size == 0:
        raise InputError("log_e_values is empty; at least one e-value is needed.")
    return float(np.logaddexp.reduce(values) - math.log(values.size))
