"""The privacy curve of μ-Gaussian differential privacy (Dong, Roth and Su 2022)."""

from __future__ import annotations

import math

from dpaudit.validate import non_negative, probability

__all__ = ["gdp_delta", "gdp_epsilon"]


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
