"""One test of many numbers of guesses in one run, at no price for how many there are.

Guesses are made in an order, the surest first, which may follow from all that the run gave. After
r_1 < r_2 < … of them the right ones are counted. Under (ε, δ)-differential privacy the counts
hardly exceed those of a walk of coins with p = e^ε / (1 + e^ε): for every increasing event A of the
right guesses on m canaries,

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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.evidence.one_run import check_counts, one_run_p_value
from dpaudit.auditing.evidence.types import Integers, confidence_failure
from dpaudit.base.errors import InputError
from dpaudit.base.validate import non_negative, probability
from dpaudit.mechanisms.pairs import Floats

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
