"""Auditing a declared algorithm: its own pairs, its own claim, its own mechanism as the attack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.choosing import learn_scores
from dpaudit.auditing.distinguishing.design import Given, score_tuple
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Stage
from dpaudit.auditing.distinguishing.scores import Score, WhiteBox
from dpaudit.auditing.execution import DEFAULTS, Execution, ExecutionFields
from dpaudit.auditing.subjects.neighbours import candidate_pairs, require_neighbours, search_pairs
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.plan import Plan
from dpaudit.project import AuditPair, Subject

TIGHT = 0.99
"""A plan's curve is what a claim states if at the claimed δ it needs this much of the claimed ε."""


def audit_subject(
    subject: Subject,
    pair: AuditPair | None = None,
    *,
    claim: Claim | None = None,
    score: Given | Sequence[Given] | None = None,
    stop_early: bool = False,
    execution: Execution = DEFAULTS,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack what a subject releases.

    The attack is the likelihood ratio of the declared mechanism where the plan has one invocation,
    and black-box else. Without a pair, those of the subject (or, failing that, candidates from the
    declared sensitivity and relation) are compared on pilots, and the best one is attacked with
    fresh runs; so no error rate is spent on the search.

    Args:
        subject: what is attacked, through its ``audit_release``.
        pair: two neighbours.
        claim: what is tested; the subject's own where not given.
        score: further scores, or functions of one output to a number, among which and its own the
            pilot picks one.
        stop_early: stop at the refutation.
        execution: how many runs are drawn for the attack on the chosen pair, and how.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Raises:
        InputError: if there is no claim or no pair, the pair are no neighbours, or the code cannot
            be audited.
    """
    claim = claim or subject.claim()
    if claim is None:
        name = type(subject).__name__
        raise InputError(f"claim is missing, and {name} states none; give one.")
    execution = execution.updated(fields)
    plan = subject.plan()
    searched = 0
    if pair is None:
        pairs = subject.audit_pairs() or candidate_pairs(plan)
        found = search_pairs(subject.audit_release, pairs, delta=claim.delta, execution=execution)
        execution = execution.updated({"seed": found.seed})
        pair, searched = found.pair, len(pairs)
    elif type(subject).audit_release is Subject.audit_release:
        require_neighbours(plan, pair)
    curve, looser = claimed_curve(plan, claim)
    record = audit_release(
        subject.audit_release,
        pair,
        epsilon=claim.epsilon,
        delta=claim.delta,
        curve=curve,
        score=(*_declared_scores(subject, plan, pair, execution), *score_tuple(score)),
        learn=learn_scores,
        stop_early=stop_early,
        execution=execution,
    )
    details = {**record.details, "null": null(claim, curve), "claim_looser_than_plan": looser}
    details |= {"why_this_pair": pair.why, "pairs_searched": searched}
    if type(subject).audit_release is not Subject.audit_release:
        compared = type(subject).modelled is not Subject.modelled
        known = "that rehearsals compare with the run" if compared else "of the run by its author"
        details["attacked"] = f"audit_release, a model {known}"
    return replace(record, details=details)


def claimed_curve(plan: Plan, claim: Claim) -> tuple[Callable[[ArrayLike], Any] | None, bool]:
    """The plan's curve, unless the claim is looser than what it proves.

    A claim that is looser than its plan may hold although the noise is not as declared; then only
    the claim itself is tested. So is a claim of a risk: its own curve, where it has one.

    Returns:
        The curve or None, and whether the claim is looser than the plan.
    """
    try:
        curve = privacy_curve(plan)
        below = float(curve(np.array([TIGHT * claim.epsilon]))[0])
    except UnsupportedError:
        return claim.curve, False
    looser = below <= claim.delta
    if claim.risk is not None:
        return claim.curve, looser
    return (None, True) if looser else (curve, False)


def null(claim: Claim, curve: object) -> str:
    """Return what an audit of a claim tests, for its record."""
    if curve is None:
        return "(ε, δ) alone"
    if hasattr(curve, "rates"):
        return str(claim)
    return f"the {'plan' if claim.risk is None else 'claim'}'s whole curve δ(ε)"


def _declared_scores(
    subject: Subject, plan: Plan, pair: AuditPair, execution: Execution
) -> tuple[Score, ...]:
    """The declared likelihood ratio, where there is one; a pilot compares it with others.

    A subject may transform the data before its mechanism sees them. Where its outputs then have
    another shape than the data, the density given the data says nothing and is left out.
    """
    if len(plan.invocations) != 1:
        return ()
    mechanism = plan.invocations[0].mechanism
    score = WhiteBox.of(mechanism, pair)
    if score is None:
        return ()
    if type(subject).audit_release is not Subject.audit_release:
        experiment = Experiment.of(subject.audit_release, pair, execution)
        shown, _ = experiment.both(Chunk(Stage.CHECK, 3, 0, 1))  # one run, which tests nothing
        if shown.shape[1:] != np.shape(mechanism.checked(pair.x)):
            return ()
    return (score,)
