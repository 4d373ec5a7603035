"""The design of an audit: null hypotheses, runs that they need, and shares of its error.

An audit decides all of this before its first run. Null hypotheses are fed with scores of fresh runs
in chunks.

*A claimed true-positive rate* is tested as it is stated. The ROC curve is concave, from (0, 0) to
(1, 1). If it is at most t at a, an event of rates (p, q) on the two sides has (1 − q)(1 − t) ≤ (1 −
a)(1 − p) where q ≤ a, and a p ≤ t q where q ≥ a. Each of the two is a claim of a pure ε on the
event, or on its complement. An event that violates both refutes; as one of them holds if the claim
does, each is tested at the whole error rate (an intersection-union test, Berger 1982).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from dpaudit.auditing.distinguishing.choosing import Learner, learn_scores, why_none_is_learned
from dpaudit.auditing.distinguishing.scores import OutputScore, Score
from dpaudit.auditing.evidence.eprocess import CurveEProcess, EpsilonEProcess
from dpaudit.auditing.evidence.events import (
    Both,
    Direction,
    Event,
    PairCounts,
    json_number,
)
from dpaudit.auditing.evidence.two_counts import fewest_runs, joint_lower_bound, joint_p_value
from dpaudit.base.errors import InputError
from dpaudit.base.validate import integer_at_least
from dpaudit.certificate import Claim
from dpaudit.mechanisms.pairs import Floats

KEPT = 10_000
"""Scores a side that are kept, about."""

Words = Callable[[Event], str | None]


def pilot_size(runs: int) -> int:
    """Tell how many of a side's runs to spend on the pilot: a tenth, or up to 50 if there are few.

    Example:
        >>> pilot_size(10_000), pilot_size(300), pilot_size(20)
        (1000, 50, 5)

    Raises:
        InputError: if there are fewer than 2 runs, which cannot be split.
    """
    integer_at_least(2, runs=runs)
    return max(1, runs // 10, min(50, runs // 4))


def _kept(scores: Both, x: Floats, x_prime: Floats) -> Both:
    """Some scores to remember, about ``KEPT`` a side."""
    if scores[0].size >= KEPT:
        return scores
    return np.concatenate([scores[0], x]), np.concatenate([scores[1], x_prime])


RARE_SHARE = 0.1
"""Of the error rate of a point, what goes to a rare event where there is one."""
HELD_SHARE = 0.02
"""And what goes to each event that an output holds a value of one side alone."""
RARE_PILOT = 1_000
"""Runs a side from which on a pilot can show one."""


@dataclass
class Arm:
    """An event that takes a share of the error rate of a point, and how often it happened.

    Attributes:
        event: fixed before the runs that are counted.
        share: of the error rate.
        score: place of the score that the event is of.
        told: says of the event what it is, if it can.
        label: in the details of a record.
        counts: so far; None before the first run.
    """

    event: Event
    share: float = 1.0
    score: int = 0
    told: Words | None = None
    label: str = "rare"
    counts: PairCounts | None = None
    _bounds: dict[tuple[PairCounts, float, float], float] = field(default_factory=dict)

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Count the event in rows of scores, shape (n, scores)."""
        old = (0, 0, 0, 0) if self.counts is None else astuple(self.counts)
        new = astuple(self.event.count(x[:, self.score], x_prime[:, self.score]))
        self.counts = PairCounts(*map(sum, zip(old, new, strict=True)))

    def bound(self, delta: float, error: float) -> float:
        """Exact lower bound on ε at the event's share of an error; 0 before the first run."""
        if self.counts is None:
            return 0.0
        key = self.counts, delta, error
        if key not in self._bounds:
            self._bounds[key] = joint_lower_bound(self.counts, delta, 1 - self.share * error)
        return self._bounds[key]

    def details(self) -> dict[str, Any]:
        """Event, direction and counts."""
        return {
            "direction": self.event.direction.value,
            "event": self.event.to_dict(),
            "counts": None if self.counts is None else self.counts.to_dict(),
        }


