"""The null hypothesis of a claimed true-positive rate, tested as it is stated.

The ROC curve is concave, from (0, 0) to (1, 1). If it is at most t at a, an event of rates (p, q)
on the two sides has (1 − q)(1 − t) ≤ (1 − a)(1 − p) where q ≤ a, and a p ≤ t q where q ≥ a. Each of
the two is a claim of a pure ε on the event, or on its complement. An event that violates both
refutes; as one of them holds if the claim does, each is tested at the whole error rate (an
intersection-union test, Berger 1982).
"""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import product
from typing import Any

import numpy as np

from dpaudit.auditing.evidence.joint import joint_p_value
from dpaudit.auditing.evidence.types import Direction, Event, PairCounts
from dpaudit.mechanisms.pairs import Floats

HITS = 10
"""Occurrences of the rarer outcome that the runs are to show on which the event is chosen."""
MOST_PILOT = 10_000
THRESHOLDS = 200


class RatesNull:
    """TPR ≤ t at FPR a in both directions; the first runs of a score choose the event.

    Args:
        rates: (t, a).
        error: chance of refuting a true claim.
    """

    def __init__(self, rates: tuple[float, float], error: float) -> None:
        self._rates, self._error = rates, error
        high, low = rates
        odds = (high / low, (1 - low) / (1 - high))
        self._epsilons = [max(0.0, math.log(each)) * (1 + 1e-14) + 1e-15 for each in odds]
        self._pilot = min(MOST_PILOT, math.ceil(HITS / min(low, 1 - high)))
        self.change_score()

    def change_score(self) -> None:
        """The runs that follow have another score."""
        self._seen: list[tuple[Floats, Floats]] = []
        self._event: Event | None = None
        self._counts = (0, 0, 0, 0)
        self.pairs = 0

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Scores of further runs."""
        self.pairs += len(x)
        if self._event is not None:
            new = astuple(self._event.count(x, x_prime))
            self._counts = tuple(map(sum, zip(self._counts, new, strict=True)))  # type: ignore[assignment]
            return
        self._seen.append((x, x_prime))
        if self.pairs >= self._pilot:
            first, second = (np.concatenate(side) for side in zip(*self._seen, strict=True))
            self._event, self._seen = self._chosen(first, second), []

    @property
    def refuted(self) -> bool:
        """Whether both are rejected; to be asked once, after all runs."""
        if self._counts[1] == 0:
            return False
        hits, runs, other, other_runs = self._counts
        both = (
            PairCounts(hits, runs, other, other_runs),
            PairCounts(other_runs - other, other_runs, runs - hits, runs),
        )
        return all(
            joint_p_value(counts, epsilon, 0.0) <= self._error
            for counts, epsilon in zip(both, self._epsilons, strict=True)
        )

    def in_words(self, name: str) -> str:
        """The event and its rates."""
        assert self._event is not None
        hits, runs, other, other_runs = self._counts
        words = self._event.describe().rpartition(" (")[0].replace("score", name)
        return f"{words}: TPR {hits / runs:.3g} at FPR {other / other_runs:.3g}"

    def details(self) -> dict[str, Any]:
        """Event, counts and verdict."""
        event = None if self._event is None else self._event.to_dict()
        found = {"refuted": self.refuted, "pairs": self.pairs, "event": event}
        return found | {"counts": list(self._counts)}

    def _chosen(self, x: Floats, x_prime: Floats) -> Event:
        """The threshold that both inequalities are most clearly violated at."""
        values = np.unique(np.concatenate([x, x_prime]))
        places = np.unique(np.linspace(0, len(values) - 1, THRESHOLDS).astype(int))
        kinds = product(values[places].tolist(), (False, True), Direction)
        events = (Event(low, complement=out, direction=way) for low, out, way in kinds)
        return max(events, key=lambda event: self._clear(*event.count(x, x_prime).shrunk))

    def _clear(self, p: float, q: float) -> float:
        """Of both violations the lesser one, in standard deviations of one run."""
        high, low = self._rates
        slopes = high / low, (1 - high) / (1 - low)
        limits = slopes[0] * q, 1 - slopes[1] * (1 - q)
        return min(
            (p - limit) / math.sqrt(p * (1 - p) + slope**2 * q * (1 - q))
            for slope, limit in zip(slopes, limits, strict=True)
        )
