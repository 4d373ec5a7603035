"""Noise without floating-point leaks: integer noise on a grid.

Samples of continuous noise in floating point reveal the value through their least significant bits
(Mironov 2012). A release on a grid is a function of an integer, so its bits hold nothing that is
not in that integer: the value is rounded to the grid, exact integer noise is added, and the sum is
scaled back.

Rounding moves every entry by at most half a grid step, so neighbours come to lie further apart; a
mechanism widens its noise to pay for it, so that its guarantee is not above the declared one
(:meth:`Laplace.grid_scale <dpaudit.mechanisms.Laplace.grid_scale>`,
:meth:`Gaussian.grid_scale <dpaudit.mechanisms.Gaussian.grid_scale>`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InputError
from dpaudit.mechanisms.rounding import round_up

_EXACT_INT64 = 2**61


class ExactSource(Protocol):
    """Exact samplers with secret entropy, such as :class:`~dpaudit.ledger.SecureNoise`."""

    def step(self, scale: float) -> float:
        """The grid step, a power of two, for continuous noise of that scale.

        Raises:
            InputError: if the step that was asked for is too coarse for it.
        """

    def laplace(self, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Integers with mass proportional to exp(−|k|/scale)."""

    def normal(self, sigma: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Integers with mass proportional to exp(−k²/2σ²)."""

    def integers(self, bound: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Uniform integers in 0…bound − 1."""

    def events(self, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Independent events of exactly that probability, as the float is."""

    def below(self, bound: int) -> int:
        """One uniform integer in 0…bound − 1, of any size."""


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
    """
    exact = Fraction(scale) / Fraction(step)
    if sensitivity > 0:
        exact *= 1 + steps * Fraction(step) / Fraction(sensitivity)
    return round_up(exact)


def on_grid(values: NDArray[Any], step: float, noise: NDArray[np.int64]) -> NDArray[np.float64]:
    """(Rounded values + noise) in grid steps, scaled back; integers are never rounded on the way.

    Raises:
        InputError: if a value is too large for a float in grid steps.
    """
    with np.errstate(over="ignore"):
        places = np.rint(np.asarray(values, dtype=np.float64) / step)  # step is a power of two
    if not np.isfinite(places).all():
        raise InputError(f"value is too large for a grid of step {step:g}.")
    if np.abs(places).max(initial=0.0) < _EXACT_INT64:
        total: NDArray[Any] = places.astype(np.int64) + noise
    else:
        whole = np.array([int(place) for place in places.ravel()], dtype=object)
        total = whole.reshape(places.shape) + noise.astype(object)
    return total.astype(np.float64) * step
