"""Which score an audit uses: those that are learned on a pilot, and the choice among all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.scores import (
    AtomScore,
    ColumnScore,
    Identity,
    LinearScore,
    MeansScore,
    Score,
    differences,
    is_scalar,
    score_outputs,
    together,
)
from dpaudit.auditing.evidence.events import Event, choose_event, expected_lower_bound
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.optional_import import optional_import, require
from dpaudit.mechanisms.pairs import Floats

Learner: TypeAlias = Callable[[Floats, Floats], Iterable[Score]]
"""Scores that are learned on outputs on x and on x', each of shape (n, …)."""

_LEARNED = "a learned score of arrays"
LARGEST = 1e9  # outputs beyond are as good as infinite for a classifier
BOOSTED_ENTRIES = 64  # gradient boosting is slow on longer outputs, and takes the clearest
SINGLE = 3  # of these that are scores of their own


def learn_scores(x: Floats, x_prime: Floats) -> Iterator[Score]:
    """The scores that dpaudit learns: of outputs that repeat, and by classifiers for arrays.

    Without scikit-learn no classifier is trained, nor where one entry alone varies.

    Args:
        x: outputs on x, shape (n, …).
        x_prime: as many on x'.
    """
    atoms = len(np.unique(np.concatenate([x, x_prime]).reshape(2 * len(x), -1), axis=0))
    if atoms <= max(12, len(x) // 8):
        yield AtomScore.fit(x, x_prime)
    varied = _varied(x, x_prime)
    if len(varied) == 1 and not is_scalar(x):
        yield ColumnScore(int(varied[0]), f"entry {varied[0]} of the output")
        return
    can_learn = not is_scalar(x) and why_none_is_learned() is None
    if can_learn:
        yield LearnedScore.logistic(x, x_prime)
    places = None
    if x[:1].size > BOOSTED_ENTRIES:
        yield _sum(x)
        yield MeansScore.fit(x, x_prime)
        told = differences(*(side.reshape(len(side), -1) for side in (x, x_prime)))
        places = np.argsort(-told, kind="stable")[:BOOSTED_ENTRIES]
        yield from (ColumnScore(int(at), f"entry {at} of the output") for at in places[:SINGLE])
    if can_learn and len(x) >= 100:
        yield LearnedScore.boosted(x, x_prime, places)
    yield from together(x, x_prime)


def _varied(x: Floats, x_prime: Floats) -> NDArray[np.intp]:
    """Places of the entries of an output that are not the same in all of them."""
    flat = np.concatenate([x, x_prime]).reshape(len(x) + len(x_prime), -1)
    return np.flatnonzero((flat != flat[0]).any(axis=0))


def why_none_is_learned() -> UnsupportedError | None:
    """Return what keeps classifiers from being trained; None where nothing does."""
    try:  # it is loaded where it is used, which takes a second
        require("learn", "sklearn", what=_LEARNED)
    except UnsupportedError as error:
        return error
    return None


def _sklearn(module: str) -> Any:
    return optional_import("learn", f"sklearn.{module}", what=_LEARNED)


@dataclass(frozen=True)
class LearnedScore:
    """A classifier of scikit-learn that tells x from x', trained on the pilot and frozen.

    Attributes:
        method: names the classifier.
        classifier: fitted; its log odds are the score.
        spread: robust centre and width of each entry on the pilot.
        squares: whether squares of the entries are features as well.
        places: of the entries that are looked at; None for all.
    """

    method: str
    classifier: Any = field(repr=False)
    spread: tuple[Floats, Floats] = field(repr=False, compare=False)
    squares: bool = True
    places: NDArray[np.intp] | None = field(default=None, repr=False, compare=False)
    name: str = "learned score"

    @classmethod
    def logistic(cls, x: Floats, x_prime: Floats) -> LearnedScore:
        """Logistic regression on the entries and their squares."""
        made = _sklearn("linear_model").LogisticRegression(C=1.0, max_iter=200)
        return cls._fitted("logistic regression", made, (x, x_prime), None, squares=True)

    @classmethod
    def boosted(
        cls, x: Floats, x_prime: Floats, places: NDArray[np.intp] | None = None
    ) -> LearnedScore:
        """Gradient boosting on the entries."""
        made = _sklearn("ensemble").HistGradientBoostingClassifier(
            max_iter=60,
            max_leaf_nodes=8,
            learning_rate=0.1,
            early_stopping=False,
            min_samples_leaf=max(5, len(x) // 50),
            random_state=0,
        )
        return cls._fitted("gradient boosting", made, (x, x_prime), places, squares=False)

    @classmethod
    def _fitted(
        cls,
        kind: str,
        classifier: Any,
        sides: tuple[Floats, Floats],
        places: NDArray[np.intp] | None,
        *,
        squares: bool,
    ) -> LearnedScore:
        flat = _flat(np.concatenate(sides), places)
        centre = np.median(flat, axis=0)
        width = np.median(np.abs(flat - centre), axis=0)
        width = np.where(width > 0, width, np.maximum(np.abs(flat - centre).max(axis=0), 1e-300))
        score = cls(f"learned score ({kind})", classifier, (centre, width), squares, places)
        labels = np.repeat([1, 0], [len(side) for side in sides])
        with warnings.catch_warnings():  # a fit that has not converged is a fair score as well
            warnings.simplefilter("ignore")
            classifier.fit(score._features(flat), labels)
        return score

    def _features(self, flat: Floats) -> Floats:
        centre, width = self.spread
        with np.errstate(over="ignore"):
            scaled = np.nan_to_num((flat - centre) / width)
        if not self.squares:
            return scaled
        # Far outputs say nothing more than "far": unbounded squares would rule the fit.
        limited = np.clip(scaled, -30.0, 30.0)
        return np.hstack([limited, np.square(limited) / 10.0])

    def __call__(self, outputs: Floats) -> Floats:
        """Log odds of x for each output, shape (n,)."""
        odds: Floats = self.classifier.decision_function(
            self._features(_flat(outputs, self.places))
        )
        return odds


def _flat(outputs: Floats, places: NDArray[np.intp] | None) -> Floats:
    """Outputs, or these entries of them, as rows of moderate numbers."""
    flat = outputs.reshape(len(outputs), -1)
    return np.clip(flat if places is None else flat[:, places], -LARGEST, LARGEST)


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
    return [_sum(outputs), *single]


def _sum(outputs: Floats) -> LinearScore:
    ones = (1.0,) * outputs[:1].size
    return LinearScore(ones, name="sum of the output", method="black-box, threshold on the sum")


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
        raise InputError("there is no score to choose from; give one, or learn one.")
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
