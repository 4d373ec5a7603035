"""Auditing with one run of the algorithm (Steinke, Nasr and Jagielski 2023).

Each of ``m`` canaries is included with probability 1/2, independently. The algorithm runs once; the
auditor, who sees its output, guesses for ``r`` canaries of its choice whether they were included,
and ``v`` guesses are right. Under (epsilon, delta)-DP with add-remove (or zero-out) neighbours, v
is hardly larger than Bin(r, 1 / (1 + exp(-epsilon))).
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.validate import integer_at_least, non_negative, probability


def check_counts(canaries: int, guesses: int, correct: int) -> None:
    """Refuse counts unless ``correct <= guesses <= canaries``.

    Raises:
        InputError: naming the count that is too large, or is no whole number.
    """
    integer_at_least(1, canaries=canaries)
    if integer_at_least(0, guesses=guesses) > canaries:
        raise InputError(f"guesses is {guesses}; it must be at most the {canaries} canaries.")
    if integer_at_least(0, correct=correct) > guesses:
        raise InputError(f"correct is {correct}; it must be at most the {guesses} guesses.")


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Bound on the chance of so many right guesses under (epsilon, delta)-DP.

    Steinke, Nasr and Jagielski 2023, Theorem 5.2: with ``B ~ Bin(r, 1 / (1 + exp(-epsilon)))``,
    ``P(V >= v) <= P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i``.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: r, fixed in advance (the others are abstentions).
        correct: v, the right ones.
        epsilon: claimed epsilon, at least 0.
        delta: claimed delta, in [0, 1).

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.

    Example:
        >>> round(one_run_p_value(10, 10, 10, epsilon=0.0, delta=0.0) * 2**10, 6)
        1.0
    """
    check_counts(canaries, guesses, correct)
    accuracy = 1.0 / (1.0 + math.exp(-non_negative(epsilon=epsilon)))
    probability(delta=delta)
    if correct == 0:
        return 1.0
    from scipy.stats import binom

    chance = float(binom.sf(correct - 1, guesses, accuracy))
    if delta > 0:
        steps = np.arange(1, correct + 1)
        near = np.cumsum(binom.pmf(correct - steps, guesses, accuracy))
        chance += 2.0 * canaries * delta * float((near / steps).max())
    return min(1.0, chance)
