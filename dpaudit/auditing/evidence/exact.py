"""Exact privacy loss of two finite output distributions, in rational arithmetic.

Floats are rationals, so nothing is lost on the way: the curve
``delta(k) = sum_i max(p_i - k q_i, 0)`` with ``k = exp(epsilon)`` is convex and piecewise linear,
and its inverse is found on the piece where it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpaudit.base.errors import InputError
from dpaudit.base.validate import non_negative, probability

Probability = Fraction | float | int


def _rationals(name: str, masses: Sequence[Probability]) -> list[Fraction]:
    """The masses as fractions, checked to be a distribution (to 1e-9 if they are floats)."""
    try:
        values = [Fraction(mass) for mass in masses]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} has a mass that is not a finite number.") from None
    total = sum(values, Fraction(0))
    tolerance = Fraction(1, 10**9) if any(isinstance(mass, float) for mass in masses) else 0
    if not values or min(values) < 0 or abs(total - 1) > tolerance:
        raise InputError(
            f"{name} adds up to {float(total)!r}; it must be non-negative masses that add up to 1."
        )
    return values


def _pair(
    p: Sequence[Probability], q: Sequence[Probability]
) -> tuple[list[Fraction], list[Fraction]]:
    if len(p) != len(q):
        raise InputError(f"p has {len(p)} outcomes and q has {len(q)}; they must be the same.")
    return _rationals("p", p), _rationals("q", q)


def hockey_stick(
    p: Sequence[Probability], q: Sequence[Probability], ratio: Probability
) -> Fraction:
    """``sum_i max(p_i - ratio q_i, 0)``, exactly; ``ratio`` stands for ``exp(epsilon)``.

    Raises:
        InputError: if p or q is not a distribution, or ``ratio`` is negative or not finite.

    Example:
        >>> hockey_stick([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], 2)
        Fraction(1, 4)
    """
    non_negative(ratio=ratio)
    first, second = _pair(p, q)
    k = Fraction(ratio)
    return sum(
        (max(a - k * b, Fraction(0)) for a, b in zip(first, second, strict=True)), Fraction(0)
    )


def _direction_ratio(p: list[Fraction], q: list[Fraction], delta: Fraction) -> Fraction | None:
    """The least ratio k >= 0 with ``sum max(p - k q, 0) <= delta``; None if there is none."""
    large = sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0)) - delta
    if large > 0:
        return None
    small = Fraction(0)
    pieces = sorted(((a / b, a, b) for a, b in zip(p, q, strict=True) if b > 0), reverse=True)
    for ratio, a, b in pieces:
        # Between the last breakpoint and this one the curve is large + delta - k small.
        if large - ratio * small > 0:
            return large / small
        large, small = large + a, small + b
    return max(Fraction(0), large / small)


def loss_ratio(
    p: Sequence[Probability], q: Sequence[Probability], delta: Probability = 0
) -> Fraction | None:
    """``exp(epsilon)`` at ``delta``, exactly, at least 1; ``None`` if no finite epsilon will do.

    Raises:
        InputError: if p or q is not a distribution, or ``delta`` is not in [0, 1).

    Example:
        >>> loss_ratio([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
        Fraction(3, 1)
    """
    probability(delta=delta)
    first, second = _pair(p, q)
    there = _direction_ratio(first, second, Fraction(delta))
    back = _direction_ratio(second, first, Fraction(delta))
    if there is None or back is None:
        return None
    return max(there, back, Fraction(1))