class PointNull:
    """The exact joint test of events on a number of runs fixed in advance.

    Args:
        claim: (ε, δ).
        event: that is tested.
        further: others, each with a share of the error rate; the event has the rest.
        confidence: at which the event is told that has the largest bound.
        untested: an event that is counted alone, and no evidence.

    Attributes:
        scores: of both sides, of some of the runs, for forecasts.
    """

    def __init__(
        self,
        claim: Claim,
        event: Event,
        further: Sequence[Arm] = (),
        confidence: float = 0.95,
        untested: Arm | None = None,
    ) -> None:
        self.share = 1 - math.fsum(each.share for each in further)
        self._main, self._further, self.untested = Arm(event, self.share), further, untested
        self.scores: Both = (np.empty(0), np.empty(0))
        self._delta, self._confidence = claim.delta, confidence

    @property
    def event(self) -> Event:
        """The event that has most of the error rate."""
        return self._main.event

    @property
    def counts(self) -> PairCounts | None:
        """Those of this event so far."""
        return self._main.counts

    @property
    def runs(self) -> int:
        """Runs a side so far."""
        return 0 if self.counts is None else self.counts.runs

    def update(self, x: Floats, x_prime: Floats) -> None:
        """Count the events in scores, shape (n,) or (n, scores); keep some for forecasts."""
        x, x_prime = (side.reshape(len(side), -1) for side in (x, x_prime))
        self.scores = _kept(self.scores, x[:, 0], x_prime[:, 0])
        for arm in [*self._arms, *filter(None, [self.untested])]:
            arm.update(x, x_prime)

    def lower_bound(self, confidence: float) -> float:
        """Exact lower bound, the largest of the events'; 0 before the first run."""
        return max(self._bound(arm, confidence) for arm in self._arms)

    def _bound(self, arm: Arm, confidence: float) -> float:
        error = round(1 - confidence, 12) or 1 - confidence  # .05, not .05 and a rounding
        return arm.bound(self._delta, error)

    @property
    def _arms(self) -> list[Arm]:
        return [self._main, *self._further]

    @property
    def decisive(self) -> Arm:
        """The event of the largest bound."""
        return max(self._arms, key=lambda arm: self._bound(arm, self._confidence))

    def event_in_words(self, name: str, told: Words | None = None) -> str:
        """The event, and under which neighbour it is the likelier one.

        Args:
            name: says what a score is.
            told: says of an event what it is, if it can.
        """
        decisive = self.decisive
        event, told = decisive.event, decisive.told or told
        if decisive is self._main and self.is_certain:
            return "none: nothing that was looked at tells the neighbours apart"
        words, _, _ = event.describe().rpartition(" (")
        shown = (told and told(event)) or words.replace("score", name)
        return f"{shown}, likelier under {event.direction.sides[0]}"

    @property
    def is_certain(self) -> bool:
        """Whether the event happened in every run on both sides, so that it tests nothing."""
        counts = self.counts
        if counts is None:
            return False
        return (counts.hits, counts.other_hits) == (counts.runs, counts.other_runs)

    def details(self) -> dict[str, Any]:
        """Event, direction and counts, and those of the other events."""
        further = {each.label: each.details() for each in self._further}
        known = {"test": "exact joint test", "test_runs": self.runs}
        return further | known | self._main.details()


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
        """Bet on further pairs, by the first of their scores."""
        x, x_prime = (side.reshape(len(side), -1)[:, 0] for side in (x, x_prime))
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


class TooFewRunsError(InputError):
    """No outputs whatever could refute the claim with so few runs."""


_MOST_RUNS = 10**7
_STEPS = 64
_NEVER = 2**63  # e^30 runs and more


