"""What one run of an algorithm shows of its privacy by many canaries: four tests of their guesses.

*By the number of right guesses* (Steinke, Nasr and Jagielski 2023, *Privacy auditing with one (1)
training run*). Each of ``m`` canaries is included with probability 1/2, independently. The
algorithm runs once; the auditor, who sees its output, guesses for ``r`` canaries of its choice
whether they were included, and ``v`` guesses are right. Under (epsilon, delta)-DP with add-remove
(or zero-out) neighbours, v is hardly larger than Bin(r, 1 / (1 + exp(-epsilon))).

*Privacy curves as a test sees them.* A curve δ(ε) that holds in both directions says for every
event S and neighbours P, Q and ε >= 0 that ``P(S) <= e^ε Q(S) + δ(ε)``, and the same of the
complement with P and Q exchanged. Solved for Q(S), these are lower bounds; their maximum is the
least Q(S) that P(S) allows.

*Against a whole privacy curve* (Mahloujifar, Melis and Chaudhuri 2024). Each of ``m`` canaries is
included with probability 1/2, independently; the algorithm runs once, and the auditor makes at most
``g`` guesses, of which C are right. Let ``b`` be the concave, increasing function with ``P(S) <=
b(Q(S))`` for every event S and all neighbours P and Q, that is ``1 - f`` of f-DP. With ``p_i = P(C
= i)``, for every ``t >= 1``

    sum_{i >= t} (i / m) p_i  <=  b( sum_{i >= t - 1} ((g - i) / m) p_i ).

*Why.* Fix a canary j and all other inclusions, and let C' count the right guesses on the others.
"j is guessed to be in, and C' >= t - 1" is at most b times as likely if j is in as if it is out,
and the same with in and out exchanged. The mean over j's own inclusion is, as b is concave,
``P(j right, C >= t) <= b(P(j wrong, C >= t - 1))``; note C' = C where j is wrong. The mean over the
other inclusions and over all canaries gives the inequality, by concavity again and because at
most ``g - C`` guesses are wrong.

The largest ``P(C >= c)`` that these inequalities allow is a p-value. It is found exactly: a
hypothesis ``P(C >= c) = tau`` is kept alive with the least further mass by putting tau on C = c and
then, for t = c, c - 1, …, 1, just enough mass on C = t - 1. (Mass moved from any i to i - 1 lowers
every left side and raises every right side but one, which the rule keeps satisfied.) The hypothesis
is impossible if more than 1 is needed in all. Abstaining, ``g`` far below ``m``, is what makes the
bound sharp: it looks at the curve where false positives are rare.

*If canaries do not act on each other.* The bounds for any algorithm allow that canaries do, and pay
for it. If the score of each canary follows from its own membership and independent noise alone, the
number of right guesses has an exact law, the law of order statistics (the approach of Xiang, Wang,
Xiao, Tian and Wang 2025, arXiv 2509.08704). That is an assumption about the algorithm, and no test
of this run can confirm it.

*Why.* Under a symmetric trade-off curve the view of each canary is a post-processing of the curve's
own pair of laws (Blackwell's theorem; Dong, Roth and Su 2022, section 2). Of m independent such
pairs, an auditor who makes r guesses has most right ones, in the order of stochastic dominance, by
guessing where the posterior is furthest from 1/2. Given that a share u of a pair's outcomes is
surer than the (r+1)-th surest, the r surest are independent and each is right with probability
a(u) = β/u, where β + α = u for a point (α, β) of the curve: both guesses, mirrored. So the right
ones are Bin(r, a(U)) with U from Beta(r + 1, m - r). As a decreases, U is replaced by the lower
ends of intervals of equal chance, which rounds up.

*Many numbers of guesses at no price for how many there are.* Guesses are made in an order, the
surest first, which may follow from all that the run gave. After r_1 < r_2 < … of them the right
ones are counted. Under (ε, δ)-differential privacy the counts hardly exceed those of a walk of
coins with p = e^ε / (1 + e^ε): for every increasing event A of the right guesses on m canaries,

    P(A)  <=  P(A for the coins) + m δ / (1 + e^ε).

*Why.* Let g_i(w, c_1 … c_i) be the chance of A if the output is w, the guesses on the first i
canaries are right or wrong as c says, and coins decide the others. Then ``g_i - g_{i-1} = (c_i - p)
D`` with ``0 <= D <= 1``, as A is increasing. Given the canaries before i (the mean over those after
it keeps differential privacy), let P_1 and P_0 be the laws of the output with canary i and without
it. Where the guess on i is "in", the mean of ``(c_i - p) D`` is the integral of D/2 against ``(1 -
p) P_1 - p P_0 = (P_1 - e^ε P_0) / (1 + e^ε)``, at most ``δ / (1 + e^ε) / 2``; where it is "out",
the same with P_1 and P_0 exchanged; where there is none, D is 0. The sum over all canaries is the
second term. The first is g_0, which is the same for every w.

A is that some number of guesses has a p-value, by coins alone, at or below a limit; its chance for
the coins is computed exactly. Where m δ is large, the sum of the bounds of Steinke, Nasr and
Jagielski (2023, Theorem 5.2) on each number may be smaller; the smaller of both is taken.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.events import Integers, confidence_failure, deltas_of
from dpaudit.base.errors import InputError
from dpaudit.base.validate import integer_at_least, non_negative, open_fraction, probability
from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.pairs import Floats


def check_counts(canaries: int, guesses: int, correct: int) -> None:
    """Refuse counts unless ``correct <= guesses <= canaries``.

    Raises:
        InputError: naming the count that is too large, or is no whole number.
    """
    integer_at_least(1, canaries=canaries)
    if integer_at_least(0, guesses=guesses) > canaries:
        raise InputError(f"guesses is {guesses}; it must be at most the {canaries} canaries.")
    if integer_at_least(0, correct=correct) > guesses:
        raise InputError(f"correct is {correct}; it must be at most the {guesses} guesses.")


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Bound on the chance of so many right guesses under (epsilon, delta)-DP.

    Steinke, Nasr and Jagielski 2023, Theorem 5.2: with ``B ~ Bin(r, 1 / (1 + exp(-epsilon)))``,
    ``P(V >= v) <= P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i``.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: r, fixed in advance (the others are abstentions).
        correct: v, the right ones.
        epsilon: claimed epsilon, at least 0.
        delta: claimed delta, in [0, 1).

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.

    Example:
        >>> round(one_run_p_value(10, 10, 10, epsilon=0.0, delta=0.0) * 2**10, 6)
        1.0
    """
    check_counts(canaries, guesses, correct)
    accuracy = 1.0 / (1.0 + math.exp(-non_negative(epsilon=epsilon)))
    probability(delta=delta)
    if correct == 0:
        return 1.0
    from scipy.stats import binom

    chance = float(binom.sf(correct - 1, guesses, accuracy))
    if delta > 0:
        steps = np.arange(1, correct + 1)
        near = np.cumsum(binom.pmf(correct - steps, guesses, accuracy))
        chance += 2.0 * canaries * delta * float((near / steps).max())
    return min(1.0, chance)


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


