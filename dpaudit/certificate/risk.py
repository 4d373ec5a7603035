"""Claims in other terms than (ε, δ), and what a proved curve δ(ε) says of attacks and of a claim.

In place of (ε, δ) a claim may say how well an attack may do, or a whole trade-off curve, such as a
Gaussian one, below which a proved curve lies everywhere and not on a grid alone.
Neighbours are symmetric, so each statement is meant, and proved, in both directions. A proof is a
curve δ(ε), rounded up; each class says when such a curve lies within it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting import Composition, CurvePoint, Interval
from dpaudit.accounting.best import BestComposition
from dpaudit.accounting.closed_forms.additive import GaussianComposition, ZcdpComposition
from dpaudit.accounting.guarantees import ParallelComposition
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability, Positive, Probability, Record
from dpaudit.base.numbers import down, holds, plain
from dpaudit.base.numbers import up as upwards
from dpaudit.mechanisms.rounding import round_up, up


@dataclass(frozen=True)
class PointsCurve(Composition):
    """All that follows from some (ε, δ) which hold together.

    Attributes:
        points: at least one.
    """

    points: tuple[CurvePoint, ...]

    def epsilon(self, delta: float) -> Interval:
        """The least ε of the points whose δ is not larger."""
        held = (point.epsilon for point in self.points if point.delta <= delta)
        return Interval(None, min(held, default=math.inf))

    def delta(self, epsilon: float) -> Interval:
        """The least that a point leaves (Kairouz, Oh and Viswanath 2015, Theorem 2.1)."""
        return Interval(None, min(_left(point, epsilon) for point in self.points))

    @property
    def native(self) -> Mapping[str, Any]:
        """The points."""
        return {"points": [point.to_dict() for point in self.points]}

    @property
    def corners(self) -> tuple[float, ...]:
        """The ε at which it says most."""
        return tuple(point.epsilon for point in self.points)

    def __call__(self, epsilons: ArrayLike) -> Any:
        """Its δ, of any shape."""
        return self.deltas(epsilons)


@dataclass(frozen=True)
class RatesCurve(PointsCurve):
    """The curve that follows from a largest TPR at an FPR.

    Attributes:
        rates: TPR and FPR.
    """

    rates: tuple[float, float] = (1.0, 1.0)


def _left(point: CurvePoint, epsilon: float) -> float:
    """The δ at ε that follows from one point: δ is convex in e^ε, and 1 at e^ε = −1."""
    if epsilon >= point.epsilon:
        return point.delta
    share = -math.expm1(epsilon - point.epsilon) / (1 + math.exp(-point.epsilon))
    return min(1.0, up(point.delta + (1 - point.delta) * share, 4))


_GOLDEN = (math.sqrt(5) - 1) / 2


def advantage(whole: Composition) -> float:
    """The largest |TPR − FPR| of any test: δ(0), the total variation distance, rounded up."""
    return whole.delta(0.0).upper


def bayes_success(whole: Composition, prior: float) -> float:
    """Success of the best guess between two data sets, one of prior probability ``prior``.

    With m the larger of the two priors, no test S is right with more than
    m + (1 − m)(P(S) − m/(1 − m) Q(S)), which is at most m + (1 − m) δ(ln m/(1 − m)).

    Returns:
        The bound, rounded up.
    """
    sure = max(Fraction(prior), 1 - Fraction(prior))
    delta = whole.delta(log_odds(sure, -1)).upper
    return round_up(sure + (1 - sure) * Fraction(delta))


def true_positive_rate(whole: Composition, fpr: float, enough: float = 0.0) -> float:
    """The largest TPR of any test whose FPR is at most ``fpr``, rounded up.

    For every real ε it is at most e^ε FPR + δ(ε), where δ(−ε) = 1 − e^−ε (1 − δ(ε)) (Dong, Roth and
    Su 2022, Proposition 2.12). Each is valid; the least is found by golden section, as the bound is
    convex in e^ε.

    Args:
        whole: what is proved.
        fpr: in (0, 1).
        enough: a bound from which on no smaller one is searched for.
    """

    def bound(epsilon: float) -> float:
        delta, share = whole.delta(abs(epsilon)).upper, math.exp(epsilon)
        if epsilon >= 0:
            return up(up(share * fpr, 4) + delta, 2)
        return 1 - share * (1 - 2.0**-50) * max(0.0, 1 - delta - fpr) + 2.0**-52

    end = min(700.0, 1 - math.log(fpr))
    least, low, high = bound(0.0), 0.0, end
    if bound(1e-3) > least:
        low, high = -30.0, 0.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(left), bound(right)
    while high - low > 1e-5:
        least = min(least, at_left, at_right)
        if least <= enough:
            break
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(right)
    return min(1.0, least)


def log_odds(sure: Fraction, direction: int) -> float:
    """Ln of m/(1 − m), for m of at least 1/2, moved by more than its rounding error."""
    if sure == Fraction(1, 2):
        return 0.0
    return max(0.0, math.log(sure / (1 - sure)) * (1 + direction * 1e-14) + direction * 1e-16)


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
            f"no finite ε at δ = {plain(slack)}, where the comparison with the curve of μ ends; a "
            "claim with a larger delta leaves out more of the tail"
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
    return f"δ = {upwards(proved)} at ε = {plain(epsilon)}, where the claim allows {down(claimed)}"


_Found = TypeVar("_Found", bound=Composition)


def _sampled(curve: Composition, slack: float) -> tuple[CurvePoint, ...]:
    """Points of a smooth curve with ``slack`` added to its δ; at the usual δ comes first."""
    deltas = [1e-5, *np.geomspace(1e-12, 0.5, 48).tolist()]
    found = {curve.epsilon(delta).upper: min(1.0, delta + slack) for delta in deltas}
    found[0.0] = curve.delta(0.0).upper + slack
    kept = [CurvePoint(*each) for each in found.items() if each[0] < math.inf and each[1] < 1]
    if not kept:
        raise InputError(f"{curve.native} bounds no finite ε at any δ; claim a smaller number.")
    return tuple(kept)


@dataclass(frozen=True)
class Risk(Record, ABC):
    """A statement in place of (ε, δ); the first of its fields is the key that tells its kind."""

    @property
    @abstractmethod
    def points(self) -> tuple[CurvePoint, ...]:
        """The (ε, δ) that follow from it, of a smooth curve some; audits test the first apart."""

    @abstractmethod
    def excess(self, whole: Composition) -> str | None:
        """Tell what is proved instead; None where the proof lies within the statement."""

    @property
    def tested(self) -> Callable[[ArrayLike], Any] | None:
        """δ(ε) as an audit tests it; None where one point says all of it."""
        return PointsCurve(self.points) if len(self.points) > 1 else None

    @property
    def delta_wanted(self) -> float | None:
        """The δ at which a guarantee beside it is of interest, where it names one."""
        return getattr(self, "delta", None) or None


@dataclass(frozen=True)
class Advantage(Risk):
    """No test has TPR − FPR above this: (0, δ)-privacy.

    Attributes:
        advantage: the largest |TPR − FPR|, in [0, 1).
    """

    advantage: Probability

    def __str__(self) -> str:
        return f"advantage ≤ {self.advantage:g}"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """One at ε = 0."""
        return (CurvePoint(0.0, self.advantage),)

    def excess(self, whole: Composition) -> str | None:
        """The advantage that is proved."""
        proved = advantage(whole)
        if holds(proved, self.advantage):
            return None
        return f"advantage ≤ {_told(proved, self.advantage)}"


@dataclass(frozen=True)
class BayesSuccess(Risk):
    """No guess between two data sets is right more often than this.

    Attributes:
        success: probability that the best guess is right, in (0, 1); at least the larger prior.
        prior: probability of the one data set before anything is seen, in (0, 1).
    """

    success: OpenProbability
    prior: OpenProbability = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if Fraction(self.success) < self._sure:
            raise InputError(
                f"success is {self.success:g}; at prior {self.prior:g} a guess without output is "
                f"right with probability {float(self._sure):g}, so success must be at least that."
            )

    def __str__(self) -> str:
        return f"success ≤ {self.success:g} at prior {self.prior:g}"

    @property
    def _sure(self) -> Fraction:
        return max(Fraction(self.prior), 1 - Fraction(self.prior))

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """One at e^ε = m/(1 − m), with m the larger prior."""
        share = (Fraction(self.success) - self._sure) / (1 - self._sure)
        return (CurvePoint(log_odds(self._sure, 1), round_up(share)),)

    def excess(self, whole: Composition) -> str | None:
        """The success that is proved."""
        proved = bayes_success(whole, self.prior)
        if holds(proved, self.success):
            return None
        return f"success ≤ {_told(proved, self.success)} at prior {self.prior:g}"


@dataclass(frozen=True)
class TruePositiveRate(Risk):
    """No test of this FPR has a larger TPR.

    Attributes:
        tpr: the largest true-positive rate, in (0, 1); at least ``fpr``.
        fpr: the false-positive rate, in (0, 1).
    """

    tpr: OpenProbability
    fpr: OpenProbability

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tpr < self.fpr:
            raise InputError(
                f"tpr is {self.tpr:g}; a coin toss reaches tpr = fpr, so tpr must be at least "
                f"{self.fpr:g}."
            )

    def __str__(self) -> str:
        return f"TPR ≤ {self.tpr:g} at FPR {self.fpr:g}"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """One. The ROC curve is concave, from (0, 0) to (1, 1).

        Its chords bound TPR by 1 − (1 − t)(1 − x)/(1 − a) at an FPR x below a, and by tx/a above;
        the tangent through (0, (t − a)/(1 − a)) and (a/t, 1) is above both.
        """
        high, low = Fraction(self.tpr), Fraction(self.fpr)
        if high + low > 1:  # the same rates with the data sets exchanged
            high, low = 1 - low, 1 - high
        odds = high * (1 - high) / (low * (1 - low))
        epsilon = up(math.log(odds) * (1 + 1e-14) + 1e-16) if odds > 1 else 0.0
        return (CurvePoint(epsilon, round_up((high - low) / (1 - low))),)

    @property
    def tested(self) -> Callable[[ArrayLike], Any]:
        """What follows from it, with its ``rates``: at its FPR it says more than any δ(ε)."""
        return RatesCurve(self.points, (self.tpr, self.fpr))

    def excess(self, whole: Composition) -> str | None:
        """The rate that is proved."""
        proved = true_positive_rate(whole, self.fpr, self.tpr)
        if holds(proved, self.tpr):
            return None
        return f"TPR ≤ {_told(proved, self.tpr)} at FPR {self.fpr:g}"


@dataclass(frozen=True)
class TradeOffPoints(Risk):
    """A curve by its points: each (ε, δ) holds.

    Attributes:
        curve: the points, at least one.
    """

    curve: tuple[CurvePoint, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.curve:
            raise InputError("curve has no point; give some, such as [[0.5, 1e-3], [1.0, 1e-6]].")
        for point in self.curve:
            validate.non_negative(epsilon=point.epsilon)
            validate.probability(delta=point.delta)

    def __str__(self) -> str:
        shown = [f"({point.epsilon:g}, {point.delta:g})" for point in self.curve]
        rest = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
        return f"(ε, δ) = {', '.join(shown[:4])}{rest}"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """All of them."""
        return self.curve

    def excess(self, whole: Composition) -> str | None:
        """The first point that is not proved, and what is at its δ."""
        for point in self.curve:
            proved = whole.epsilon(point.delta).upper
            if not holds(proved, point.epsilon):
                shown = _told(proved, point.epsilon) if proved < math.inf else "∞"
                return f"ε = {shown} at δ = {point.delta:g}"
        return None

    @property
    def delta_wanted(self) -> float:
        """The least of all points."""
        return min(point.delta for point in self.curve)


@dataclass(frozen=True)
class GaussianCurve(Risk):
    """μ-Gaussian differential privacy (Dong, Roth and Su 2022), a whole curve.

    No two data sets are easier to tell apart than N(0, 1) and N(μ, 1). A curve with other tails
    than the normal ones is proved with a δ of its own: δ(ε) is then at most δ + (1 − δ) times the
    Gaussian one.

    Attributes:
        mu: μ, above 0.
        delta: probability of the event, in [0, 1).
    """

    mu: Positive
    delta: Probability = 0.0

    def __str__(self) -> str:
        return f"μ = {self.mu:g}{_and_delta(self.delta)}"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """Some of the curve."""
        return _sampled(GaussianComposition(self.mu), self.delta)

    @property
    def tested(self) -> Callable[[ArrayLike], Any]:
        """All of it."""
        return lambda epsilons: GaussianComposition(self.mu).deltas(epsilons) + self.delta

    def excess(self, whole: Composition) -> str | None:
        """The μ that is proved, or an ε at which the curves cross."""
        exact = _parts(whole, GaussianComposition)
        if exact is not None:
            mu = max(part.mu for part in exact)
            if self.delta == 0 or holds(mu, self.mu):
                return None if holds(mu, self.mu) else f"μ = {_told(mu, self.mu)}"
        return excess_over_normal(whole, self.mu, self.delta)


@dataclass(frozen=True)
class Concentrated(Risk):
    """ρ-zero-concentrated differential privacy (Bun and Steinke 2016), as the accountant proves it.

    Attributes:
        rho: ρ, above 0.
        delta: probability of an event for which it does not hold, in [0, 1).
    """

    rho: Positive
    delta: Probability = 0.0

    def __str__(self) -> str:
        return f"ρ = {self.rho:g}{_and_delta(self.delta)}"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """Some of its conversion to (ε, δ)."""
        return _sampled(ZcdpComposition(self.rho, math.inf), self.delta)

    @property
    def tested(self) -> Callable[[ArrayLike], Any]:
        """All of that."""
        return ZcdpComposition(self.rho, math.inf, self.delta).deltas

    def excess(self, whole: Composition) -> str | None:
        """The ρ that is proved."""
        parts = _parts(whole, ZcdpComposition)
        if parts is None:
            return "no ρ, as not every invocation is zero-concentrated"
        rho, slack = max(part.rho for part in parts), max(part.slack for part in parts)
        if holds(rho, self.rho) and slack <= self.delta:
            return None
        return f"ρ = {_told(rho, self.rho)}{_and_delta(slack)}"


def _and_delta(delta: float) -> str:
    return f", δ = {delta:g}" if delta else ""


def _told(value: float, beside: float) -> str:
    """Rounded up, with digits enough to tell it from the claim."""
    return upwards(value) if upwards(value) != plain(beside) else repr(value)


def _parts(whole: Composition, kind: type[_Found]) -> list[_Found] | None:
    """List what accountants of one kind prove of each group; None where they do not apply."""
    groups = whole.groups if isinstance(whole, ParallelComposition) else (whole,)
    found: list[_Found] = []
    for group in groups:
        every = group.compositions.values() if isinstance(group, BestComposition) else [group]
        found += [each for each in every if isinstance(each, kind)][:1]
    return found if len(found) == len(groups) else None


RISKS: dict[str, type[Risk]] = {
    "advantage": Advantage,
    "tpr": TruePositiveRate,
    "success": BayesSuccess,
    "mu": GaussianCurve,
    "rho": Concentrated,
    "curve": TradeOffPoints,
}
"""By the key that tells the kind of a claim."""
