"""Closed forms in arbitrary precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp

Number = mp.mpf

_DIGITS = 60
_VAST = Fraction(10) ** 300


def exact(value: float | Fraction) -> Number:
    """The number itself, not a nearest float."""
    ratio = Fraction(value)
    with mp.workdps(max(_DIGITS, mp.mp.dps)):
        return mp.mpf(ratio.numerator) / mp.mpf(ratio.denominator)


def digits(*sizes: float) -> int:
    """Enough of them where numbers of such sizes meet."""
    return _DIGITS + 3 * max(int(abs(math.log10(size))) if size else 0 for size in sizes)


def gaussian_delta(square: Fraction, epsilon: float) -> Number:
    """Of N(μ, 1) against N(0, 1), given μ² (Balle and Wang 2018, Theorem 8)."""
    if square == 0:
        return mp.mpf(0)
    with mp.workdps(min(digits(float(min(square, _VAST)) or 1e-300, epsilon or 1.0), 2000)):
        mu, e = mp.sqrt(exact(square)), exact(epsilon)
        first = _tail(e / mu - mu / 2)
        return +(first - mp.exp(e + _log_tail(e / mu + mu / 2)))


def _tail(x: Number) -> Number:
    """P[N > x]; beyond 10^5 it is below all floats."""
    if abs(x) > 1e5:
        return mp.mpf(int(x < 0))
    return mp.erfc(x / mp.sqrt(2)) / 2


def _log_tail(x: Number) -> Number:
    """Its logarithm, for x ≥ 0; far out by three terms of the asymptotic series."""
    if x < 1e5:
        return mp.log(_tail(x))
    series = 1 - 1 / x**2 + 3 / x**4
    return -x * x / 2 - mp.log(x * mp.sqrt(2 * mp.pi)) + mp.log(series)


def laplace_delta(ratio: Fraction, epsilon: float) -> Number:
    """1 − e^{(ε' − ε)/2}."""
    with mp.workdps(digits(float(ratio) or 1.0, epsilon or 1.0)):
        return -mp.expm1(min(mp.mpf(0), (exact(epsilon) - exact(ratio)) / 2))


def truncated_delta(ratio: Fraction, end: Fraction, epsilon: float) -> Number:
    """P − e^ε' Q of the outputs above (ε' + ε)/2, where Laplace noise ends at ±u."""
    with mp.workdps(digits(float(ratio), epsilon or 1.0) + int(float(end))):
        e, u, asked = exact(ratio), exact(end), exact(epsilon)
        whole = -2 * mp.expm1(-u)

        def beyond(y: Number) -> Number:
            half = (mp.exp(-min(abs(y), u)) - mp.exp(-u)) / whole
            return half if y > 0 else 1 - half

        start = (min(asked, e) + e) / 2
        if asked >= min(e, 2 * u - e):
            return beyond(u - e)
        return beyond(start - e) - mp.exp(asked) * beyond(start)


def response_delta(ratio: Number, epsilon: float, failure: float = 0.0) -> Number:
    """Of the worst (ε, δ)-private release (Kairouz, Oh and Viswanath 2015)."""
    with mp.workdps(_DIGITS):
        e = min(exact(epsilon), mp.mpf(ratio))
        whole = -mp.expm1(e - ratio) / (1 + mp.exp(-ratio))
        return exact(failure) + (1 - exact(failure)) * whole


def choice_delta(range_: float, epsilon: float) -> Number:
    """Of the worst exponential mechanism (Dong, Durfee and Rogers 2020)."""
    with mp.workdps(digits(range_, epsilon or 1.0)):
        top, e = exact(range_), min(exact(epsilon), exact(range_))
        return (mp.exp(top / 2) - mp.exp(e / 2)) ** 2 / mp.expm1(top)


def table_delta(masses: list[tuple[Number, Number]], epsilon: float) -> Number:
    """Σ (p − e^ε q)+ over outputs."""
    with mp.workdps(_DIGITS):
        odds = mp.exp(exact(epsilon))
        return mp.fsum(max(mp.mpf(0), p - odds * q) for p, q in masses)


def sampled(delta: Callable[[float], Number], rate: float, side: int) -> Callable[[float], Number]:
    """q δ(u) where e^ε = 1 − q + q e^u: the worse direction of one sampled use, for ε ≥ 0.

    Args:
        delta: before sampling.
        rate: q.
        side: 1 to round u up, so that δ is not above the truth, −1 for not below.
    """

    def after(epsilon: float) -> Number:
        with mp.workdps(_DIGITS):
            u = mp.log1p(mp.expm1(exact(epsilon)) / exact(rate))
            if u > 1e300:
                return mp.mpf(0) if side > 0 else exact(rate) * delta(1e300)
            return exact(rate) * delta(max(0.0, math.nextafter(float(u), side * math.inf)))

    return after


def concentrated_delta(rho: Fraction, epsilon: float) -> Number:
    """What ρ-zCDP proves at most (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    with mp.workdps(40):
        r, e = exact(rho), exact(epsilon)
        if not r:
            return mp.mpf(0)

        def log(x: Number) -> Number:
            return x * ((1 + x) * r - e) - mp.log(x) + (1 + x) * mp.log(x / (1 + x))

        low, high = mp.mpf(10) ** -30, mp.mpf(10) ** 30 + (e + 1) / r
        for _ in range(200):
            middle = mp.sqrt(low * high)
            slope = (2 * middle + 1) * r - e + mp.log(middle / (1 + middle))
            low, high = (low, middle) if slope > 0 else (middle, high)
        return min(mp.mpf(1), mp.exp(log(low)))


@dataclass(frozen=True)
class Curve:
    """δ(ε) from below and from above, and how it was found."""

    lower: Callable[[float], Number | float]
    upper: Callable[[float], Number | float]
    method: str


def least_epsilon(curve: Callable[[float], Number | float], delta: float, start: float) -> float:
    """About where a falling curve crosses δ; infinity beyond floats."""
    high = max(start, 1e-300)
    if curve(0.0) <= delta:
        return 0.0
    while curve(high) > delta:
        high *= 2
        if not high < 1e300:
            return math.inf
    low = high / 2
    while curve(low) <= delta and low > 1e-300:
        low, high = low / 2, low
    for _ in range(34):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high
