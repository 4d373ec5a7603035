"""Privacy curves as a test sees them, and families of curves ordered by strength.

A curve δ(ε) that holds in both directions says for every event S and neighbours P, Q and ε >= 0
that ``P(S) <= e^ε Q(S) + δ(ε)``, and the same of the complement with P and Q exchanged. Solved for
Q(S), these are lower bounds; their maximum is the least Q(S) that P(S) allows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.types import deltas_of
from dpaudit.base.validate import non_negative, probability
from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.pairs import Floats

Least = Callable[[Floats], Floats]
"""For P(S) in [0, 1], shape (n,), the least Q(S) that a curve allows, shape (n,)."""

_POINTS = 64
_FAR = 1e-12  # a curve is followed until δ is that small
_LARGEST_EPSILON = 256.0


def approximate_least(epsilon: float, delta: float) -> Least:
    """The least Q(S) under (ε, δ)-differential privacy alone.

    Raises:
        InputError: if a number is out of its range.

    Example:
        >>> approximate_least(0.0, 0.1)(np.array([0.05, 0.5])).tolist()
        [0.0, 0.4]
    """
    return _lines(np.array([non_negative(epsilon=epsilon)]), np.array([probability(delta=delta)]))


def gaussian_least(mu: float) -> Least:
    """The least Q(S) under μ-Gaussian DP: Φ(Φ⁻¹(P(S)) − μ) (Dong, Roth and Su 2022).

    Raises:
        InputError: if μ is negative or not finite.
    """
    non_negative(mu=mu)
    from scipy.special import ndtr, ndtri

    def least(p: Floats) -> Floats:
        values: Floats = ndtr(ndtri(p) - mu)
        return values

    return least


def curve_least(curve: Callable[[Floats], ArrayLike]) -> Least:
    """The least Q(S) under a curve δ(ε) that holds in both directions.

    The curve is read at 64 values of ε; leaving out the others only weakens a test.

    Args:
        curve: δ for an array of ε, rounded up, such as :func:`dpaudit.privacy_curve` gives.

    Raises:
        InputError: if the curve is negative, not finite or of the wrong shape.
    """
    low, high = 0.0, 1.0
    while _delta(curve, high) > _FAR and high < _LARGEST_EPSILON:
        low, high = high, 2 * high
    # A curve that jumps to 0, as pure ones do, is followed to the jump.
    before = _delta(curve, low)
    while before > 1e3 * _FAR and high - low > 1e-4 * high > 1e-9:
        middle = (low + high) / 2
        delta = _delta(curve, middle)
        if delta > _FAR:
            low, before = middle, delta
        else:
            high = middle
    epsilons = np.linspace(0.0, high, _POINTS)
    return _lines(epsilons, deltas_of(curve, epsilons))


def _delta(curve: Callable[[Floats], ArrayLike], epsilon: float) -> float:
    return float(deltas_of(curve, np.array([epsilon]))[0])


def _lines(epsilons: Floats, deltas: Floats) -> Least:
    """The maximum of two lines for each point of a curve."""
    factors = np.exp(epsilons)

    def least(p: Floats) -> Floats:
        chance = np.asarray(p, dtype=np.float64)[:, None]
        direct = (chance - deltas) / factors
        complement = 1.0 - deltas - factors * (1.0 - chance)
        values: Floats = np.maximum(0.0, np.maximum(direct, complement).max(axis=1))
        return values

    return least


@dataclass(frozen=True)
class CurveFamily:
    """Curves ordered by strength: each allows all that the weaker ones allow.

    Attributes:
        assumption: what a bound on ε within the family takes for granted, in words.
        strengths: those that are tested, increasing, above 0.
        least: the curve of a strength, as a test sees it.
        epsilon: ε of a strength at some δ, rounded down.
    """

    assumption: str
    strengths: tuple[float, ...]
    least: Callable[[float], Least]
    epsilon: Callable[[float, float], float]


def gaussian_family() -> CurveFamily:
    """The curves of μ-Gaussian DP, with strength μ.

    Example:
        >>> round(gaussian_family().epsilon(1.0, 1e-5), 2)
        4.38
    """
    return CurveFamily(
        "the privacy curve is that of a Gaussian mechanism (μ-GDP)",
        tuple(np.round(np.arange(1, 2001) * 0.005, 3).tolist()),
        gaussian_least,
        lambda mu, delta: GaussianPair(mu).least_epsilon(delta) * (1 - 1e-9) if delta > 0 else 0.0,
    )


def largest_refuted(family: CurveFamily, rejects: Callable[[Least], bool]) -> float:
    """The largest strength whose curve a test rejects, or 0.

    The family is ordered, so that a test that rejects a curve rejects all weaker ones.
    """
    stands = bisect_left(family.strengths, True, key=lambda each: not rejects(family.least(each)))
    return family.strengths[stands - 1] if stands else 0.0
