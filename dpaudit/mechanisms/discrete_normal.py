"""Sampling and normalising the discrete normal law on the integers."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=256)
def log_normaliser(sigma: float) -> float:
    """Ln Σ_k exp(−k²/2σ²) over all integers.

    For σ ≥ 1 the Poisson summation formula makes the sum σ√2π (1 + 2 exp(−2π²σ²) + …), whose
    second correction is below the float's precision.
    """
    if sigma >= 1:
        return (
            math.log(sigma)
            + math.log(2 * math.pi) / 2
            + math.log1p(2 * math.exp(-2 * (math.pi * sigma) ** 2))
        )
    if sigma < 0.02:
        return 0.0  # the neighbours of 0 weigh less than e^-1250
    return math.log1p(2 * sum(math.exp(-((k / sigma) ** 2) / 2) for k in range(1, 41)))


def discrete_normal(sigma: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rejection from a discrete Laplace law (Canonne, Kamath and Steinke 2020, Algorithm 3).

    The proposal has scale t = ⌊σ⌋ + 1 and is accepted with probability
    exp(−(|y| − σ²/t)²/2σ²), which makes the accepted law exact up to floating point.
    """
    scale = math.floor(sigma) + 1
    success = -math.expm1(-1 / scale)
    drawn: list[NDArray[np.int64]] = []
    missing = size
    while missing > 0:
        batch = math.ceil(missing * 1.8) + 16
        proposal = rng.geometric(success, batch) - rng.geometric(success, batch)
        exponent = ((np.abs(proposal) - sigma * sigma / scale) / sigma) ** 2 / 2
        accepted = proposal[rng.random(batch) < np.exp(-exponent)]
        drawn.append(accepted[:missing])
        missing -= len(drawn[-1])
    return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
