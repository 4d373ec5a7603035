"""Auditing with one run of the algorithm (Steinke, Nasr and Jagielski 2023).

Each of ``m`` canaries is included with probability 1/2, independently. The algorithm runs once; the
auditor, who sees its output, guesses for ``r`` canaries of its choice whether they were included,
and ``v`` guesses are right. Under (epsilon, delta)-DP with add-remove (or zero-out) neighbours, v
is hardly larger than Bin(r, 1 / (1 + exp(-epsilon))).
"""

from __future__ import annotations

import numpy as np

from dpaudit.auditing.evidence.types import confidence_failure
from dpaudit.errors import InputError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.validate import integer_at_least, non_negative, probability

_STEP = 0.005  # of the grid of epsilons
_BLOCK = 32  # grid points that are looked at together


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
    epsilons = np.array([non_negative(epsilon=epsilon)])
    return float(_p_values(canaries, guesses, correct, epsilons, probability(delta=delta))[0])


def _p_values(canaries: int, guesses: int, correct: int, epsilons: Floats, delta: float) -> Floats:
    """The bound at several epsilons, shape (n,)."""
    if correct == 0:
        return np.ones_like(epsilons)
    from scipy.stats import binom

    accuracy = 1.0 / (1.0 + np.exp(-epsilons))
    chances = np.asarray(binom.sf(correct - 1, guesses, accuracy), dtype=np.float64)
    if delta > 0:
        steps = np.arange(1, correct + 1)
        near = np.cumsum(binom.pmf(correct - steps, guesses, accuracy[:, None]), axis=1)
        chances = chances + 2.0 * canaries * delta * (near / steps).max(axis=1)
    return np.minimum(1.0, chances)


def one_run_lower_bound(
    canaries: int, guesses: int, correct: int, delta: float, confidence: float = 0.95
) -> float:
    """Lower bound on epsilon at ``delta`` from one run.

    Walks up a fixed grid of epsilons until the p-value exceeds ``1 - confidence``, and returns the
    last value before. If that exceeded the truth, the first grid value at or above the truth, for
    which the theorem's null holds, would have been rejected; so no monotonicity is needed.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.

    Example:
        >>> one_run_lower_bound(1000, 100, 95, delta=0.0)
        2.17
    """
    check_counts(canaries, guesses, correct)
    probability(delta=delta)
    error = confidence_failure(confidence)
    steps, accepted = 0, False
    while not accepted:
        grid = _STEP * np.arange(steps, steps + _BLOCK, dtype=np.float64)
        above = _p_values(canaries, guesses, correct, grid, delta) > error
        accepted = bool(above.any())
        steps += int(above.argmax()) if accepted else _BLOCK
    return round(max(0, steps - 1) * _STEP, 3)
