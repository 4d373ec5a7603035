"""Numbers for print: bounds rounded to their safe side, parameters to nearest.

Here too is the one rule by which a claim holds, for claims, limits, policies and budgets alike.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

FLOAT_SLACK = 1e-12
"""Relative excess that is the rounding of a float, not a digit of the number: 0.1 + 0.2 is 0.3."""

_SLACK = Fraction(1, 10**12)
_DIGITS = 6


def stated(claimed: float) -> Fraction:
    """Return the decimal that somebody wrote, not the float next to it.

    >>> stated(0.2)
    Fraction(1, 5)
    """
    return Fraction(repr(float(claimed)))


def most(claimed: float) -> Fraction:
    """Return the largest number with which a claim holds: claim · (1 + 10⁻¹²), without rounding.

    >>> most(0.2) == Fraction(1, 5) * (1 + Fraction(1, 10**12))
    True
    """
    return stated(claimed) * (1 + _SLACK)


def holds(proved: float | Fraction, claimed: float) -> bool:
    """Tell whether a claim holds by what is proved: one rule for claims, limits, budgets.

    >>> holds(1.0000000000000002, 1.0), holds(1.00000000001, 1.0)
    (True, False)
    """
    return claimed == math.inf or proved <= most(claimed)


def up(value: float) -> str:
    """Return a number with six significant digits, rounded up: for upper bounds.

    >>> up(0.34563308), up(1.0), up(float("inf"))
    ('0.345634', '1', '∞')
    """
    return _rounded(value, ROUND_CEILING)


def down(value: float, digits: int = _DIGITS) -> str:
    """Return a number with six significant digits, or as many as given, rounded down: for bounds.

    >>> down(1.7345678), down(1.7345678, 3)
    ('1.73456', '1.73')
    """
    return _rounded(value, ROUND_FLOOR, digits)


def plain(value: float) -> str:
    """Return a number with six significant digits, rounded to nearest: for parameters.

    >>> plain(12.649110640673518), plain(100000)
    ('12.6491', '100000')
    """
    if not math.isfinite(value):
        return str(value).replace("inf", "∞")
    whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else f"{value:.{_DIGITS}g}"


def _rounded(value: float, direction: str, digits: int = _DIGITS) -> str:
    if not math.isfinite(value) or value == 0:
        return plain(value)
    slack = FLOAT_SLACK * abs(value)
    exact = Decimal(value - slack if direction == ROUND_CEILING else value + slack)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, rounding=direction)):.{digits}g}"


def not_below(value: float) -> str:
    """Write six significant digits where these are not below the number, else all.

    For sentences of a certificate, which must not change: :func:`up` gives fewer digits.

    >>> not_below(0.5), not_below(0.34563301)
    ('0.5', '0.34563301')
    """
    text = f"{value:.{_DIGITS}g}"
    return text if float(text) >= value else repr(value)


def not_above(value: float) -> str:
    """Write six significant digits where these are not above the number, else all.

    >>> not_above(0.34563301), not_above(1.9345678)
    ('0.345633', '1.9345678')
    """
    text = f"{value:.{_DIGITS}g}"
    return text if float(text) <= value else repr(value)


def percent(share: float) -> str:
    """Return a probability in percent, rounded up; as many decimals as set it apart from certainty.

    >>> percent(0.73106), percent(0.75), percent(0.9999546), percent(1), percent(0)
    ('73.2 %', '75 %', '99.996 %', '100 %', '0 %')
    """
    exact = max(Decimal(share - FLOAT_SLACK), Decimal(0)) * 100
    shown = Decimal(100)
    for decimals in range(1, 9):
        shown = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING)
        if shown < 100:
            break
    text = f"{min(shown, Decimal(100)):f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def confidence(value: float) -> str:
    """Return a confidence in percent with all the digits it has.

    >>> confidence(0.95), confidence(0.999999)
    ('95 %', '99.9999 %')
    """
    return f"{(Decimal(repr(value)) * 100).normalize():f} %"
