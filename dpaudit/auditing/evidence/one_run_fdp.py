"""Auditing with one run against a whole privacy curve (Mahloujifar, Melis and Chaudhuri 2024).

Each of ``m`` canaries is included with probability 1/2, independently; the algorithm runs once, and
the auditor makes at most ``g`` guesses, of which C are right. Let ``b`` be the concave, increasing
function with ``P(S) <= b(Q(S))`` for every event S and all neighbours P and Q, that is ``1 - f`` of
f-DP. With ``p_i = P(C = i)``, for every ``t >= 1``

    sum_{i >= t} (i / m) p_i  <=  b( sum_{i >= t - 1} ((g - i) / m) p_i ).

*Why.* Fix a canary j and all other inclusions, and let C' count the right guesses on the others.
"j is guessed to be in, and C' >= t - 1" is at most b times as likely if j is in as if it is out,
and the same with in and out exchanged. The mean over j's own inclusion is, as b is concave,
``P(j right, C >= t) <= b(P(j wrong, C >= t - 1))``; note C' = C where j is wrong. The mean over the
other inclusions and over all canaries gives the inequality, by concavity again and because at
most ``g - C`` guesses are wrong.

The largest ``P(C >= c)`` that these inequalities allow is a p-value. It is found exactly: a
hypothesis ``P(C >= c) = tau`` is kept alive with the least further mass by putting tau on C = c and
then, for t = c, c - 1, …, 1, just enough mass on C = t - 1. (Mass moved from any i to i - 1 lowers
every left side and raises every right side but one, which the rule keeps satisfied.) The hypothesis
is impossible if more than 1 is needed in all. Abstaining, ``g`` far below ``m``, is what makes the
bound sharp: it looks at the curve where false positives are rare.
"""

from __future__ import annotations

import numpy as np

from dpaudit.auditing.evidence.one_run import check_counts
from dpaudit.auditing.evidence.one_run_families import CurveFamily, Least, largest_refuted
from dpaudit.base.validate import open_fraction
from dpaudit.mechanisms.pairs import Floats

_ROUNDING = 1e-9  # relative; a total this close to the possible counts as possible
_LEAST_P_VALUE = 1e-18


def fdp_p_value(canaries: int, guesses: int, correct: int, least: Least) -> float:
    """The largest chance of at least so many right guesses under a privacy curve.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: g, fixed in advance (the others are abstentions).
        correct: c, the right ones.
        least: for P(S) the least Q(S) that the curve allows, for arrays.

    Returns:
        The p-value, rounded up, and at least 1e-18.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``.

    Example:
        >>> from dpaudit.auditing.evidence.one_run_families import approximate_least
        >>> fdp_p_value(10, 10, 10, approximate_least(0.0, 0.0)) < 1.1 / 2**10
        True
    """
    check_counts(canaries, guesses, correct)
    lower, upper = _LEAST_P_VALUE, 1.0
    for points in (49, 33, 33):
        taus = np.geomspace(lower, upper, points)
        impossible = _impossible(canaries, guesses, correct, least, taus)
        if not impossible.any():
            break
        first = int(impossible.argmax())
        lower, upper = float(taus[max(0, first - 1)]), float(taus[first])
        if first == 0:
            break
    return upper


def fdp_rejects(canaries: int, guesses: int, correct: int, least: Least, error: float) -> bool:
    """Test at level ``error`` whether ``P(C >= correct) = error`` is more than the curve allows.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or ``error`` is not in (0, 1).
    """
    check_counts(canaries, guesses, correct)
    taus = np.array([open_fraction(error=error)])
    return bool(_impossible(canaries, guesses, correct, least, taus)[0])


def fdp_strength(
    canaries: int, guesses: int, correct: int, family: CurveFamily, confidence: float
) -> float:
    """Lower confidence bound on the strength of a curve in an ordered family; 0 for none.

    With probability ``confidence`` the curve of the algorithm is not that of any smaller strength.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.

    Example:
        >>> from dpaudit.auditing.evidence.one_run_families import gaussian_family
        >>> round(fdp_strength(1000, 100, 95, gaussian_family(), 0.95), 3)
        0.785
    """
    error = 1.0 - open_fraction(confidence=confidence)
    return largest_refuted(
        family, lambda least: fdp_rejects(canaries, guesses, correct, least, error)
    )


def _impossible(
    canaries: int, guesses: int, correct: int, least: Least, taus: Floats
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each tau whether ``P(C >= correct) = tau`` contradicts the inequalities, shape (n,)."""
    right = taus * (correct / canaries)
    wrong = taus * ((guesses - correct) / canaries)
    for level in range(correct - 1, -1, -1):
        needed = np.maximum(wrong, least(np.minimum(right, 1.0)))
        if not (needed > wrong).any():
            break  # neither sum will change any more
        right = right + level / (guesses - level) * (needed - wrong)
        wrong = needed
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = (right + wrong) * canaries > guesses * (
        1 + _ROUNDING
    )
    return flags
