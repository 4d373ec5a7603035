"""Whether a proved curve lies below a Gaussian one, everywhere and not on a grid alone."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

from dpaudit.accounting import Composition
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.base.numbers import down, plain, up

_PIECES = 16
_MOST = 2000
"""Points at which curves are compared, at most: they then touch too closely to be told apart."""


def excess_over_normal(whole: Composition, mu: float, slack: float) -> str | None:
    """Where a proof leaves more than δ + (1 − δ) times the curve of μ, in words; None if nowhere.

    Both curves are convex in e^ε. So between two values of ε the chord of the proved one bounds
    what is true from above, and the tangents of the Gaussian one bound it from below. The chord
    less the larger tangent is concave and has one bend: three points decide. Where they do not,
    the interval is halved.

    Args:
        whole: what is proved.
        mu: of the Gaussian curve.
        slack: the δ beside it; from where the proof is below it, nothing is left to compare.
    """
    end = whole.epsilon(slack).upper
    if end == math.inf:
        return (
            f"no finite ε at δ = {plain(slack)}, where the curve of μ ends; a claim with a larger "
            "delta says how much of the tail is left out"
        )
    normal = GaussianComposition(mu)

    @cache
    def proved(epsilon: float) -> float:
        found = whole.delta(epsilon).upper
        return found if epsilon < end else min(found, slack)

    @cache
    def claimed(epsilon: float) -> float:
        return slack + (1 - slack) * (normal.delta(epsilon).lower or 0.0)

    edges = [end * number / _PIECES for number in range(_PIECES + 1)] if end > 0 else [0.0]
    for epsilon in edges[:-1]:
        if proved(epsilon) > claimed(epsilon):
            return _crossing(epsilon, proved(epsilon), claimed(epsilon))
    open_pieces = list(pairwise(edges))
    tried = 0
    while open_pieces:
        low, high = open_pieces.pop()
        ends = (proved(low), proved(high)), (claimed(low), claimed(high))
        if _below(low, high, *ends, _slopes(low, high, mu, slack)):
            continue
        middle = (low + high) / 2
        tried += 1
        if tried > _MOST or not low < middle < high or proved(middle) > claimed(middle):
            return _crossing(middle, proved(middle), claimed(middle))
        open_pieces += [(low, middle), (middle, high)]
    return None


def _below(
    low: float,
    high: float,
    proved: tuple[float, float],
    claimed: tuple[float, float],
    slopes: tuple[float, float],
) -> bool:
    """Whether a chord lies below two tangents, all in units of e^ε at the lower end."""
    if proved[0] <= claimed[1]:  # both curves fall
        return True
    width = math.expm1(min(high - low, 700.0))
    left, right = slopes
    if not left < right or proved[1] > claimed[1]:
        return False
    bend = min(max((claimed[1] - right * width - claimed[0]) / (left - right), 0.0), width)
    chord = proved[0] + (proved[1] - proved[0]) * bend / width
    tangent = max(claimed[0] + left * bend, claimed[1] + right * (bend - width))
    return chord <= tangent - 1e-14 * claimed[0]


def _slopes(low: float, high: float, mu: float, slack: float) -> tuple[float, float]:
    """Slopes of the claim at both ends, −(1 − δ) Φ(−ε/μ − μ/2), each rounded to its safe side."""
    from scipy.special import log_ndtr

    left, right = (
        (1 - slack) * math.exp(low + float(log_ndtr(-epsilon / mu - mu / 2)))
        for epsilon in (low, high)
    )
    return -left * (1 + 1e-12), -right * (1 - 1e-12)


def _crossing(epsilon: float, proved: float, claimed: float) -> str:
    return f"δ = {up(proved)} at ε = {plain(epsilon)}, where the claim allows {down(claimed)}"
