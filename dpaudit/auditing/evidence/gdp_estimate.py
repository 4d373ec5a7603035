"""An estimate of epsilon that assumes a Gaussian trade-off curve. It is not a bound.

If the two output distributions are exactly as hard to tell apart as N(0, 1) and N(mu, 1) (Dong,
Roth and Su 2022, Definition 3), one operating point gives ``mu = Phi^-1(TPR) - Phi^-1(FPR)`` and
with it the whole curve. Nothing protects against the assumption being wrong, in either direction.
"""

from __future__ import annotations

import math

from dpaudit.auditing.evidence.types import Estimate, PairCounts
from dpaudit.validate import non_negative, probability

__all__ = ["gdp_delta", "gdp_epsilon", "gdp_estimate"]


def gdp_delta(epsilon: float, mu: float) -> float:
    """Delta of mu-Gaussian DP at ``epsilon`` (Dong, Roth and Su 2022, Corollary 1).

    Raises:
        InputError: if a number is negative or not finite.
    """
    from scipy.special import log_ndtr, ndtr

    non_negative(epsilon=epsilon)
    if non_negative(mu=mu) == 0:
        return 0.0
    lost = math.exp(epsilon + float(log_ndtr(-epsilon / mu - mu / 2)))
    return max(0.0, float(ndtr(-epsilon / mu + mu / 2)) - lost)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The epsilon at which mu-Gaussian DP has the given delta; ``inf`` at ``delta = 0 < mu``.

    Raises:
        InputError: if a number is out of its range.
    """
    probability(delta=delta)
    if gdp_delta(0.0, mu) <= delta:
        return 0.0
    if delta == 0:
        return math.inf
    low, high = 0.0, 1.0
    while gdp_delta(high, mu) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gdp_delta(middle, mu) > delta else (low, middle)
    return high


def gdp_estimate(counts: PairCounts, delta: float) -> Estimate:
    """Estimate epsilon at ``delta`` from true and false positive counts, assuming Gaussian DP.

    The rates are shrunk by half an occurrence either way, so that 0 and n hits stay finite.

    Args:
        counts: ``hits`` are true positives, ``other_hits`` false positives.
        delta: in [0, 1).

    Raises:
        InputError: if ``delta`` is out of range.

    Example:
        >>> gdp_estimate(PairCounts(84, 100, 50, 100), delta=1e-5).to_dict()["kind"]
        'estimate'
    """
    from scipy.special import ndtri

    probability(delta=delta)
    true_rate = (counts.hits + 0.5) / (counts.runs + 1)
    false_rate = (counts.other_hits + 0.5) / (counts.other_runs + 1)
    mu = max(0.0, float(ndtri(true_rate) - ndtri(false_rate)))
    return Estimate(gdp_epsilon(mu, delta), delta, "the trade-off curve is Gaussian", (("mu", mu),))