def require_enough_runs(
    claim: Claim,
    runs: int,
    test_runs: Callable[[int], int],
    error: float,
    curve: CurveNull | RatesNull | None,
) -> None:
    """Refuse an audit that could not refute the claim whatever it saw.

    Args:
        claim: under test.
        runs: runs a side, all stages.
        test_runs: how many of so many runs (at least 2) the joint test sees.
        error: of the joint test, 0 where it decides nothing.
        curve: an unused test of the claimed curve, if there is one; it is used up.

    Raises:
        TooFewRunsError: saying how many runs are needed.
    """
    possible = error > 0 and claim.epsilon <= 30
    left = 1 - 2 * HELD_SHARE
    fewest = fewest_runs(claim.epsilon, claim.delta, left * error) if possible else _NEVER
    if RARE_PILOT <= fewest < _NEVER:
        fewest = fewest_runs(claim.epsilon, claim.delta, (left - RARE_SHARE) * error)
    needed = _runs_in_all(fewest, test_runs) if fewest < _NEVER else _NEVER
    if runs >= needed:
        return
    if curve is not None:
        while not curve.refuted and curve.pairs < _MOST_RUNS and curve.pairs < needed:
            more = max(64, curve.pairs // 4)
            curve.update(np.ones(more), np.zeros(more))
        needed = min(needed, curve.pairs) if curve.refuted else needed
    if runs < needed:
        remedy = (
            f"at least {needed} are needed, so give more (a smaller epsilon needs fewer, but "
            "refuting it says nothing about this claim)"
            if needed < _NEVER
            else "no larger number of runs could either (a smaller epsilon could be tested, but "
            "refuting it says nothing about this claim)"
        )
        raise TooFewRunsError(
            f"runs is {runs}; so few cannot refute {claim}, however different the outputs are: "
            f"{remedy}."
        )


def _runs_in_all(fewest: int, test_runs: Callable[[int], int]) -> int:
    """The least number of runs from which on at least ``fewest`` are always left for the test."""
    low, high = 1, max(2, fewest)
    while test_runs(high) < fewest:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test_runs(middle) >= fewest else (middle, high)
    # A pilot that grows in steps takes a few test runs back, so the last shortage counts.
    nearby = range(high + _STEPS, max(2, high) - 1, -1)
    short = (runs for runs in nearby if test_runs(runs) < fewest)
    return next(short, high - 1) + 1


CURVE_SHARE = 0.9
"""Share of the error rate that goes to the test of the whole curve, where there is one."""

LEARNING = 2.5
"""How many times larger a pilot is on which a score is learned as well."""

Curve: TypeAlias = Callable[[Any], Any]
"""Claimed δ as a function of an array of ε."""


@dataclass(frozen=True)
class Design:
    """The decisions before the first run.

    Attributes:
        claim: (ε, δ) under test.
        confidence: of the lower bound and of the verdict.
        curve: the claimed δ(ε), where more is claimed than one point.
        scores: frozen ones, of which the pilot picks one.
        learner: gives further scores on the pilot; None for none.
        stop_early: whether the audit ends at the refutation.
    """

    claim: Claim
    confidence: float
    curve: Curve | None
    scores: tuple[Score, ...]
    learner: Learner | None
    stop_early: bool

    @property
    def error(self) -> float:
        """Chance of refuting a true claim."""
        return 1 - self.confidence

    @property
    def curve_error(self) -> float:
        """Of this, the share of the test of the whole curve."""
        if self.curve is None:
            return 0.0
        # Stopping early, both tests are of the same kind, and the curve contains the point.
        return self.error * (1.0 if self.stop_early else CURVE_SHARE)

    @property
    def point_error(self) -> float:
        """And that of the test of (ε, δ) alone."""
        return self.error - self.curve_error

    @property
    def encodable(self) -> bool:
        """Whether outputs may be encoded, as no score that is given takes plain numbers alone."""
        return len(self.own) == len(self.scores) and self.learner is learn_scores

    @property
    def own(self) -> tuple[OutputScore, ...]:
        """The scores that take outputs of any kind."""
        return tuple(each for each in self.scores if isinstance(each, OutputScore))

    def point_refutes(self, point: Null) -> bool:
        """Tell whether the test of (ε, δ) alone refutes at its share."""
        if self.point_error <= 0:
            return False
        return point.lower_bound(1 - self.point_error) > self.claim.epsilon

    def curve_null(self) -> CurveNull | RatesNull | None:
        """A new test of the whole curve, where there is one; of rates at the end of all runs."""
        if self.curve is None:
            return None
        rates = None if self.stop_early else getattr(self.curve, "rates", None)
        return (
            CurveNull(self.curve, self.curve_error)
            if rates is None
            else RatesNull(rates, self.curve_error)
        )

    def pilot(self, shape: tuple[int, ...], runs: int) -> int:
        """Of ``runs`` a side, those on which event (and, for arrays, score) are chosen.

        0 where the audit may stop early and nothing is to be learned: a sequential test can begin
        with the first run.
        """
        arrays = math.prod(shape) > 1
        if self.stop_early and (len(self.scores) > len(self.own) or not arrays):
            return 0
        plain = pilot_size(runs)
        return round(LEARNING * plain) if self.learner is not None and arrays else plain

    def not_learned(self, shape: tuple[int, ...]) -> str:
        """Tell why no classifier was trained, where one would have been; empty where one was."""
        if self.learner is not learn_scores or math.prod(shape) == 1:
            return ""
        why = why_none_is_learned()
        return "" if why is None else f"No score was learned: {why}"


Given: TypeAlias = Score | Callable[[Any], Any]
"""A score that is given: of many outputs, or a plain function of one."""


def score_tuple(score: Given | Sequence[Given] | None) -> tuple[Score, ...]:
    """The given scores as a tuple: none, one, or several."""
    given = () if score is None else (score,) if callable(score) else score
    return tuple(each if isinstance(each, Score) else OutputScore(each) for each in given)


def learner_for(learn: bool | Learner | None, scores: Sequence[Score]) -> Learner | None:
    """Return what learns scores; by default dpaudit's own where no score takes plain numbers."""
    if callable(learn):
        return learn
    own = all(isinstance(each, OutputScore) for each in scores)
    return learn_scores if learn or (learn is None and own) else None
