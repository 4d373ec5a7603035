"""Noise without floating-point leaks: integer noise on a grid.

Samples of continuous noise in floating point reveal the value through their least significant bits
(Mironov 2012). A release on a grid is a function of an integer, so its bits hold nothing that is
not in that integer: the value is rounded to the grid, exact integer noise is added, and the sum is
scaled back. On the way there are whole numbers of Python alone, which hold every float on every
grid: none is refused, cut or wrapped, so that nothing of a value shows but through its noise.

Rounding moves every entry by at most half a grid step, so neighbours come to lie further apart; a
mechanism widens its noise to pay for it, so that its guarantee is not above the declared one
(:func:`~dpaudit.ledger.samplers.exact.laplace_scale`,
:func:`~dpaudit.ledger.samplers.exact.normal_scale`). How fine the grid is,
:mod:`dpaudit.ledger.exact_noise` says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.base import ExactSource
from dpaudit.mechanisms.rounding import round_down, round_up

WIDEST = 2.0**52
"""The largest scale of integer noise: noise of 2^62 or more then has a probability below e^−1000,
so that what samplers of 64 bits do beyond their range never happens."""


def decays(numerator: int, denominator: int, source: ExactSource) -> bool:
    """An event of probability exp(−numerator/denominator), exactly.

    Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", Algorithm 1.
    For γ ≤ 1 let K be the first k at which an event of probability γ/k does not happen. Then
    P(K > k) = γ^k/k!, so that P(K is odd) = Σ_k (−γ)^k/k! = exp(−γ). For a larger γ as many events
    of probability exp(−1) must happen as γ has whole parts, and one for the rest; the first that
    fails ends it. Nothing is rounded: the only randomness is uniform integers. At most seven of
    them are expected, whatever γ is.

    Args:
        numerator: at least 0.
        denominator: above 0.
        source: of uniform integers.
    """
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _decays_at_most_once(1, 1, source):
            return False
    return _decays_at_most_once(rest, denominator, source)


def _decays_at_most_once(numerator: int, denominator: int, source: ExactSource) -> bool:
    """The same for a fraction of at most 1."""
    k = 1
    while source.below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def widened(scale: float, step: float, sensitivity: float, steps: int) -> float:
    """Scale of integer noise, in grid steps, for a shift of the sensitivity and ``steps`` more.

    Rounded up: scale/step times 1 + steps step/sensitivity.

    Raises:
        UnsupportedError: if the noise would be more than twice as wide as declared, or wider than
            integers hold.
    """
    factor = Fraction(1)
    if sensitivity > 0:
        factor += steps * Fraction(step) / Fraction(sensitivity)
    if factor > 2:
        raise UnsupportedError(
            f"sensitivity is {sensitivity:g}; with exact noise of scale {scale:g} it must be 0 or "
            f"at least {round_up(steps * Fraction(step)):g}, as values are rounded to a grid."
        )
    if (exact := Fraction(scale) / Fraction(step) * factor) > WIDEST:
        most = round_down(Fraction(WIDEST) * Fraction(step) / factor)
        raise UnsupportedError(
            f"scale is {scale}; exact noise on a grid of step {step:g} takes at most {most}."
        )
    return round_up(exact)


def places(values: NDArray[Any], step: float) -> NDArray[Any]:
    """The nearest whole numbers of grid steps, Python's integers, exactly; ties to even ones."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = np.rint(values / step)  # exact where it is finite, as the step is a power of two
    both = zip(near.ravel().tolist(), values.ravel().tolist(), strict=True)
    exact = [
        int(place) if math.isfinite(place) else round(Fraction(value) / Fraction(step))
        for place, value in both
    ]
    return np.array(exact, dtype=object).reshape(values.shape)


def on_grid(
    values: NDArray[Any], step: float, noisy: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[np.float64]:
    """What ``noisy`` makes of values in grid steps, scaled back to the nearest floats."""
    up, down = step.as_integer_ratio()

    def scaled(place: int) -> float:
        try:
            return place * up / down  # rounded once
        except OverflowError:  # beyond all floats
            return sys.float_info.max if place > 0 else -sys.float_info.max

    released = noisy(places(values, step))
    return np.array([scaled(each) for each in released.ravel().tolist()]).reshape(released.shape)


def within(
    bound: int, shape: tuple[int, ...], draw: Callable[[int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Integers of a size of at most ``bound``: each is drawn anew until it is one."""
    found = draw(math.prod(shape))
    while (beyond := np.flatnonzero(np.abs(found) > bound)).size:
        found[beyond] = draw(beyond.size)
    return found.reshape(shape)


def as_int64(total: NDArray[Any]) -> NDArray[np.int64]:
    """Python's integers as those of 64 bits; what is beyond ±2^62 counts as that."""
    clipped: NDArray[np.int64] = np.clip(total, -(2**62), 2**62).astype(np.int64)
    return clipped
