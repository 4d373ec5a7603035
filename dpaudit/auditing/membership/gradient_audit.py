"""Auditing DP-SGD by a gradient canary, on simulated or on real transcripts."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.auditing.distinguishing.blackbox import OneByOne, preflight
from dpaudit.auditing.distinguishing.engine import CURVE_SHARE
from dpaudit.auditing.distinguishing.experiment import Experiment, Release, Stage
from dpaudit.auditing.distinguishing.trials import Execution, Progress, Runner
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.nuisance import clopper_pearson
from dpaudit.auditing.evidence.one_run_families import (
    CurveFamily,
    Floats,
    Least,
    largest_refuted,
    scaled_family,
)
from dpaudit.auditing.evidence.types import Event, PairCounts
from dpaudit.auditing.membership.claims import Tested, bound_as_json, require_family, tested
from dpaudit.auditing.membership.gradients import GradientCanary
from dpaudit.auditing.membership.roc import Roc
from dpaudit.certificate import AuditRecord
from dpaudit.plan import Plan
from dpaudit.project import AuditPair

__all__ = ["audit_gradient_canary"]

_PAIR = AuditPair(1.0, 0.0, "a gradient canary is among the examples, or not")
_MOST_DRAWS = 20_000_000
_FEWEST_RUNS = 100
_FEW, _MANY = 20_000, 200_000  # simulated runs
_EXPECTED_ALARMS = np.array([1.0, 2, 3, 5, 8, 12, 20, 40, 100, 400])
_LACKS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75)
_DEVIATIONS = 5.0  # standard errors from which noise is not as declared
_LEAST_NOISE = 1e-6  # of the declared
_SHARES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])


def audit_gradient_canary(
    plan: Plan,
    *,
    delta: float,
    epsilon: float | None = None,
    runs: int = 10_000,
    release: Release | None = None,
    confidence: float = 0.95,
    family: CurveFamily | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> AuditRecord:
    """Attack the noisy gradients of DP-SGD with a Dirac canary.

    Both events that are tested are chosen on simulated transcripts, so that no run is lost to a
    choice. Of a given release a tenth of the runs is a pilot, which shows the size of its noise;
    where that is not as declared, score and events are chosen for what it is.

    ``epsilon_lower`` supposes nothing about the training. ``details["family"]`` holds a second
    bound, much sharper where δ is small: the largest ε of all curves in a family that the same runs
    refute. It is a bound on ε if the true curve is in the family; by default, if everything but the
    amount of noise is as declared. Either bound and the verdict each hold at ``confidence``.

    Args:
        plan: the declared training; see :meth:`GradientCanary.of`.
        delta: δ of the claim.
        epsilon: claimed ε; what the plan proves where not given. A claim that is tighter than the
            plan is tested together with the plan's curve, a looser one alone.
        runs: transcripts with the canary, and as many without, at least 100.
        release: ``release(present, size, rng)`` trains ``size`` times, with the canary among the
            examples if ``present`` is 1.0 and without it if 0.0, and gives the projected gradients
            in units of the clip norm, shape (size, steps), of the canary's own group of units if
            there are several; the declared training, simulated, where not given.
        confidence: of each bound and of the verdict.
        family: curves for the second bound.
        seed: of the whole audit; a fresh one is drawn (and recorded) where not given.
        workers: worker processes; the result does not depend on them.
        progress: told the runs done and planned.

    Raises:
        InputError: if the plan is no DP-SGD, the release fails or gives another shape, or a number
            is out of range.

    Example:
        >>> from dpaudit import AddRemove, Gaussian, Invocation, PrivacyUnit, TrustModel
        >>> from dpaudit.plan.sampling import PoissonSampling
        >>> steps = Invocation(
        ...     Gaussian(2.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=10,
        ...     sampling=PoissonSampling(0.2),
        ... )
        >>> too_little = GradientCanary.of(Plan.of(steps)).simulate(strength=2.0)
        >>> record = audit_gradient_canary(
        ...     Plan.of(steps), delta=1e-5, release=too_little, runs=2000, seed=0
        ... )
        >>> record.refuted, 1.5 < record.details["family"]["strength"] < 2
        (True, True)
    """
    canary = GradientCanary.of(plan)
    null = tested(epsilon, delta, plan)
    family = scaled_family(plan) if family is None else require_family(family)
    runs = validate.integer_at_least(_FEWEST_RUNS, runs=runs)
    confidence = validate.open_fraction(confidence=confidence)
    seed = secrets.randbits(48) if seed is None else validate.integer_at_least(0, seed=seed)
    experiment = Experiment(release or canary.simulate(), _PAIR, seed)
    pilot = 0
    if release is not None:
        pilot = pilot_size(runs)
        if preflight(experiment).repeats:
            experiment = replace(experiment, release=OneByOne(release))
    runner = Runner(experiment, Execution(workers, progress=progress), runs)
    seen = canary if release is None else _as_seen(canary, runner.whole(Stage.PILOT, pilot)[1])
    design = _Design(canary, seen, null, runs - pilot, pilot, confidence, seed)
    parts = list(runner.stage(Stage.TEST, design.runs, seen))
    x, x_prime = (np.concatenate(side) for side in zip(*parts, strict=True))
    return _record(design, x, x_prime, family)


def _as_seen(canary: GradientCanary, absent: Floats) -> GradientCanary:
    """The canary with the noise that transcripts without it show, if it is not the declared."""
    canary(absent)  # refuses a wrong number of steps
    size = math.sqrt(float(np.mean(np.square(absent / np.array(canary.noises)))))
    if abs(size - 1) <= _DEVIATIONS / math.sqrt(2 * absent.size):
        return canary
    return canary.with_noise_over(1 / min(max(size, _LEAST_NOISE), 1 / _LEAST_NOISE))


@dataclass(frozen=True)
class _Design:
    """What is decided without a look at the runs under test."""

    declared: GradientCanary
    canary: GradientCanary
    null: Tested
    runs: int
    pilot: int
    confidence: float
    seed: int
    most: int = _MANY  # runs of a simulated sample

    @property
    def error(self) -> float:
        return 1.0 - self.confidence

    @cached_property
    def sample(self) -> tuple[Floats, Floats]:
        """Sorted scores of simulated trainings like those under test; never evidence."""
        wanted = min(self.most, max(_FEW, 10 * self.runs))
        size = max(1000, min(wanted, _MOST_DRAWS // self.canary.steps))
        experiment = Experiment(self.canary.simulate(), _PAIR, self.seed)
        parts = list(Runner(experiment, Execution(), size).stage(Stage.SEARCH, size, self.canary))
        x, x_prime = (np.sort(np.concatenate(side)) for side in zip(*parts, strict=True))
        return x, x_prime

    @cached_property
    def tail(self) -> Event:
        """The event that promises the largest bound at δ."""
        shares = _EXPECTED_ALARMS / self.runs
        thresholds = self._thresholds(shares[shares < 1])
        bounds = [
            joint_lower_bound(self._expected(each), self.null.claim.delta, self.confidence).epsilon
            for each in thresholds
        ]
        return Event(lower=float(thresholds[int(np.argmax(bounds))]))

    @cached_property
    def middle(self) -> Event:
        """The event that tells best how much noise there is."""
        thresholds = self._thresholds(_SHARES)

        def separation(threshold: float) -> float:
            from scipy.special import ndtri

            low, high = _ends(self._expected(threshold), self.error)
            return float(ndtri(low) - ndtri(high))

        return Event(lower=float(max(thresholds, key=separation)))

    def _thresholds(self, shares: Floats) -> Floats:
        """Scores that such shares of transcripts without the canary exceed."""
        x_prime = self.sample[1]
        places = np.clip(x_prime.size - np.rint(shares * x_prime.size), 0, x_prime.size - 1)
        values, times = np.unique(x_prime[places.astype(int)], return_counts=True)
        # Where many scores are equal, the next event leaves all of them out.
        return np.union1d(values, np.nextafter(values[times > 1], np.inf))

    def _expected(self, threshold: float) -> PairCounts:
        p, q = (1 - np.searchsorted(side, threshold) / side.size for side in self.sample)
        return PairCounts(
            int(np.floor(p * self.runs)), self.runs, int(np.ceil(q * self.runs)), self.runs
        )

    def by_curve(self, middle: PairCounts) -> bool:
        """Whether such counts of the middle event refute the curve, at its share of the error."""
        least = self.null.least
        return least is not None and curve_refuted(middle, least, self.error * CURVE_SHARE)

    def by_point(self, tail: PairCounts) -> bool:
        """Whether such counts of the tail event refute (ε, δ), at the rest of the error."""
        claim = self.null.claim
        error = self.error * (1.0 if self.null.least is None else 1.0 - CURVE_SHARE)
        return joint_lower_bound(tail, claim.delta, 1.0 - error).epsilon > claim.epsilon

    def would_find(self, strength: float) -> bool:
        """Whether counts at unfavourable 5 % quantiles refute, with the noise over ``strength``."""
        from scipy.stats import binom

        found = replace(self, canary=self.declared.with_noise_over(strength), most=_FEW)

        def unlucky(event: Event) -> PairCounts:
            p, q = (1 - np.searchsorted(side, event.lower) / side.size for side in found.sample)
            hits, others = binom.ppf(0.05, self.runs, p), binom.ppf(0.95, self.runs, q)
            return PairCounts(int(hits), self.runs, int(others), self.runs)

        if self.null.least is not None:
            by_curve = self.by_curve(unlucky(found.middle))
            # Of a claim that the curve implies, the point alone hardly ever shows more.
            if by_curve or not self.null.tighter:
                return by_curve
        return self.by_point(unlucky(found.tail))


def _ends(counts: PairCounts, error: float) -> tuple[float, float]:
    """Lower end for P(S) and upper end for Q(S), which hold together but for ``error``."""
    low, _ = clopper_pearson(counts.hits, counts.runs, error)
    _, high = clopper_pearson(counts.other_hits, counts.other_runs, error)
    return low, high


def curve_refuted(counts: PairCounts, least: Least, error: float) -> bool:
    """Whether an event fixed in advance was too frequent, beside the other side, for a curve."""
    low, high = _ends(counts, error)
    return bool(least(np.array([low]))[0] > high)


def _record(design: _Design, x: Floats, x_prime: Floats, family: CurveFamily) -> AuditRecord:
    tail, middle = (event.count(x, x_prime) for event in (design.tail, design.middle))
    null, error = design.null, design.error
    by_curve = design.by_curve(middle)
    refuted = by_curve or design.by_point(tail)
    lower = joint_lower_bound(tail, null.claim.delta, design.confidence).epsilon
    strength = largest_refuted(family, lambda least: curve_refuted(middle, least, error))
    decisive, counts = (design.middle, middle) if by_curve else (design.tail, tail)
    scores = np.concatenate([x, x_prime])
    members = np.arange(scores.size) < x.size
    details: dict[str, Any] = {
        "test": "exact joint test",
        "null": null.words,
        "steps": design.canary.steps,
        "pilot_runs": design.pilot,
        "counts": tail.to_dict(),
        "curve_counts": middle.to_dict(),
        "curve_event": design.middle.describe(),
        "family": {
            "assumption": family.assumption,
            "strength": strength,
            "epsilon_lower": bound_as_json(family.epsilon(strength, null.claim.delta)),
        },
    }
    words, _, _ = decisive.describe().rpartition(" (")
    return AuditRecord(
        refuted=refuted,
        method=design.canary.method,
        claim_epsilon=null.claim.epsilon,
        delta=null.claim.delta,
        # Beside a curve (ε, δ) has a share of the error: at that, no more than this is shown.
        epsilon_lower=lower if refuted else min(lower, null.claim.epsilon),
        confidence=design.confidence,
        runs=design.runs + design.pilot,
        event=(
            f"{words.replace('score', design.canary.name)}: {counts.hits} times with the canary, "
            f"{counts.other_hits} without"
        ),
        seed=design.seed,
        pair={"x": "the canary is among the examples", "x_prime": "it is not"},
        power="" if refuted else _power(design),
        details=details | Roc.of(scores, members).details(),
    )


def _power(design: _Design) -> str:
    """The least lack of noise that would be found; a larger one is found if a smaller one is."""
    low, high = -1, len(_LACKS)
    while high - low > 1:
        middle = (low + high) // 2
        found = design.would_find(1 / (1 - _LACKS[middle]))
        low, high = (low, middle) if found else (middle, high)
    if high == len(_LACKS):
        return "Even a quarter of the declared noise would be missed; more runs are needed."
    return (
        f"Noise {100 * _LACKS[high]:.0f} % below the declared would have been refuted with "
        "probability 0.9."
    )
