"""δ(ε) of two normal laws wherever floats reach, with a bound on its rounding error."""

from __future__ import annotations

import math

import numpy as np

_UNIT = 2.0**-53
_SHORT, _LONG = (
    [(float(node) / 2, float(weight) / 2) for node, weight in zip(*rule, strict=True)]
    for rule in map(np.polynomial.legendre.leggauss, (3, 8))
)
_SPLIT = 2.0**27 + 1
_VANISHED = 39.2
"""The tail beyond it is below all floats."""


def normal_curve(mu: float, epsilon: float) -> tuple[float, float]:
    """δ(ε) of N(μ, 1) against N(0, 1), for ε of at least 0, and what it may be off by.

    Balle and Wang 2018, Theorem 8: with a = ε/μ − μ/2 and b = a + μ, δ = Φ(−a) − e^ε Φ(−b). As
    e^ε φ(b) = φ(a), this is φ(a) (m(a) − m(b)) with the Mills ratio m(x) = Φ(−x)/φ(x), or
    1 − φ(a) (m(−a) + m(b)): nothing overflows. Where the two ratios are close, their difference is
    the integral of −m'. What is left are the roundings of a, whose square scales φ(a), and some
    units in the last place of each factor.

    Args:
        mu: μ, above 0 and finite.
        epsilon: ε.
    """
    a, b = _arguments(mu, epsilon)
    if a > _VANISHED:
        return 0.0, 5e-324
    if a < -_VANISHED:
        return 1.0, 2 * _UNIT
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    relative = (4 * a * a + 256) * _UNIT
    if a < -1:
        rest = density * (_mills(-a) + _mills(b))
        return 1 - rest, rest * relative + 2 * _UNIT
    first, second = _mills(a), _mills(b)
    fall = first - second
    if second > 0.9 * first:
        rule = _SHORT if second > 0.99 * first else _LONG
        fall = mu * math.fsum(weight * _slope(a + mu * (0.5 + node)) for node, weight in rule)
    tail = density * fall
    return tail, tail * relative + 2e-323


def _arguments(mu: float, epsilon: float) -> tuple[float, float]:
    """(a, b), each to three units in its last place, also where ε/μ and μ/2 nearly cancel.

    The remainder of the division is exact: the product of the quotient and μ is split into two
    floats (Dekker 1971, *A floating-point technique for extending the available precision*).
    """
    quotient = epsilon / mu
    if quotient == math.inf:
        return math.inf, math.inf
    (ahead, whole), (divisor, power) = math.frexp(quotient), math.frexp(mu)
    product, high, top = ahead * divisor, _upper_half(ahead), _upper_half(divisor)
    low, end = ahead - high, divisor - top
    lost = ((high * top - product) + high * end + low * top) + low * end
    remainder = (math.ldexp(epsilon, -whole - power) - product) - lost
    return (quotient - mu / 2) + math.ldexp(remainder / divisor, whole), quotient + mu / 2


def _upper_half(value: float) -> float:
    """The upper half of the digits."""
    scaled = value * _SPLIT
    return scaled - (scaled - value)


def _mills(x: float) -> float:
    """Φ(−x)/φ(x)."""
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2.0)))


def _slope(x: float) -> float:
    """−m'(x) = 1 − x m(x), by the continued fraction of Laplace beyond 4, where that cancels."""
    ratio = _mills(x)
    if x <= 4:
        return 1 - x * ratio
    fraction = (x + math.sqrt(x * x + 4 * 33)) / 2  # of its own period
    for term in range(32, 1, -1):
        fraction = x + term / fraction
    return ratio / fraction
