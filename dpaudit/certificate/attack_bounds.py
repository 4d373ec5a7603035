"""How well an attack may do, by a proved curve δ(ε)."""

from __future__ import annotations

import math
from fractions import Fraction

from dpaudit.accounting import Composition
from dpaudit.mechanisms.rounding import round_up, up

_GOLDEN = (math.sqrt(5) - 1) / 2


def advantage(whole: Composition) -> float:
    """The largest |TPR − FPR| of any test: δ(0), the total variation distance, rounded up."""
    return whole.delta(0.0).upper


def bayes_success(whole: Composition, prior: float) -> float:
    """Success of the best guess between two data sets, one of prior probability ``prior``.

    With m the larger of the two priors, no test S is right with more than
    m + (1 − m)(P(S) − m/(1 − m) Q(S)), which is at most m + (1 − m) δ(ln m/(1 − m)).

    Returns:
        The bound, rounded up.
    """
    sure = max(Fraction(prior), 1 - Fraction(prior))
    delta = whole.delta(log_odds(sure, -1)).upper
    return round_up(sure + (1 - sure) * Fraction(delta))


def true_positive_rate(whole: Composition, fpr: float, enough: float = 0.0) -> float:
    """The largest TPR of any test whose FPR is at most ``fpr``, rounded up.

    For every real ε it is at most e^ε FPR + δ(ε), where δ(−ε) = 1 − e^−ε (1 − δ(ε)) (Dong, Roth and
    Su 2022, Proposition 2.12). Each is valid; the least is found by golden section, as the bound is
    convex in e^ε.

    Args:
        whole: what is proved.
        fpr: in (0, 1).
        enough: a bound from which on no smaller one is searched for.
    """

    def bound(epsilon: float) -> float:
        delta, share = whole.delta(abs(epsilon)).upper, math.exp(epsilon)
        if epsilon >= 0:
            return up(up(share * fpr, 4) + delta, 2)
        return 1 - share * (1 - 2.0**-50) * max(0.0, 1 - delta - fpr) + 2.0**-52

    end = min(700.0, 1 - math.log(fpr))
    least, low, high = bound(0.0), 0.0, end
    if bound(1e-3) > least:
        low, high = -30.0, 0.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(left), bound(right)
    while high - low > 1e-5:
        least = min(least, at_left, at_right)
        if least <= enough:
            break
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(right)
    return min(1.0, least)


def log_odds(sure: Fraction, direction: int) -> float:
    """Ln of m/(1 − m), for m of at least 1/2, moved by more than its rounding error."""
    if sure == Fraction(1, 2):
        return 0.0
    return max(0.0, math.log(sure / (1 - sure)) * (1 + direction * 1e-14) + direction * 1e-16)
