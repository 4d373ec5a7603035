"""The running wealth of families of bets, which is an e-process each (see :mod:`.eprocess`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.bets import Bets, NullPoint, quantile_edges, tail_bets
from dpaudit.auditing.evidence.types import as_scores
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats

PILOT_PAIRS = 64


def _gains(family: Bets, counts: Floats) -> Floats:
    """The log wealth that each bet wins on pairs with the given cell counts."""
    factors = family.log_factors.reshape(family.log_prior.size, -1)
    won: Floats = factors @ counts
    return won


def _log_sum(values: Floats) -> float:
    """``log sum exp`` of the values."""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


class Wealth:
    """The wealth of several families of bets on one stream of pairs of scores.

    Args:
        nulls: for each family, the points of the claim that it bets against.

    Attributes:
        edges: the thresholds: quantiles of a pilot, the first ``PILOT_PAIRS`` pairs.
        pairs: pairs seen, the pilot included.
        log_wealth: log e-value of each family, shape ``(families,)``.
        log_peak: its running maximum, at least 0.
    """

    def __init__(self, nulls: Sequence[list[NullPoint]]) -> None:
        self._nulls = nulls
        self._pilot = [np.empty(0), np.empty(0)]
        self.edges: Floats | None = None
        self.pairs = 0
        self.log_wealth = np.zeros(len(nulls))
        self.log_peak = np.zeros(len(nulls))
        self._families: list[Bets] = []
        self._log_bets: list[Floats] = []

    def _weights(self, family: Bets) -> Floats:
        """Log initial weights: the prior times the wealth on the pilot, summing to 1."""
        gains = _gains(family, self._counts(*self._pilot))
        log_weights = family.log_prior + gains
        return log_weights - _log_sum(log_weights)

    def _counts(self, first: Floats, second: Floats) -> Floats:
        """Tell how many pairs fell into each of the ``B * B`` cells."""
        assert self.edges is not None
        bins = self.edges.size + 1
        cells = np.searchsorted(self.edges, first, side="right") * bins
        cells += np.searchsorted(self.edges, second, side="right")
        return np.bincount(cells, minlength=bins * bins).astype(np.float64)

    def update(self, scores_x: ArrayLike, scores_x_prime: ArrayLike) -> None:
        """Add pairs of scores, shape ``(n,)`` each, and bet on those that the pilot leaves.

        Raises:
            InputError: if a score is NaN or the lengths differ.
        """
        first, second = as_scores(scores_x=scores_x), as_scores(scores_x_prime=scores_x_prime)
        if first.size != second.size:
            raise InputError(
                f"scores_x has {first.size} runs and scores_x_prime has {second.size}; "
                "an e-process takes pairs, so both must have the same number."
            )
        start = self._fill_pilot(first, second)
        self.pairs += start
        while start < first.size:
            # Looking often is free under Ville's inequality; here, at every sixteenth of the run.
            end = min(first.size, start + max(32, self.pairs // 16))
            self._bet(first[start:end], second[start:end])
            self.pairs += end - start
            start = end

    def _fill_pilot(self, first: Floats, second: Floats) -> int:
        """Take what the pilot still lacks, and return how many pairs that were."""
        if self.edges is not None:
            return 0
        wanted = PILOT_PAIRS - self._pilot[0].size
        taken = [first[:wanted], second[:wanted]]
        self._pilot = [np.concatenate(both) for both in zip(self._pilot, taken, strict=True)]
        if self._pilot[0].size == PILOT_PAIRS:
            self.edges = quantile_edges(np.concatenate(self._pilot))
            self._families = [tail_bets(points, self.edges.size + 1) for points in self._nulls]
            self._log_bets = [self._weights(family) for family in self._families]
        return taken[0].size

    def _bet(self, first: Floats, second: Floats) -> None:
        counts = self._counts(first, second)
        for index, family in enumerate(self._families):
            self._log_bets[index] += _gains(family, counts)
            self.log_wealth[index] = _log_sum(self._log_bets[index])
        self.log_peak = np.maximum(self.log_peak, self.log_wealth)
