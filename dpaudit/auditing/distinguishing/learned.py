"""Scores that are learned on a pilot, and the choice among candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.scores import AtomScore, Identity, Score
from dpaudit.auditing.evidence.events import choose_event, expected_lower_bound
from dpaudit.auditing.evidence.types import Event
from dpaudit.errors import InputError

__all__ = ["Choice", "LearnedScore", "choose_score", "first_scores", "score_outputs"]

Floats = NDArray[np.float64]

LARGEST = 1e9  # outputs beyond are as good as infinite for a classifier
BOOSTED_ENTRIES = 64  # gradient boosting is slow on longer outputs
ADVANTAGE = 0.15  # by which the promise of a later score must be better
PILOT_CAUTION = 2.0  # standard errors of the pilot by which its promises are lowered


@dataclass(frozen=True)
class LearnedScore:
    """A classifier of scikit-learn that tells x from x', trained on the pilot and frozen.

    Attributes:
        method: names the classifier.
        classifier: fitted; its log odds are the score.
        spread: robust centre and width of each entry on the pilot.
        squares: whether squares of the entries are features as well.
    """

    method: str
    classifier: Any = field(repr=False)
    spread: tuple[Floats, Floats] = field(repr=False, compare=False)
    squares: bool = True
    name: str = "learned score"

    @classmethod
    def logistic(cls, x: Floats, x_prime: Floats) -> LearnedScore:
        """Logistic regression on the entries and their squares."""
        from sklearn.linear_model import LogisticRegression

        return cls._fitted(
            "learned score (logistic regression)",
            LogisticRegression(C=1.0, max_iter=200),
            x,
            x_prime,
            squares=True,
        )

    @classmethod
    def boosted(cls, x: Floats, x_prime: Floats) -> LearnedScore:
        """Gradient boosting on the entries."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        return cls._fitted(
            "learned score (gradient boosting)",
            HistGradientBoostingClassifier(
                max_iter=60,
                max_leaf_nodes=8,
                learning_rate=0.1,
                early_stopping=False,
                min_samples_leaf=max(5, len(x) // 50),
                random_state=0,
            ),
            x,
            x_prime,
            squares=False,
        )

    @classmethod
    def _fitted(
        cls, method: str, classifier: Any, x: Floats, x_prime: Floats, *, squares: bool
    ) -> LearnedScore:
        flat = _flat(np.concatenate([x, x_prime]))
        centre = np.median(flat, axis=0)
        width = np.median(np.abs(flat - centre), axis=0)
        width = np.where(width > 0, width, np.maximum(np.abs(flat - centre).max(axis=0), 1e-300))
        score = cls(method, classifier, (centre, width), squares)
        labels = np.repeat([1, 0], [len(x), len(x_prime)])
        classifier.fit(score._features(flat), labels)
        return score

    def _features(self, flat: Floats) -> Floats:
        centre, width = self.spread
        scaled = (flat - centre) / width
        if not self.squares:
            return scaled
        # Far outputs say nothing more than "far": unbounded squares would rule the fit.
        limited = np.clip(scaled, -30.0, 30.0)
        return np.hstack([limited, np.square(limited) / 10.0])

    def __call__(self, outputs: Floats) -> Floats:
        """Log odds of x for each output, shape (n,)."""
        odds: Floats = self.classifier.decision_function(self._features(_flat(outputs)))
        return odds


def _flat(outputs: Floats) -> Floats:
    """Outputs as rows of moderate numbers."""
    return np.clip(outputs.reshape(len(outputs), -1), -LARGEST, LARGEST)


def score_outputs(score: Score, outputs: Floats) -> Floats:
    """The scores of outputs, checked.

    Raises:
        InputError: if they are not one number (not NaN) for each output.
    """
    scores = np.asarray(score(outputs), dtype=np.float64)
    if scores.shape != (len(outputs),) or np.isnan(scores).any():
        raise InputError(
            f"{score.method} gave scores of shape {scores.shape}; it must give one number, not "
            f"NaN, for each of {len(outputs)} outputs."
        )
    return scores


@dataclass(frozen=True)
class Choice:
    """What a pilot decides.

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
    learn: bool = True,
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
        learn: whether learned scores are candidates.
    """
    half = len(x) // 2
    held = x[half:], x_prime[half:]
    chosen: Choice | None = None
    learned = _trained(x[:half], x_prime[:half], vectors=not _scalar(x)) if learn and half else ()
    for score in (*fixed, *learned):
        # A score that needed no training may be judged on the whole pilot.
        pilot = (x, x_prime) if score in fixed or not half else held
        scores = score_outputs(score, pilot[0]), score_outputs(score, pilot[1])
        event = choose_event(*scores, delta, test_runs=test_runs, confidence=confidence)
        promise = _promise(event, scores, delta, test_runs, confidence)
        if chosen is None or promise > chosen.promise + ADVANTAGE:
            chosen = Choice(score, event, promise, pilot)
    if chosen is None:
        raise InputError("there is no score to choose from; give one, or let one be learned.")
    return chosen


def _scalar(outputs: Floats) -> bool:
    return outputs[:1].size == 1


def _trained(x: Floats, x_prime: Floats, *, vectors: bool) -> Iterator[Score]:
    atoms = len(np.unique(np.concatenate([x, x_prime]).reshape(2 * len(x), -1), axis=0))
    if atoms <= max(12, len(x) // 8):
        yield AtomScore.fit(x, x_prime)
    if vectors:
        yield LearnedScore.logistic(x, x_prime)
        if x[:1].size <= BOOSTED_ENTRIES and len(x) >= 100:
            yield LearnedScore.boosted(x, x_prime)


def first_scores(outputs: Floats) -> list[Score]:
    """The scores that need no training, for outputs of this shape."""
    return [Identity()] if _scalar(outputs) else []


def _promise(
    event: Event, scores: Sequence[Floats], delta: float, test_runs: int, confidence: float
) -> float:
    """The bound to be expected from an event, lowered by the pilot's own uncertainty."""
    from scipy.special import ndtri

    counts = event.count(scores[0], scores[1])
    p = (counts.hits + 0.5) / (counts.runs + 1.0)
    q = (counts.other_hits + 0.5) / (counts.other_runs + 1.0)
    margin = float(ndtri(confidence)) / math.sqrt(test_runs) + PILOT_CAUTION / math.sqrt(
        counts.runs
    )
    return float(expected_lower_bound(p, q, delta, max(0.0, margin)))
