"""The least noise that a target allows."""

from __future__ import annotations

import math
from collections.abc import Callable

_LARGEST, SMALLEST = 1e15, 1e-100


def least_noise(
    meets: Callable[[float], bool], tolerance: float = 1e-6, near: float | None = None
) -> float | None:
    """The least positive number that protects enough, where more protects more.

    Ever larger steps from 1, or from a guess, then bisection of the logarithm.

    Args:
        meets: whether what is proved with so much noise meets the target.
        tolerance: relative width at which the search ends.
        near: a guess; if it is as good as the tolerance, two numbers are tried.

    Returns:
        A number that was itself tried, so that the target holds exactly; None where none up to
        10^15 meets it, and one of at most ``SMALLEST`` where any does.

    >>> round(least_noise(lambda scale: 1 / scale <= 0.25), 4)
    4.0
    """
    good, step = (1.0, 2.0) if near is None else (near, 1 + tolerance)
    if meets(good):
        while good > SMALLEST and meets(good / step):
            good, step = good / step, min(step * step, 1e30)
        if good <= SMALLEST:
            return good
        bad = good / step
    else:
        while not meets(good * step):
            good, step = good * step, min(step * step, 1e30)
            if good > _LARGEST:
                return None
        good, bad = good * step, good
    while abs(math.log(good / bad)) > tolerance:
        middle = math.sqrt(good) * math.sqrt(bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good
