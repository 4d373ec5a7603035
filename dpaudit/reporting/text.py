"""Numbers and foreign text, fit for print."""

from __future__ import annotations

import json
import math
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

__all__ = ["compact", "down", "percent", "plain", "probability", "up", "visible"]

FLOAT_SLACK = 1e-12
"""Relative excess that is the rounding of a float, not a digit of the number: 0.1 + 0.2 is 0.3."""

_DIGITS = 6
_KEPT = "\n\t"
_LOOKS_EMPTY = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"


def up(value: float) -> str:
    """A number with six significant digits, rounded up: for upper bounds.

    >>> up(0.34563308), up(1.0), up(float("inf"))
    ('0.345634', '1', '∞')
    """
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """A number with six significant digits, rounded down: for lower bounds.

    >>> down(1.7345678)
    '1.73456'
    """
    return _rounded(value, ROUND_FLOOR)


def plain(value: float) -> str:
    """A number with six significant digits, rounded to nearest: for parameters.

    >>> plain(12.649110640673518), plain(100000)
    ('12.6491', '100000')
    """
    if not math.isfinite(value):
        return str(value).replace("inf", "∞")
    whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else f"{value:.{_DIGITS}g}"


def _rounded(value: float, direction: str) -> str:
    if not math.isfinite(value) or value == 0:
        return plain(value)
    slack = FLOAT_SLACK * abs(value)
    exact = Decimal(value - slack if direction == ROUND_CEILING else value + slack)
    step = Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1)
    return f"{float(exact.quantize(step, rounding=direction)):.{_DIGITS}g}"


def probability(epsilon: float, delta: float) -> float:
    """Success that (ε, δ) leaves to the best guess between two equally likely data sets.

    The sum of the two error rates of any test is at least 2(1 − δ)/(1 + e^ε) (Kairouz, Oh and
    Viswanath 2015, Theorem 2.1), so a guess is right with probability at most
    (e^ε + δ)/(1 + e^ε).

    >>> round(probability(1, 0), 4), probability(0, 0), probability(float("inf"), 0)
    (0.7311, 0.5, 1.0)
    """
    shrunk = math.exp(-epsilon)
    return (1 + delta * shrunk) / (1 + shrunk)


def percent(share: float) -> str:
    """A probability in percent, rounded up; as many decimals as set it apart from certainty.

    >>> percent(0.73106), percent(0.75), percent(0.9999546), percent(1)
    ('73.2 %', '75 %', '99.996 %', '100 %')
    """
    exact = Decimal(share - FLOAT_SLACK) * 100
    shown = Decimal(100)
    for decimals in range(1, 9):
        shown = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING)
        if shown < 100:
            break
    text = f"{min(shown, Decimal(100)):f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def visible(text: str) -> str:
    """The text with every invisible or direction-changing character written out.

    A certificate may come from anybody: a right-to-left override could make 0.1 read as 1.0.

    >>> visible("safe" + chr(0x202E) + "text")
    'safe⟨U+202E⟩text'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    hidden = unicodedata.category(character) in _LOOKS_EMPTY
    if not hidden or character in _KEPT or character in _JOINERS:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def compact(value: Any, limit: int = 4000) -> str:
    """A JSON value on one line; what is over the limit is left out and counted.

    >>> compact({"a": [1, 2]}), compact("x" * 10, limit=6)
    ('{"a": [1, 2]}', 'xxxxxx… (4 more characters)')
    """
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"