_ROUNDING = 1e-9  # relative; a total this close to the possible counts as possible
_LEAST_P_VALUE = 1e-18


def fdp_p_value(canaries: int, guesses: int, correct: int, least: Least) -> float:
    """The largest chance of at least so many right guesses under a privacy curve.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: g, fixed in advance (the others are abstentions).
        correct: c, the right ones.
        least: for P(S) the least Q(S) that the curve allows, for arrays.

    Returns:
        The p-value, rounded up, and at least 1e-18.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``.

    Example:
        >>> from dpaudit.auditing.evidence.one_run import approximate_least
        >>> fdp_p_value(10, 10, 10, approximate_least(0.0, 0.0)) < 1.1 / 2**10
        True
    """
    check_counts(canaries, guesses, correct)
    lower, upper = _LEAST_P_VALUE, 1.0
    for points in (49, 33, 33):
        taus = np.geomspace(lower, upper, points)
        impossible = _impossible(canaries, guesses, correct, least, taus)
        if not impossible.any():
            break
        first = int(impossible.argmax())
        lower, upper = float(taus[max(0, first - 1)]), float(taus[first])
        if first == 0:
            break
    return upper


def fdp_rejects(canaries: int, guesses: int, correct: int, least: Least, error: float) -> bool:
    """Test at level ``error`` whether ``P(C >= correct) = error`` is more than the curve allows.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or ``error`` is not in (0, 1).
    """
    check_counts(canaries, guesses, correct)
    taus = np.array([open_fraction(error=error)])
    return bool(_impossible(canaries, guesses, correct, least, taus)[0])


