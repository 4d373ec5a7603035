"""What an audit decides before its first run: its claim, its scores and the shares of its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpaudit.auditing.distinguishing.learned import Learner, learn_scores, why_none_is_learned
from dpaudit.auditing.distinguishing.nulls import CurveNull, Null
from dpaudit.auditing.distinguishing.rates import RatesNull
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.certificate import Claim

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
        """Whether outputs may be encoded, as no score that is given looks at them."""
        return not self.scores and self.learner is learn_scores

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

        None where the audit may stop early and nothing is to be learned: a sequential test can
        begin with the first run.
        """
        arrays = math.prod(shape) > 1
        if self.stop_early and (self.scores or not arrays):
            return 0
        plain = pilot_size(runs)
        return round(LEARNING * plain) if self.learner is not None and arrays else plain

    def not_learned(self, shape: tuple[int, ...]) -> str:
        """Tell why no classifier was trained, where one would have been; empty where one was."""
        if self.learner is not learn_scores or math.prod(shape) == 1:
            return ""
        why = why_none_is_learned()
        return "" if why is None else f"No score was learned: {why}"


def score_tuple(score: Score | Sequence[Score] | None) -> tuple[Score, ...]:
    """The given scores as a tuple: none, one, or several."""
    if score is None:
        return ()
    return (score,) if isinstance(score, Score) else tuple(score)


def learner_for(learn: bool | Learner | None, scores: Sequence[Score]) -> Learner | None:
    """Return what learns scores; by default dpaudit's own learner where there is no score."""
    if callable(learn):
        return learn
    return learn_scores if learn or (learn is None and not scores) else None
