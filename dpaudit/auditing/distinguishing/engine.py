"""The audit engine: from a release and two neighbours to an experiment with a stated error rate.

Some runs are a pilot: on them the score, the event and the direction are chosen. Fresh runs then
test that event with one exact joint test, which gives the lower bound on ε. Where the claim is a
whole curve δ(ε), an e-process bets against all of it on the same runs; it takes ``CURVE_SHARE`` of
the error rate and the joint test the rest, so that a true claim is refuted with probability at most
1 − confidence. (Where the audit may stop early, the e-process takes all of it.) The bound itself
holds at the stated confidence; where neither test rejects it is lowered to the claimed ε, so that
bound and verdict never disagree.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.auditing.distinguishing.blackbox import BlackBox, OneByOne, Preflight, preflight
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Release, Side, Stage
from dpaudit.auditing.distinguishing.forecast import (
    Forecast,
    Sample,
    power_statement,
    require_enough_runs,
)
from dpaudit.auditing.distinguishing.learned import choose_score, first_scores, score_outputs
from dpaudit.auditing.distinguishing.nulls import AnytimeNull, CurveNull, Null, PointNull
from dpaudit.auditing.distinguishing.scores import Identity, Score, WhiteBox
from dpaudit.auditing.distinguishing.trials import Both, Execution, Progress, Runner
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.project import AuditPair

__all__ = ["CURVE_SHARE", "audit_release"]

CURVE_SHARE = 0.9
"""Share of the error rate that goes to the test of the whole curve, where there is one."""

LEARNING = 2.5
"""How many times larger a pilot is on which a score is learned as well."""

Curve = Callable[[Any], Any]


@dataclass(frozen=True)
class _Design:
    """What is decided before the first run."""

    claim: Claim
    runs: int
    confidence: float
    curve: Curve | None
    scores: tuple[Score, ...]
    learn: bool
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

    def point_refutes(self, point: Null) -> bool:
        """Whether the test of (ε, δ) alone refutes at its share."""
        if self.point_error <= 0:
            return False
        return point.lower_bound(1 - self.point_error) > self.claim.epsilon

    def pilot(self, shown: Preflight, runs: int) -> int:
        """Of ``runs`` a side, those on which event (and, for arrays, score) are chosen."""
        if _immediate(self, shown):
            return 0
        plain = pilot_size(runs)
        vectors = math.prod(shown.shape) > 1
        return round(LEARNING * plain) if self.learn and vectors else plain

    def curve_null(self) -> CurveNull | None:
        return None if self.curve is None else CurveNull(self.curve, self.curve_error)


def audit_release(
    release: Release,
    pair: AuditPair,
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 10_000,
    confidence: float = 0.95,
    seed: int | None = None,
    curve: Curve | None = None,
    score: Score | Sequence[Score] | None = None,
    learn: bool | None = None,
    method: str | None = None,
    stop_early: bool = False,
    workers: int = 1,
    dask: str | None = None,
    timeout: float | None = 60.0,
    journal: Path | str | None = None,
    progress: Progress | None = None,
) -> AuditRecord:
    """Attack a claim of (ε, δ)-differential privacy on one pair of neighbours.

    A correct mechanism is refuted with probability at most 1 − ``confidence``, in finite samples,
    the choice of event, direction and score included.

    Args:
        release: ``release(data, size, rng)`` gives ``size`` independent outputs, shape (size, …).
        pair: the neighbours, fixed before these runs are drawn.
        epsilon: claimed ε.
        delta: claimed δ.
        runs: runs on each side, the pilot included.
        confidence: of the lower bound and of the verdict.
        seed: of the whole experiment; a fresh one is drawn (and recorded) where not given.
        curve: claimed δ as a function of an array of ε, such as a plan's privacy curve; the claim
            is then this whole curve as well.
        score: a frozen score, or several of which the pilot picks one; without it the output
            itself (numbers), or a score that is learned on the pilot (arrays).
        learn: whether the pilot also learns scores and compares them with the given ones; by
            default only where none is given.
        method: text for the record, in place of the score's own.
        stop_early: stop at the refutation. The bound then comes from an e-process, which may be
            stopped at any time and is less sharp.
        workers: worker processes; the result does not depend on them.
        dask: address of a dask scheduler to run on instead.
        timeout: seconds that one run may take, None for any time.
        journal: file of finished runs; an audit that was killed goes on from it. Needs a seed.
        progress: told the runs done and the runs planned.

    Returns:
        The record, with counts and e-values in ``details``.

    Raises:
        InputError: if the code raises, hangs, returns what cannot be tested or ignores its
            generator, or if ``runs`` are too few to ever refute the claim.
    """
    design = _Design(
        Claim(epsilon, delta),
        validate.integer_at_least(1, runs=runs),
        validate.open_fraction(confidence=confidence),
        curve,
        _as_scores(score),
        score is None if learn is None else learn,
        stop_early,
    )
    limit = None if timeout is None else validate.positive(timeout=timeout)
    if journal is not None:
        seed = validate.integer_at_least(0, seed=seed)
    seed = secrets.randbits(48) if seed is None else validate.integer_at_least(0, seed=seed)
    if isinstance(release, BlackBox):
        release = release.within(limit)
    experiment = Experiment(release, pair, seed, limit)
    shown = preflight(experiment)
    if shown.repeats:
        experiment = replace(experiment, release=OneByOne(release))
    require_enough_runs(
        design.claim,
        design.runs,
        lambda runs: runs - design.pilot(shown, runs),
        design.point_error,
        design.curve_null(),
    )
    pilot = design.pilot(shown, design.runs)
    runner = Runner(experiment, Execution(workers, dask, journal, progress), design.runs)
    with runner.opened(_identity(experiment, design)):
        if pilot == 0:
            found = _sequential(runner, design, experiment)
        else:
            found = _two_stages(runner, design, pilot)
    return found.record(design, experiment, shown, method)


def _as_scores(score: Score | Sequence[Score] | None) -> tuple[Score, ...]:
    if score is None:
        return ()
    return (score,) if isinstance(score, Score) else tuple(score)


def _immediate(design: _Design, shown: Preflight) -> bool:
    """Whether a sequential test can begin with the first run, as nothing is to be learned."""
    return design.stop_early and (bool(design.scores) or math.prod(shown.shape) == 1)


def _identity(experiment: Experiment, design: _Design) -> dict[str, Any]:
    """What determines every run, for the journal."""
    release = experiment.release
    return {
        "release": getattr(release, "__qualname__", type(release).__qualname__),
        "pair": as_json([experiment.pair.x, experiment.pair.x_prime]),
        "seed": experiment.seed,
        "runs": design.runs,
        "claim": design.claim.to_dict(),
        "confidence": design.confidence,
        "scores": [repr(score) for score in design.scores],
        "curve": design.curve is not None,
        "stop_early": design.stop_early,
    }


@dataclass
class _Found:
    """What the runs showed."""

    score: Score
    point: Null
    curve: CurveNull | None
    runs: int
    pilot: int
    pilot_outputs: Both | None = None

    def record(
        self, design: _Design, experiment: Experiment, shown: Preflight, method: str | None
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
        details: dict[str, Any] = {
            "score": self.score.method,
            "pilot_runs": self.pilot,
            "deterministic": shown.deterministic,
            "error_rates": {"point": design.point_error},
            "rejected_by": rejected,
            **self.point.details(),
        }
        if self.curve is not None:
            details["error_rates"]["curve"] = design.curve_error
            details["curve"] = self.curve.details()
        return AuditRecord(
            refuted=refuted,
            method=method or self.score.method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_lower=lower,
            confidence=design.confidence,
            runs=self.runs,
            event=self._event(pair, by_point, by_curve),
            seed=experiment.seed,
            pair={"x": as_json(pair.x), "x_prime": as_json(pair.x_prime)},
            power="" if refuted else self._power(design),
            details=details,
        )

    def _event(self, pair: AuditPair, by_point: bool, by_curve: bool) -> str:
        words = self.point.event_in_words(self.score.name)
        if by_curve and not by_point and self.curve is not None:
            return (
                f"{self.score.name} against the whole curve δ(ε), e-value {self.curve.e_value:.3g}"
            )
        return words

    def _power(self, design: _Design) -> str:
        # Where the score is the output itself, the test runs are a larger sample than the pilot;
        # a declared mechanism draws a sample of its own. Other scores without a pilot have none.
        sampled = isinstance(self.score, Identity | WhiteBox)
        outputs = self.point.scores if sampled else self.pilot_outputs
        forecast = Forecast(
            self.score,
            None if outputs is None else Sample.of(self.score, outputs),
            self.point,
            design.claim,
            design.point_error,
            design.curve,
            design.curve_error,
        )
        return power_statement(forecast)


def _two_stages(runner: Runner, design: _Design, pilot: int) -> _Found:
    """Pilot, choice, test."""
    outputs = runner.whole(Stage.PILOT, pilot)
    fixed = [*design.scores, *(first_scores(outputs[0]) if design.learn else [])]
    test_runs = design.runs - pilot
    curve = design.curve_null()
    if curve is not None and fixed:
        curve.update(*(score_outputs(fixed[0], side) for side in outputs))
    choice = choose_score(
        fixed,
        *outputs,
        design.claim.delta,
        test_runs=test_runs,
        confidence=1 - (design.point_error or design.error),
        learn=design.learn,
    )
    score = choice.score
    if curve is not None and not (fixed and score is fixed[0]):
        curve.change_score()
    point: Null = (
        AnytimeNull(design.claim) if design.stop_early else PointNull(design.claim, choice.event)
    )
    used = _feed(runner, design, score, test_runs, point, curve)
    return _Found(score, point, curve, pilot + used, pilot, choice.judged_on)


def _sequential(runner: Runner, design: _Design, experiment: Experiment) -> _Found:
    """No pilot: the score is fixed, and every run counts from the first."""
    chunk = Chunk(Stage.CHECK, 2, 0, 1)
    score = (*design.scores, *first_scores(experiment.outputs(Side.X, chunk)))[0]
    point, curve = AnytimeNull(design.claim), design.curve_null()
    used = _feed(runner, design, score, design.runs, point, curve)
    return _Found(score, point, curve, used, 0)


def _feed(
    runner: Runner,
    design: _Design,
    score: Score,
    runs: int,
    point: Null,
    curve: CurveNull | None,
) -> int:
    """Test runs, up to ``runs`` or to the refutation; how many were used."""
    used = 0
    for x, x_prime in runner.stage(Stage.TEST, runs, score):
        used += len(x)
        point.update(x, x_prime)
        if curve is not None:
            curve.update(x, x_prime)
        if design.stop_early and (
            (curve is not None and curve.refuted) or design.point_refutes(point)
        ):
            break
    return used


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
