"""Inverting a privacy curve by bisection, so that the answer is on the safe side."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["least_epsilon"]


def least_epsilon(excess: Callable[[float], float], high: float, steps: int = 200) -> float:
    """The least ε in [0, high] found with ``excess(ε) <= 0``, for a decreasing excess.

    Args:
        excess: positive where ε is too small.
        high: an ε that is large enough; returned where nothing below it is found.
        steps: at most so many evaluations; the bracket closes to one float sooner.
    """
    if excess(0.0) <= 0:
        return 0.0
    low = 0.0
    for _ in range(steps):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * high:
            break
    return high
