"""What one run shows if its canaries do not act on each other.

The bounds for any algorithm allow that canaries do, and pay for it. If the score of each canary
follows from its own membership and independent noise alone, the number of right guesses has an
exact law, the law of order statistics (the approach of Xiang, Wang, Xiao, Tian and Wang 2025, arXiv
2509.08704). That is an assumption about the algorithm, and no test of this run can confirm it.

*Why.* Under a symmetric trade-off curve the view of each canary is a post-processing of the curve's
own pair of laws (Blackwell's theorem; Dong, Roth and Su 2022, section 2). Of m independent such
pairs, an auditor who makes r guesses has most right ones, in the order of stochastic dominance, by
guessing where the posterior is furthest from 1/2. Given that a share u of a pair's outcomes is
surer than the (r+1)-th surest, the r surest are independent and each is right with probability
a(u) = β/u, where β + α = u for a point (α, β) of the curve: both guesses, mirrored. So the right
ones are Bin(r, a(U)) with U from Beta(r + 1, m - r). As a decreases, U is replaced by the lower
ends of intervals of equal chance, which rounds up.
"""

from __future__ import annotations

import numpy as np

from dpaudit.auditing.evidence.one_run import check_counts
from dpaudit.auditing.evidence.one_run_families import CurveFamily, Least, largest_refuted
from dpaudit.auditing.evidence.types import confidence_failure
from dpaudit.mechanisms.pairs import Floats

INDEPENDENCE = (
    "the score of a canary follows from its own membership and independent noise alone: no canary "
    "acts on another"
)
_INTERVALS = 400
_LOST = 1e-9  # chance below the first interval
_HALVINGS = 60


def independent_p_value(canaries: int, guesses: int, correct: int, least: Least) -> float:
    """The chance of so many right guesses under a privacy curve, if canaries are independent.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: r, fixed in advance.
        correct: the right ones.
        least: for P(S) the least Q(S) that the curve allows, in both directions, for arrays.

    Returns:
        The p-value, rounded up.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``.

    Example:
        >>> from dpaudit.auditing.evidence.one_run_families import gaussian_least
        >>> round(independent_p_value(1000, 1000, 720, gaussian_least(1.0)), 3)
        0.027
    """
    check_counts(canaries, guesses, correct)
    if correct == 0:
        return 1.0
    from scipy.special import bdtrc
    from scipy.stats import beta

    if guesses == canaries:
        surer, lost = np.ones(1), 0.0
    else:
        ends = np.linspace(0.0, 1.0, _INTERVALS, endpoint=False)
        surer = beta.ppf(np.maximum(ends, _LOST), guesses + 1, canaries - guesses)
        lost = _LOST
    tails = bdtrc(correct - 1, guesses, _right(surer, least))
    return min(1.0, (float(np.mean(tails)) + lost) * (1 + 1e-9))


def independent_strength(
    canaries: int, guesses: int, correct: int, family: CurveFamily, confidence: float
) -> float:
    """Lower confidence bound on the strength of a curve, if canaries are independent; 0 for none.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.
    """
    error = confidence_failure(confidence)
    return largest_refuted(
        family, lambda least: independent_p_value(canaries, guesses, correct, least) <= error
    )


def _right(surer: Floats, least: Least) -> Floats:
    """The largest chance that one of the surest guesses is right, a share of all, shape (n,)."""
    low, high = surer / 2, np.minimum(surer, 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = middle + least(middle) >= surer
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    right: Floats = np.minimum(1.0, high / surer)
    return right
