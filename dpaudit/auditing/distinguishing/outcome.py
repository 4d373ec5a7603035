"""From what the runs of an audit showed to its record."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.design import Design
from dpaudit.auditing.distinguishing.experiment import Experiment
from dpaudit.auditing.distinguishing.forecast import Forecast, power_statement
from dpaudit.auditing.distinguishing.nulls import CurveNull, Null
from dpaudit.auditing.distinguishing.preflight import Preflight
from dpaudit.auditing.distinguishing.rates import RatesNull
from dpaudit.auditing.distinguishing.samples import Sample
from dpaudit.auditing.distinguishing.scores import Identity, Score, WhiteBox
from dpaudit.auditing.evidence.types import Both
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.project.subject import AuditPair


@dataclass(frozen=True)
class Outcome:
    """The results of all runs.

    Attributes:
        score: that told the neighbours apart.
        point: the test of (ε, δ).
        curve: the test of the whole curve, if there was one.
        runs: on each side, all stages.
        pilot: of these, the pilot.
        pilot_outputs: those of the pilot that the score was not trained on, if there was one.
        encoded: whether they are rows that encode outputs of any kind.
    """

    score: Score
    point: Null
    curve: CurveNull | RatesNull | None
    runs: int
    pilot: int
    pilot_outputs: Both | None = None
    encoded: bool = False

    def record(
        self, design: Design, experiment: Experiment, shown: Preflight, method: str | None
    ) -> AuditRecord:
        """The audit as a record."""
        claim, pair = design.claim, experiment.pair
        by_point = design.point_refutes(self.point)
        by_curve = self.curve is not None and self.curve.refuted
        refuted = by_point or by_curve
        lower = self.point.lower_bound(design.confidence)
        if not refuted:
            lower = min(lower, claim.epsilon)
        rejected = [word for word, yes in (("point", by_point), ("curve", by_curve)) if yes]
        name = self.score.name
        if rejected == ["curve"] and self.curve is not None:
            event = self.curve.in_words(name)
        else:
            event = self.point.event_in_words(name, getattr(self.score, "in_words", None))
        details: dict[str, Any] = {
            "score": self.score.method,
            "pilot_runs": self.pilot,
            "deterministic": shown.deterministic,
            "error_rates": {"point": design.point_error},
            "rejected_by": rejected,
            **self.point.details(),
            **facts_of_sides(pair, getattr(self.score, "mechanism", experiment.release)),
        }
        if experiment.own_randomness:
            details["own_randomness"] = "the code draws its own; this audit cannot be replayed"
        if self.curve is not None:
            details["error_rates"]["curve"] = design.curve_error
            details["curve"] = self.curve.details()
        if not_learned := design.not_learned(shown.shape):
            details["not_learned"] = not_learned
        return AuditRecord(
            refuted=refuted,
            method=method or self.score.method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_lower=lower,
            confidence=design.confidence,
            runs=self.runs,
            event=event,
            seed=experiment.seed,
            pair={"x": as_json(pair.x), "x_prime": as_json(pair.x_prime)},
            power="" if refuted else self._power(design),
            details=details,
        )

    def _power(self, design: Design) -> str:
        # Where the score is the output itself, the test runs are a larger sample than the pilot;
        # a declared mechanism draws a sample of its own. Other scores without a pilot have none.
        sampled = isinstance(self.score, Identity | WhiteBox)
        outputs = self.point.scores if sampled else self.pilot_outputs
        if self.encoded or getattr(self.score, "runs_code", False):  # no noise is known to scale
            outputs = None
        forecast = Forecast(
            self.score,
            None if outputs is None else Sample.of(self.score, outputs),
            self.point,
            design,
            self.pilot if self.pilot_outputs is None else len(self.pilot_outputs[0]),
        )
        return power_statement(forecast)


def facts_of_sides(pair: AuditPair, release: Any = None) -> dict[str, bool]:
    """Say in details that the sides of a pair are equal, as data or as the noise meets them."""
    sides = pair.x, pair.x_prime
    prepare = getattr(release, "prepare", None)
    with suppress(InputError, TypeError, ValueError):
        if prepare is not None:
            sides = prepare(sides[0]), prepare(sides[1])
    return {"equals": True} if _alike(*sides) else {}


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two plain values are equal, whatever their types; nothing else is asked."""
    one, other = (
        each.tolist() if isinstance(each, np.ndarray | np.generic) else each
        for each in (one, other)
    )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    plain = all(isinstance(each, Number | str | bytes | Set) for each in (one, other))
    return plain and bool(one == other)


def as_json(value: Any) -> Any:
    """Data as JSON values: arrays as lists, anything foreign by its representation."""
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return repr(value)[:200]
