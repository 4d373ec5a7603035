"""Scores that are learned on a pilot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.joint_scores import together
from dpaudit.auditing.distinguishing.scores import AtomScore, Score, is_scalar
from dpaudit.auditing.distinguishing.screening import ColumnScore, differences
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.optional_import import optional_import
from dpaudit.mechanisms.pairs import Floats

Learner: TypeAlias = Callable[[Floats, Floats], Iterable[Score]]
"""Scores that are learned on outputs on x and on x', each of shape (n, …)."""

LARGEST = 1e9  # outputs beyond are as good as infinite for a classifier
BOOSTED_ENTRIES = 64  # gradient boosting is slow on longer outputs, and takes the clearest
SINGLE = 3  # of these that are scores of their own


def learn_scores(x: Floats, x_prime: Floats) -> Iterator[Score]:
    """The scores that dpaudit learns: of outputs that repeat, and by classifiers for arrays.

    Without scikit-learn no classifier is trained.

    Args:
        x: outputs on x, shape (n, …).
        x_prime: as many on x'.
    """
    atoms = len(np.unique(np.concatenate([x, x_prime]).reshape(2 * len(x), -1), axis=0))
    if atoms <= max(12, len(x) // 8):
        yield AtomScore.fit(x, x_prime)
    can_learn = not is_scalar(x) and why_none_is_learned() is None
    if can_learn:
        yield LearnedScore.logistic(x, x_prime)
    places = None
    if x[:1].size > BOOSTED_ENTRIES:
        told = differences(*(side.reshape(len(side), -1) for side in (x, x_prime)))
        places = np.argsort(-told, kind="stable")[:BOOSTED_ENTRIES]
        yield from (ColumnScore(int(at), f"entry {at} of the output") for at in places[:SINGLE])
    if can_learn and len(x) >= 100:
        yield LearnedScore.boosted(x, x_prime, places)
    yield from together(x, x_prime)


def why_none_is_learned() -> UnsupportedError | None:
    """Return what keeps classifiers from being trained; None where nothing does."""
    try:
        _sklearn("linear_model")
    except UnsupportedError as error:
        return error
    return None


def _sklearn(module: str) -> Any:
    return optional_import("learn", f"sklearn.{module}", what="a learned score of arrays")


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
        return cls._fitted(
            "learned score (logistic regression)",
            _sklearn("linear_model").LogisticRegression(C=1.0, max_iter=200),
            x,
            x_prime,
            squares=True,
        )

    @classmethod
    def boosted(
        cls, x: Floats, x_prime: Floats, places: NDArray[np.intp] | None = None
    ) -> LearnedScore:
        """Gradient boosting on the entries."""
        return cls._fitted(
            "learned score (gradient boosting)",
            _sklearn("ensemble").HistGradientBoostingClassifier(
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
            places=places,
        )

    @classmethod
    def _fitted(
        cls,
        method: str,
        classifier: Any,
        x: Floats,
        x_prime: Floats,
        *,
        squares: bool,
        places: NDArray[np.intp] | None = None,
    ) -> LearnedScore:
        flat = _flat(np.concatenate([x, x_prime]), places)
        centre = np.median(flat, axis=0)
        width = np.median(np.abs(flat - centre), axis=0)
        width = np.where(width > 0, width, np.maximum(np.abs(flat - centre).max(axis=0), 1e-300))
        score = cls(method, classifier, (centre, width), squares, places)
        labels = np.repeat([1, 0], [len(x), len(x_prime)])
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
