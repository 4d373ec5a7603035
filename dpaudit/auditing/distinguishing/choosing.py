"""The choice among scores, on a pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from dpaudit.auditing.distinguishing.learned import Learner, learn_scores, why_none_is_learned
from dpaudit.auditing.distinguishing.scores import (
    Identity,
    LinearScore,
    Score,
    is_scalar,
    score_outputs,
)
from dpaudit.auditing.distinguishing.screening import ColumnScore
from dpaudit.auditing.evidence.events import choose_event, expected_lower_bound
from dpaudit.auditing.evidence.types import Event
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats

ADVANTAGE = 0.15  # by which the promise of a later score must be better
MOST_ENTRIES = 64  # of an array that are scores of their own
PILOT_CAUTION = 2.0  # standard errors of the pilot by which its promises are lowered


def first_scores(outputs: Floats) -> list[Score]:
    """The scores that need no training, for outputs of this shape (n, …).

    Of numbers it is the number itself. Of arrays there is none as a rule, as those that are learned
    tell more; where no classifier can be trained, sum and entries take their place.
    """
    if is_scalar(outputs):
        return [Identity()]
    return [] if why_none_is_learned() is None else _entry_scores(outputs)


def _entry_scores(outputs: Floats) -> list[Score]:
    """The sum of the entries, and each of the first ``MOST_ENTRIES`` of them, as scores."""
    size = outputs[:1].size
    places = range(min(size, MOST_ENTRIES))
    single = [ColumnScore(place, f"entry {place} of the output") for place in places]
    whole = LinearScore(
        (1.0,) * size, name="sum of the output", method="black-box, threshold on the sum"
    )
    return [whole, *single]


@dataclass(frozen=True, eq=False)
class Choice:
    """The decision of a pilot.

    Attributes:
        score: to be used on fresh runs.
        event: of this score, to be tested on fresh runs.
        promise: the lower bound to be expected; a forecast for ranking.
        judged_on: the outputs of the pilot that the score was not trained on.
    """

    score: Score
    event: Event
    promise: float
    judged_on: tuple[Floats, Floats] = field(repr=False)


def choose_score(
    fixed: Sequence[Score],
    x: Floats,
    x_prime: Floats,
    delta: float,
    *,
    test_runs: int,
    confidence: float,
    learner: Learner | None = learn_scores,
) -> Choice:
    """The score and event that promise the largest lower bound on fresh runs.

    Half of the pilot trains the learned scores, the other half compares all of them; the event of
    the chosen score is then picked on the whole pilot (for a learned score on the half that it was
    not trained on). An earlier score wins ties.

    Args:
        fixed: scores that need no training, preferred in this order.
        x: pilot outputs on x, shape (n, …).
        x_prime: pilot outputs on x', shape (n, …).
        delta: at which ε will be bounded.
        test_runs: fresh runs a side that will follow.
        confidence: of the test that will follow.
        learner: gives further scores, learned on half of the pilot; None for none.

    Raises:
        InputError: if there is no score at all, or one gives no number for an output.
    """
    half = len(x) // 2
    held = x[half:], x_prime[half:]
    chosen: Choice | None = None
    learned = learner(x[:half], x_prime[:half]) if learner is not None and half else ()
    # A score that needed no training may be judged on the whole pilot.
    for score, pilot in chain(
        ((each, (x, x_prime)) for each in fixed), ((each, held) for each in learned)
    ):
        scores = score_outputs(score, pilot[0]), score_outputs(score, pilot[1])
        event = choose_event(*scores, delta, test_runs=test_runs, confidence=confidence)
        promise = _expected_bound(event, scores, delta, test_runs, confidence)
        if chosen is None or promise > chosen.promise + ADVANTAGE:
            chosen = Choice(score, event, promise, pilot)
    if chosen is None:
        raise InputError("there is no score to choose from; give one, or let one be learned.")
    return chosen


def _expected_bound(
    event: Event, scores: Sequence[Floats], delta: float, test_runs: int, confidence: float
) -> float:
    """The bound to be expected from an event, lowered by the pilot's own uncertainty."""
    from scipy.special import ndtri

    counts = event.count(scores[0], scores[1])
    p, q = counts.shrunk
    margin = float(ndtri(confidence)) / math.sqrt(test_runs) + PILOT_CAUTION / math.sqrt(
        counts.runs
    )
    return float(expected_lower_bound(p, q, delta, max(0.0, margin)))