def fdp_strength(
    canaries: int, guesses: int, correct: int, family: CurveFamily, confidence: float
) -> float:
    """Lower confidence bound on the strength of a curve in an ordered family; 0 for none.

    With probability ``confidence`` the curve of the algorithm is not that of any smaller strength.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.

    Example:
        >>> from dpaudit.auditing.evidence.one_run import gaussian_family
        >>> round(fdp_strength(1000, 100, 95, gaussian_family(), 0.95), 3)
        0.785
    """
    error = 1.0 - open_fraction(confidence=confidence)
    return largest_refuted(
        family, lambda least: fdp_rejects(canaries, guesses, correct, least, error)
    )


def _impossible(
    canaries: int, guesses: int, correct: int, least: Least, taus: Floats
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each tau whether ``P(C >= correct) = tau`` contradicts the inequalities, shape (n,)."""
    right = taus * (correct / canaries)
    wrong = taus * ((guesses - correct) / canaries)
    for level in range(correct - 1, -1, -1):
        needed = np.maximum(wrong, least(np.minimum(right, 1.0)))
        if not (needed > wrong).any():
            break  # neither sum will change any more
        right = right + level / (guesses - level) * (needed - wrong)
        wrong = needed
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = (right + wrong) * canaries > guesses * (
        1 + _ROUNDING
    )
    return flags


INDEPENDENCE = (
    "the score of a canary follows from its own membership and independent noise alone: no canary "
    "acts on another"
)
_INTERVALS = 400
_LOST = 1e-9  # chance below the first interval
_HALVINGS = 60


def independent_p_value(canaries: int, guesses: int, correct: int, least: Least) -> float:
    """The chance of so many right guesses under a privacy curve, if canaries are independent.

    Args:
        canaries: m, included independently with probability 1/2.
        guesses: r, fixed in advance.
        correct: the right ones.
        least: for P(S) the least Q(S) that the curve allows, in both directions, for arrays.

    Returns:
        The p-value, rounded up.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``.

    Example:
        >>> from dpaudit.auditing.evidence.one_run import gaussian_least
        >>> round(independent_p_value(1000, 1000, 720, gaussian_least(1.0)), 3)
        0.027
    """
    check_counts(canaries, guesses, correct)
    if correct == 0:
        return 1.0
    from scipy.special import bdtrc
    from scipy.stats import beta

    if guesses == canaries:
        surer, lost = np.ones(1), 0.0
    else:
        ends = np.linspace(0.0, 1.0, _INTERVALS, endpoint=False)
        surer = beta.ppf(np.maximum(ends, _LOST), guesses + 1, canaries - guesses)
        lost = _LOST
    tails = bdtrc(correct - 1, guesses, _right(surer, least))
    return min(1.0, (float(np.mean(tails)) + lost) * (1 + 1e-9))


def independent_strength(
    canaries: int, guesses: int, correct: int, family: CurveFamily, confidence: float
) -> float:
    """Lower confidence bound on the strength of a curve, if canaries are independent; 0 for none.

    Raises:
        InputError: if not ``correct <= guesses <= canaries``, or a number is out of range.
    """
    error = confidence_failure(confidence)
    return largest_refuted(
        family, lambda least: independent_p_value(canaries, guesses, correct, least) <= error
    )


def _right(surer: Floats, least: Least) -> Floats:
    """The largest chance that one of the surest guesses is right, a share of all, shape (n,)."""
    low, high = surer / 2, np.minimum(surer, 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = middle + least(middle) >= surer
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    right: Floats = np.minimum(1.0, high / surer)
    return right


_STEP = 0.005  # of the grid of epsilons
_BLOCK = 64  # grid points that are looked at together
_UP = 1 + 1e-9


@dataclass(frozen=True)
class Walk:
    """Numbers of guesses that are tested together.

    Attributes:
        canaries: m, included independently with probability 1/2.
        sizes: numbers of guesses, fixed in advance, increasing; each includes those before.
        delta: δ of the claim.

    Raises:
        InputError: if sizes do not increase or exceed the canaries, or δ is out of range.

    Example:
        >>> walk = Walk(1000, (100, 200), delta=1e-5)
        >>> walk.lower_bound([95, 180]), walk.p_value([95, 180], epsilon=2.1) > 0.05
        (2.105, False)
    """

    canaries: int
    sizes: tuple[int, ...]
    delta: float = 0.0

    def __post_init__(self) -> None:
        probability(delta=self.delta)
        if not self.sizes or any(np.diff((0, *self.sizes)) <= 0):
            raise InputError(f"sizes is {self.sizes}; it must be increasing numbers above 0.")
        check_counts(self.canaries, self.sizes[-1], 0)

    def p_value(self, correct: Sequence[int], epsilon: float) -> float:
        """Bound on the chance of counts that are as unlikely, rounded up.

        Args:
            correct: right guesses of each size.
            epsilon: claimed ε, at least 0.

        Raises:
            InputError: if there are more right guesses than guesses, or ε is out of range.
        """
        limit = float(self._smallest(correct, np.array([non_negative(epsilon=epsilon)]))[0])
        return self._bound(limit, epsilon)

    def lower_bound(self, correct: Sequence[int], confidence: float = 0.95) -> float:
        """Lower bound on ε at δ: the last of a fixed grid before the first that is not rejected.

        Raises:
            InputError: if there are more right guesses than guesses, or confidence is no fraction.
        """
        error, start = confidence_failure(confidence), 0
        while True:
            grid: Floats = _STEP * np.arange(start, start + _BLOCK, dtype=np.float64)
            smallest = self._smallest(correct, grid)
            # No more than the sum over all sizes: most ε are rejected without walking.
            singly: Floats = smallest * len(self.sizes)
            open_ = _UP * np.add(singly, self._slack(grid)) > error
            for place in np.flatnonzero(open_):
                if self._bound(float(smallest[place]), float(grid[place])) > error:
                    return float(round(max(0, start + int(place) - 1) * _STEP, 3))
            start += _BLOCK

    def surest(self, correct: Sequence[int], epsilon: float) -> int:
        """The place of the size whose count is the least likely."""
        return int(self._singly(correct, np.array([epsilon]))[0].argmin())

    def needed(self, epsilon: float, error: float) -> list[int]:
        """For each size the fewest right guesses that reject ε; one more than there are if none."""
        limits = np.unique(np.concatenate(self._tails(epsilon)))
        first = bisect_left(
            limits, True, key=lambda each: self._bound(float(each), epsilon) > error
        )
        return self._fewest(float(limits[first - 1]) if first else -1.0, epsilon)

    def _tails(self, epsilon: float) -> list[Floats]:
        """The p-values by coins of every count of each size."""
        return [_tail(np.arange(size + 1), np.array(size), epsilon) for size in self.sizes]

    def _fewest(self, limit: float, epsilon: float) -> list[int]:
        """Of each size the first count whose p-value by coins is at or below a limit."""
        return [int((tails > limit * _UP).sum()) for tails in self._tails(epsilon)]

    def _singly(self, correct: Sequence[int], epsilons: Floats) -> Floats:
        """The p-value of each count by coins alone, shape (n, sizes)."""
        for size, right in zip(self.sizes, correct, strict=True):
            check_counts(self.canaries, size, right)
        return np.stack([_tail(np.asarray(correct), np.array(self.sizes), e) for e in epsilons])

    def _smallest(self, correct: Sequence[int], epsilons: Floats) -> Floats:
        smallest: Floats = self._singly(correct, epsilons).min(axis=1)
        return smallest

    def _slack(self, epsilon: Floats) -> Floats:
        slack: Floats = self.canaries * self.delta / (1.0 + np.exp(epsilon))
        return slack

    def _bound(self, limit: float, epsilon: float) -> float:
        """Bound on the chance that some count has a p-value by coins at or below the limit."""
        fewest = self._fewest(limit, epsilon)
        bound = self._crossing(fewest, epsilon) + float(self._slack(np.array(epsilon)))
        if self.delta > 0:
            singly = (
                one_run_p_value(self.canaries, size, count, epsilon, self.delta)
                for size, count in zip(self.sizes, fewest, strict=True)
                if count <= size
            )
            bound = min(bound, sum(singly))
        return min(1.0, bound * _UP)

    def _crossing(self, fewest: Sequence[int], epsilon: float) -> float:
        """The chance that coins come to so many, or more, at one of the sizes."""
        from scipy.stats import binom

        chance = _coin(epsilon)
        below, crossed, before = np.ones(1), 0.0, 0
        for size, count in zip(self.sizes, fewest, strict=True):
            added = size - before
            reached = np.convolve(below, binom.pmf(np.arange(added + 1), added, chance))
            below, before = reached[:count], size
            crossed += float(reached[count:].sum())
            if not below.size:
                break
        return crossed


def _coin(epsilon: float) -> float:
    return 1.0 / (1.0 + math.exp(-epsilon))


def _tail(correct: Integers, size: Integers, epsilon: float) -> Floats:
    """The chance of so many right guesses or more, by coins."""
    from scipy.special import bdtrc

    return np.asarray(bdtrc(correct - 1.0, size, _coin(epsilon)), dtype=np.float64)
