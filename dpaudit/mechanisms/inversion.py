"""Inverting a monotone curve on the floats themselves, so that the answer is on the safe side.

Calibrations and accountants ask for the first float at which a bound holds. What is returned was
itself tried, or is the upper end that was given.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

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
