"""Rounding to the safe side: a guarantee up, what noise promises down.

Laws, accountants and certificates take every number that leaves exact arithmetic through here. What
is rounded up must never come out below what is meant, at the ends of the floats too. Calibrations
and accountants also ask for the first float at which a monotone bound holds: what is returned was
itself tried, or is the upper end that was given.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from fractions import Fraction


def up(value: float, steps: int = 1) -> float:
    """``steps`` floats above a positive value; zero and infinity stay."""
    for _ in range(steps):
        value = math.nextafter(value, math.inf) if 0 < value < math.inf else value
    return value


def exp_up(exponent: float, size: float) -> float:
    """A probability of that logarithm, rounded up: positive, and at most 1.

    Args:
        exponent: ln of the probability, or more.
        size: sum of the absolute values that the exponent was computed from.

    >>> exp_up(-1e6, 1e6)
    5e-324
    """
    found = math.exp(min(exponent + 1e-15 * (size + 4), 0.0))
    # Below the normal floats the nearest one may be far below, relatively.
    return max(up(found) if found < sys.float_info.min else min(found, 1.0), 5e-324)


def plus(value: float, slack: float) -> float:
    """The sum of two probabilities, rounded up, at most 1; where one is 0 it is the other.

    >>> plus(1e-40, 1e-5) > 1e-5
    True
    """
    total = value + slack
    return min(total if not (value and slack) else up(total), 1.0)


def minus(value: float, slack: float) -> float:
    """Subtract one probability from another, rounded down; where it is 0 nothing changes.

    >>> minus(1e-5, 1e-6) < 9e-6
    True
    """
    return (value - slack) * (1 - 2.0**-52) if slack else value


def round_up(value: Fraction) -> float:
    """The least float that is not below an exact number; infinity where there is none.

    >>> round_up(10 * Fraction(1, 20))
    0.5
    """
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(rounded, math.inf) if Fraction(rounded) < value else rounded


def round_down(value: Fraction) -> float:
    """The largest float that is not above an exact number of at least 0."""
    try:
        rounded = float(value)
    except OverflowError:
        return sys.float_info.max
    return math.nextafter(rounded, 0.0) if Fraction(rounded) > value else rounded


def log_up(ratio: Fraction) -> float:
    """Ln of an exact number of at least 1, rounded up.

    >>> log_up(Fraction(1)), log_up(1 + Fraction(1, 2**80)) > 0
    (0.0, True)
    """
    if ratio < 2:
        return up(math.log1p(round_up(ratio - 1)), 4)
    if exceeds_floats(ratio):
        return up(math.log(ratio.numerator) - math.log(ratio.denominator), 16)
    return up(math.log(round_up(ratio)), 4)


def as_float(value: Fraction | float) -> float:
    """The value rounded up, infinity where it is too large."""
    return round_up(value) if isinstance(value, Fraction) else value


def exceeds_floats(value: Fraction) -> bool:
    """Tell whether an exact number is above all floats."""
    return value > Fraction(sys.float_info.max)


def concentration(epsilon: Fraction | float, share: float) -> float:
    """``share`` times a square, rounded up: positive where the number is, infinite on overflow.

    A float counts as the nearest one to the number that is meant.
    """
    if epsilon == 0:
        return 0.0
    root = round_up(epsilon) if isinstance(epsilon, Fraction) else up(epsilon)
    return math.nextafter(share * (root * root), math.inf)


_FLOAT, _BITS = struct.Struct("<d"), struct.Struct("<q")


def first_float(holds: Callable[[float], bool], high: float) -> float:
    """The first float in [0, high] from which on a condition holds, as far as it was asked.

    Floats of at least 0 are in the order of their bits, so that some sixty halvings lead from any
    bracket to two neighbours, however small the root.

    Args:
        holds: False below some number and True above it.
        high: where it holds; returned where nothing below it is found.
    """
    if holds(0.0):
        return 0.0
    low, top = 0, _BITS.unpack(_FLOAT.pack(high))[0]
    while top - low > 1:
        middle = (low + top) // 2
        if holds(_FLOAT.unpack(_BITS.pack(middle))[0]):
            top = middle
        else:
            low = middle
    found: float = _FLOAT.unpack(_BITS.pack(top))[0]
    return found


def least_epsilon(curve: Callable[[float], float], delta: float, high: float) -> float:
    """The least ε in [0, high] found with ``curve(ε) <= delta``, for a decreasing curve.

    Args:
        curve: δ at ε.
        delta: the δ that is allowed.
        high: an ε that is large enough; returned where nothing below it is found.
    """
    return first_float(lambda epsilon: curve(epsilon) <= delta, high)
