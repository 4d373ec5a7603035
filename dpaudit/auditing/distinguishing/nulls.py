"""The null hypotheses of an audit, each fed with scores of fresh runs in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, TypeAlias

import numpy as np

from dpaudit.auditing.evidence.eprocess import CurveEProcess, EpsilonEProcess
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.types import Both, Direction, Event, PairCounts, json_number
from dpaudit.certificate import Claim
from dpaudit.mechanisms.pairs import Floats

KEPT = 10_000
"""Scores a side that are kept, about."""

Words = Callable[[Event], str | None]


def _kept(scores: Both, x: Floats, x_prime: Floats) -> Both:
    """Some scores to remember, about ``KEPT`` a side."""
    if scores[0].size >= KEPT:
        return scores
    return np.concatenate([scores[0], x]), np.concatenate([scores[1], x_prime])


RARE_SHARE = 0.1
"""Of the error rate of a point, what goes to a rare event where there is one."""
RARE_PILOT = 1_000
"""Runs a side from which on a pilot can show one."""


class PointNull:
    """The exact joint test of one event on a number of runs fixed in advance.

    Args:
        claim: (ε, δ).
        event: that is tested.
        rare: another one, which takes ``RARE_SHARE`` of the error rate.

    Attributes:
        scores: of both sides, of some of the runs, for forecasts.
    """

    def __init__(self, claim: Claim, event: Event, rare: Event | None = None) -> None:
        self.event = event
        self.counts: PairCounts | None = None
        self._rare = None if rare is None else PointNull(claim, rare)
        self.scores: Both = (np.empty(0), np.empty(0))
        self._delta = claim.delta
        self._bounds: dict[tuple[PairCounts, float], float] = {}

    @property
    def runs(self) -> int:
        """Runs a side so far."""
        return 0 if self.counts is None else self.counts.runs

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Count the event, and keep some scores for forecasts."""
        self.scores = _kept(self.scores, x, x_prime)
        if self._rare is not None:
            self._rare.update(x, x_prime)
        old = (0, 0, 0, 0) if self.counts is None else astuple(self.counts)
        new = astuple(self.event.count(x, x_prime))
        self.counts = PairCounts(*map(sum, zip(old, new, strict=True)))

    def lower_bound(self, confidence: float) -> float:
        """Exact lower bound, the larger of the two events'; 0 before the first run."""
        return max(each._bound(1 - share * (1 - confidence)) for each, share in self._arms)

    @property
    def _arms(self) -> list[tuple[PointNull, float]]:
        """Both events, with their shares of the error rate."""
        if self._rare is None:
            return [(self, 1.0)]
        return [(self, 1 - RARE_SHARE), (self._rare, RARE_SHARE)]

    def _bound(self, confidence: float) -> float:
        if self.counts is None:
            return 0.0
        key = self.counts, confidence
        if key not in self._bounds:
            self._bounds[key] = joint_lower_bound(self.counts, self._delta, confidence)
        return self._bounds[key]

    def event_in_words(self, name: str, told: Words | None = None) -> str:
        """The event, and under which neighbour it is the likelier one.

        Args:
            name: says what a score is.
            told: says of an event what it is, if it can.
        """
        # Of both, that of the larger bound at the usual confidence.
        decisive, _ = max(self._arms, key=lambda arm: arm[0]._bound(1 - 0.05 * arm[1]))
        event = decisive.event
        if decisive.is_certain:
            return "none: nothing that was looked at tells the neighbours apart"
        words, _, _ = event.describe().rpartition(" (")
        likelier = "x" if event.direction is Direction.FORWARD else "x'"
        shown = (told and told(event)) or words.replace("score", name)
        return f"{shown}, likelier under {likelier}"

    @property
    def is_certain(self) -> bool:
        """Whether the event happened in every run on both sides, so that it tests nothing."""
        counts = self.counts
        if counts is None:
            return False
        return (counts.hits, counts.other_hits) == (counts.runs, counts.other_runs)

    def details(self) -> dict[str, Any]:
        """Event, direction and counts, and those of the rare event."""
        rare = {} if self._rare is None else {"rare": self._rare.details()}
        return rare | {
            "test": "exact joint test",
            "test_runs": self.runs,
            "direction": self.event.direction.value,
            "event": self.event.to_dict(),
            "counts": None if self.counts is None else self.counts.to_dict(),
        }


class AnytimeNull:
    """An e-process for (ε, δ), which may be looked at and stopped at any time."""

    def __init__(self, claim: Claim) -> None:
        # The first value above the claim is what an early stop waits for.
        top = max(5.0, 2 * claim.epsilon)
        grid = np.append(np.linspace(0.0, top, 41), claim.epsilon * (1 + 1e-6) + 1e-9)
        self.scores: Both = (np.empty(0), np.empty(0))
        self._process = EpsilonEProcess(claim.delta, epsilons=np.unique(grid))

    @property
    def runs(self) -> int:
        """Pairs so far."""
        return self._process.pairs

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Bet on further pairs."""
        self.scores = _kept(self.scores, x, x_prime)
        self._process.update(x, x_prime)

    def lower_bound(self, confidence: float) -> float:
        """The bound so far, on a grid."""
        return self._process.lower_bound(confidence)

    def event_in_words(self, name: str, told: Words | None = None) -> str:
        """No single event: the bets are spread."""
        return f"{name}, over both tails"

    def details(self) -> dict[str, Any]:
        """The number of pairs."""
        return {"test": "e-process", "test_runs": self.runs}


Null: TypeAlias = PointNull | AnytimeNull
"""A test of (ε, δ), and what the runs so far say of it."""


class CurveNull:
    """A whole claimed curve δ(ε), tested by betting; the score may be changed between chunks.

    A change of score ends one e-process and puts its wealth into the next one. The product is an
    e-process again, as the new score is fixed before the pairs that follow.

    Args:
        curve: claimed δ for an array of ε.
        error: chance of refuting a true curve.
    """

    def __init__(self, curve: Callable[[Any], Any], error: float) -> None:
        self._curve = curve
        self._error = error
        self._banked = 0.0
        self._earlier = 0
        self._process = CurveEProcess(curve)
        self.refuted = False

    @property
    def pairs(self) -> int:
        """Pairs used; after a refutation, those that it took."""
        return self._earlier + self._process.pairs

    @property
    def log_e_value(self) -> float:
        """Logarithm of the present e-value."""
        return self._banked + math.log(max(self._process.e_value, 1e-300))

    @property
    def e_value(self) -> float:
        """The present e-value."""
        return math.exp(min(self.log_e_value, 700.0))

    def change_score(self) -> None:
        """The pairs that follow have another score, fixed on those before."""
        if not self.refuted:
            self._banked, self._earlier = self.log_e_value, self.pairs
            self._process = CurveEProcess(self._curve)

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Bet on further pairs, until the refutation."""
        start = 0
        while start < len(x) and not self.refuted:
            end = start + max(32, self._process.pairs // 16)
            self._process.update(x[start:end], x_prime[start:end])
            self.refuted = self.log_e_value >= -math.log(self._error)
            start = end

    def in_words(self, name: str) -> str:
        """Return what is rejected, and how clearly."""
        return f"{name} against the whole curve δ(ε), e-value {self.e_value:.3g}"

    def details(self) -> dict[str, Any]:
        """e-value, pairs and verdict."""
        return {
            "refuted": self.refuted,
            "e_value": json_number(self.e_value),
            "pairs": self.pairs,
            "threshold": 1 / self._error,
        }
