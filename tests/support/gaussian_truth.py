"""δ and ε of N(μ, 1) against N(0, 1), by the closed form of Balle and Wang (2018, Theorem 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr


def gaussian_delta(epsilon: Any, mu: float = 1.0) -> Any:
    """δ at one ε, or at each of an array."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def gaussian_epsilon(mu: float, delta: float = 1e-5) -> float:
    """The ε at which δ is that."""
    return brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0, 200, xtol=1e-13)
