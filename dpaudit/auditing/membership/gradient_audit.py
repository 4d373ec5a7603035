"""Auditing DP-SGD by a gradient canary, on simulated or on real transcripts."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from dpaudit import validate
from dpaudit.auditing.distinguishing.experiment import Experiment, Release, Stage
from dpaudit.auditing.distinguishing.preflight import preflight
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.one_run_families import (
    CurveFamily,
    largest_refuted,
    scaled_family,
)
from dpaudit.auditing.execution import Execution, ExecutionFields
from dpaudit.auditing.membership.claims import bound_as_json, membership_null, require_family
from dpaudit.auditing.membership.gradient_design import (
    PRESENT_OR_ABSENT,
    GradientDesign,
    curve_refuted,
)
from dpaudit.auditing.membership.gradients import GradientCanary
from dpaudit.auditing.membership.roc import Roc
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Plan

NO_LIMIT = Execution(timeout=None)
"""Trainings may take any time."""

_FEWEST_RUNS = 100
_LACKS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75)
_DEVIATIONS = 5.0  # standard errors from which noise is not as declared
_LEAST_NOISE = 1e-6  # of the declared


def audit_gradient_canary(
    plan: Plan,
    *,
    delta: float,
    epsilon: float | None = None,
    release: Release | None = None,
    family: CurveFamily | None = None,
    execution: Execution = NO_LIMIT,
    **fields: Unpack[ExecutionFields],
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
        release: ``release(present, size, rng)`` trains ``size`` times, with the canary among the
            examples if ``present`` is 1.0 and without it if 0.0, and gives the projected gradients
            in units of the clip norm, shape (size, steps), of the canary's own group of units if
            there are several; the declared training, simulated, where not given.
        family: curves for the second bound.
        execution: how many transcripts with the canary, and as many without, at least 100, and how
            they are drawn. By default a training may take any time.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Raises:
        InputError: if the plan is no DP-SGD, the release fails or gives another shape, or a number
            is out of range.

    Example:
        >>> from dpaudit import AddRemove, Gaussian, Invocation, PrivacyUnit, TrustModel
        >>> steps = Invocation(
        ...     Gaussian(4.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=10
        ... )
        >>> too_little = GradientCanary.of(Plan.of(steps)).simulate(strength=2.0)
        >>> record = audit_gradient_canary(
        ...     Plan.of(steps), delta=1e-5, release=too_little, runs=2000, seed=0
        ... )
        >>> record.refuted, 1.5 < record.details["family"]["strength"] < 2
        (True, True)
    """
    execution = execution.updated(fields)
    canary = GradientCanary.of(plan)
    null = membership_null(epsilon, delta, plan)
    family = scaled_family(plan) if family is None else require_family(family)
    runs, pilot = validate.integer_at_least(_FEWEST_RUNS, runs=execution.runs), 0
    seed = execution.known_seed()
    execution = execution.updated({"seed": seed})
    experiment = Experiment.of(release or canary.simulate(), PRESENT_OR_ABSENT, execution)
    if release is not None:
        pilot = pilot_size(runs)
        experiment = replace(experiment, one_by_one=preflight(experiment).repeats)
    identity = {"plan": plan.to_dict(), "seed": seed, "runs": runs, "given": release is not None}
    with experiment.trials(execution, identity) as trials:
        seen = (
            canary
            if release is None
            else _with_observed_noise(canary, trials.whole(Stage.PILOT, pilot)[1])
        )
        x, x_prime = trials.whole(Stage.TEST, runs - pilot, seen)
    design = GradientDesign(canary, seen, null, runs - pilot, pilot, execution.confidence, seed)
    return _record(design, x, x_prime, family)


def _with_observed_noise(canary: GradientCanary, absent: Floats) -> GradientCanary:
    """The canary with the noise that transcripts without it show, if it is not the declared."""
    canary(absent)  # refuses a wrong number of steps
    size = math.sqrt(float(np.mean(np.square(absent / np.array(canary.noises)))))
    if abs(size - 1) <= _DEVIATIONS / math.sqrt(2 * absent.size):
        return canary
    return canary.with_noise_over(1 / min(max(size, _LEAST_NOISE), 1 / _LEAST_NOISE))


def _record(design: GradientDesign, x: Floats, x_prime: Floats, family: CurveFamily) -> AuditRecord:
    tail, middle = (event.count(x, x_prime) for event in (design.tail, design.middle))
    null, error = design.null, design.error
    by_curve = design.by_curve(middle)
    refuted = by_curve or design.by_point(tail)
    lower = joint_lower_bound(tail, null.claim.delta, design.confidence)
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


def _power(design: GradientDesign) -> str:
    """The least lack of noise that would be found; a larger one is found if a smaller one is."""
    found = bisect_left(_LACKS, True, key=lambda lack: design.would_find(1 / (1 - lack)))
    if found == len(_LACKS):
        return "Even a quarter of the declared noise would be missed; more runs are needed."
    return (
        f"Noise {100 * _LACKS[found]:.0f} % below the declared would have been refuted with "
        "probability 0.9."
    )
