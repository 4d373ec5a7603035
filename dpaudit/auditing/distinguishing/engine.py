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
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from dpaudit.auditing.distinguishing.choosing import (
    Learner,
    choose_score,
    first_scores,
    why_none_is_learned,
)
from dpaudit.auditing.distinguishing.design import (
    HELD_SHARE,
    RARE_PILOT,
    RARE_SHARE,
    AnytimeNull,
    Arm,
    Curve,
    CurveNull,
    Design,
    Given,
    Null,
    PointNull,
    RatesNull,
    learner_for,
    pilot_size,
    require_enough_runs,
    score_tuple,
)
from dpaudit.auditing.distinguishing.event_description import Fields
from dpaudit.auditing.distinguishing.experiment import (
    Chunk,
    Experiment,
    OneSideNotPlainError,
    Release,
    Stage,
    Trials,
)
from dpaudit.auditing.distinguishing.one_sided_values import HeldValues
from dpaudit.auditing.distinguishing.outcome import Outcome, as_json
from dpaudit.auditing.distinguishing.output_facts import Form, digests, forms
from dpaudit.auditing.distinguishing.output_features import Vocabulary, require_answers
from dpaudit.auditing.distinguishing.outputs import BlackBox, NotPlainError, Plain
from dpaudit.auditing.distinguishing.preflight import CHECK_RUNS, batches_are_runs, preflight
from dpaudit.auditing.distinguishing.scores import CodeScore, Leading, Score, score_outputs
from dpaudit.auditing.evidence.events import Both, Event, choose_event
from dpaudit.auditing.execution import DEFAULTS, Execution, ExecutionFields
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.validate import shown as quoted
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair

WIDE = 2**24
"""Numbers of a pilot on one side from which on a vocabulary picks among them."""
MOST_HELD = 2**26
"""Size of the forms from which a vocabulary is made."""
_RAISES = "the mechanism raises in every run on both sides; fix it first."
VOCABULARY_SHARE = 3
"""Of the pilot of outputs that are encoded, one in so many runs chooses the vocabulary."""


def audit_release(
    release: Release,
    pair: AuditPair,
    *,
    epsilon: float,
    delta: float = 0.0,
    curve: Curve | None = None,
    score: Given | Sequence[Given] | None = None,
    learn: bool | Learner | None = None,
    method: str | None = None,
    stop_early: bool = False,
    execution: Execution = DEFAULTS,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack a claim of (ε, δ)-differential privacy on one pair of neighbours.

    A correct mechanism is refuted with probability at most 1 − ``confidence``, in finite samples,
    the choice of event, direction and score included.

    Args:
        release: ``release(data, size, rng)`` gives ``size`` independent outputs: an array of shape
            (size, …) or, where no score is given, a list of whatever it returns.
        pair: the neighbours, fixed before these runs are drawn.
        epsilon: claimed ε.
        delta: claimed δ.
        curve: claimed δ as a function of an array of ε, such as a plan's privacy curve; the claim
            is then this whole curve as well.
        score: a frozen score, or several of which the pilot picks one; without it the output
            itself (numbers), or a score that is learned on the pilot (arrays). A function of one
            output, whatever that is, to a number is such a score too; the scores that would be
            tried without it are tried beside it.
        learn: whether the pilot also learns scores and compares them with the given ones; by
            default only where none is given. Or what learns them: a function of outputs on x and
            on x', each of shape (n, …), that gives scores.
        method: text for the record, in place of the score's own.
        stop_early: stop at the refutation. The bound then comes from an e-process, which may be
            stopped at any time and is less sharp.
        execution: how many runs are drawn, and how.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Returns:
        The record, with counts and e-values in ``details``.

    Raises:
        InputError: if the code raises or returns nothing in every run, ignores its generator, or
            returns what a given score cannot take; if ``runs`` are too few to refute the claim.
        InconclusiveError: if the code ends its process, hangs or needs more than the allowed
            memory; if its batches are no single runs, or its runs not independent.
        UnsupportedError: if ``learn`` is True, outputs are arrays and scikit-learn is missing.
    """
    execution = execution.updated(fields)
    scores = score_tuple(score)
    learner = learner_for(learn, scores)
    design = Design(Claim(epsilon, delta), execution.confidence, curve, scores, learner, stop_early)
    experiment = Experiment.of(release, pair, execution)
    missing = why_none_is_learned() if learn is True else None
    if design.own and design.encodable:
        return _audited(experiment, design, execution, method, missing, _RAISES)
    try:
        return _audited(experiment, design, execution, method, missing)
    except (NotPlainError, OneSideNotPlainError) as error:
        if not design.encodable:
            raise
        reason = str(error)
    # Out of the handler, as what code raises would else have this error as its context.
    return _audited(experiment, design, execution, method, missing, reason)


def _audited(
    experiment: Experiment,
    design: Design,
    execution: Execution,
    method: str | None,
    missing: DpAuditError | None,
    reason: str = "",
) -> AuditRecord:
    """The audit of outputs as they are or, given a reason for it, of rows that encode them."""
    # A reason means that this is the second call: the first met what no array of floats holds.
    if reason:  # a batch does not tell which of its runs raises
        experiment = replace(experiment, one_by_one=True, encoder=digests)
    shown, runs = preflight(experiment), execution.runs
    shape = (2,) if reason else shown.shape  # rows that encode outputs have at least two columns
    if math.prod(shape) > 1 and missing is not None:
        raise missing
    pilot = design.pilot(shape, runs)
    if design.encodable and not reason and pilot * math.prod(shape) > WIDE:
        raise NotPlainError("the mechanism returned more numbers than a pilot can hold.")
    one_by_one, truths = experiment.one_by_one or shown.repeats, False
    if isinstance(experiment.release, BlackBox) and not reason:
        if experiment.release.batched:
            one_by_one = one_by_one or not batches_are_runs(experiment, runs)
        elif design.encodable:
            truths = _are_truths(experiment)
        if design.encodable and pilot == 0:  # no pilot will show what else it may return
            # As many runs as a pilot would have, for their failures alone: where one is not plain
            # this raises, and the audit begins anew with an encoder. The number seeds them: 0 and 1
            # are the preflight's, 2 and 3 those of the looks below, 10 and 11 those at batches.
            experiment.both(Chunk(Stage.CHECK, 4, 0, pilot_size(runs)))
    experiment = replace(experiment, one_by_one=one_by_one)
    require_enough_runs(
        design.claim,
        runs,
        lambda runs: runs - design.pilot(shape, runs),
        design.point_error,
        design.curve_null(),
    )
    identity = _identity(experiment, design, runs) if execution.journal else {}
    with experiment.trials(execution, identity) as trials:
        if pilot == 0:
            outcome = _sequential(trials, design, runs)
        else:
            spent = _learn_vocabulary(trials, design, pilot, reason) if reason else 0
            outcome = _two_stages(trials, design, runs, pilot, spent)
    if truths and outcome.fields is not None:
        outcome = replace(outcome, fields=replace(outcome.fields, truths=True))
    return outcome.record(design, experiment, replace(shown, shape=shape), method)


def _are_truths(experiment: Experiment) -> bool:
    """Tell whether all outputs of a few runs are True or False.

    Raises:
        NotPlainError: if each side shows types of its own.
    """
    both = replace(experiment, encoder=forms).both(Chunk(Stage.CHECK, 3, 0, CHECK_RUNS))
    one, other = ({form.types for form in side} for side in both)
    if len(one) == len(other) == 1 and one != other:
        raise NotPlainError("the mechanism returned numbers of different types on the two sides.")
    truths = {f"output is {each}" for each in (True, False)}
    return all(truths & form.facts for side in both for form in side)


def _learn_vocabulary(trials: Trials, design: Design, pilot: int, reason: str) -> int:
    """Let outputs be encoded from now on; how many runs of the pilot that may take."""
    runs = max(1, pilot // VOCABULARY_SHARE)
    trials.experiment = replace(trials.experiment, encoder=forms)
    x, x_prime, held = list[Form](), list[Form](), 0
    for both in trials.stage(Stage.VOCABULARY, runs):
        x.extend(both[0])
        x_prime.extend(both[1])
        held += sum(form.size for side in both for form in side)
        if held > MOST_HELD:
            break
    require_answers((x, x_prime), reason)
    _require_fields(trials.experiment.release, [*x, *x_prime])
    vocabulary = Vocabulary.of(x, x_prime, HeldValues.of(trials.experiment.pair))
    encoder = replace(vocabulary, own=design.own)
    trials.experiment = replace(trials.experiment, encoder=encoder)
    return runs


def _require_fields(release: Release, seen: Sequence[Form]) -> None:
    """Refuse to leave out a field that no output has."""
    wanted = release.left_out if isinstance(release, BlackBox) else frozenset[str]()
    if "output" in wanted:
        raise InputError("--field names the whole output; name a part of it.")
    if missing := wanted - set().union(*(form.left_out for form in seen)):
        raise InputError(
            f"--field names {quoted(min(missing))}, which no output has; name a field as events "
            "do, such as output['served_at'] or output[1]."
        )


def _identity(experiment: Experiment, design: Design, runs: int) -> dict[str, Any]:
    """Return what determines every run, for the journal."""
    release = experiment.release
    code = release.function if isinstance(release, BlackBox) else release
    arguments = release.arguments if isinstance(release, BlackBox) else {}
    left_out = release.left_out if isinstance(release, BlackBox) else ()
    return {
        "release": _name(code),
        **({"arguments": as_json({**arguments})} if arguments else {}),
        **({"left_out": sorted(left_out)} if left_out else {}),
        "pair": as_json([experiment.pair.x, experiment.pair.x_prime]),
        "seed": experiment.seed,
        "runs": runs,
        "claim": design.claim.to_dict(),
        "confidence": design.confidence,
        "scores": [_name(score) for score in design.scores],
        "curve": design.curve is not None,
        "stop_early": design.stop_early,
    }


def _name(code: object) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(code))


def _two_stages(trials: Trials, design: Design, runs: int, pilot: int, spent: int = 0) -> Outcome:
    """Pilot, of which a part may be spent on a vocabulary, choice, test."""
    # Runs of the stage PILOT may have called for the encoding, and may not choose an event as well.
    stage = Stage.ENCODED_PILOT if spent else Stage.PILOT
    outputs = trials.whole(stage, pilot - spent)
    given = () if spent else design.scores  # encoded, they are columns
    fixed = [*given, *_first_scores(trials, design, outputs[0])]
    test_runs = runs - pilot
    curve = design.curve_null()
    if curve is not None and fixed:
        curve.update(*(score_outputs(fixed[0], side) for side in outputs))
    choice = choose_score(
        fixed,
        *outputs,
        design.claim.delta,
        test_runs=test_runs,
        confidence=1 - (design.point_error or design.error),
        learner=design.learner,
    )
    score = choice.score
    if curve is not None and not (fixed and score is fixed[0]):
        curve.change_score()
    point: Null = AnytimeNull(design.claim)
    scores, fields = [score], _fields(trials, outputs)
    if not design.stop_early:
        # A replay scores what a ledger released, which holds no value itself.
        replayed = isinstance(score, CodeScore)
        shows, held = ([], []) if replayed else _held_values(trials, outputs)
        scores += shows
        rare = _rare_event(design, score, outputs, test_runs)
        untested = None if replayed else _rare_facts(trials, scores)
        point = PointNull(design.claim, choice.event, [*rare, *held], design.confidence, untested)
    _tolerate(trials, outputs[0])
    used = _feed(trials, design, scores, test_runs, point, curve)
    return Outcome(score, point, curve, pilot + used, pilot, choice.judged_on, spent > 0, fields)


def _tolerate(trials: Trials, outputs: Floats) -> None:
    """From now on, what no run has shown before ends no audit."""
    if trials.experiment.encoder is None:
        plain = Plain(outputs.shape[1:])
        trials.experiment = replace(trials.experiment, encoder=plain)


def _fields(trials: Trials, outputs: Both) -> Fields:
    """The outputs of a pilot, with what their entries are called."""
    encoder = trials.experiment.encoder
    if isinstance(encoder, Vocabulary):
        return Fields(outputs, encoder.names, encoder.unique)
    return Fields(outputs)


def _held_values(trials: Trials, outputs: Both) -> tuple[list[Score], list[Arm]]:
    """The score of values that one side alone holds, and its events; neither without such values.

    The score is the second of those that are counted.
    """
    encoder, score = trials.experiment.encoder, None
    if isinstance(encoder, Vocabulary):
        held, score = encoder.held, encoder.shows
    else:
        held = HeldValues.of(trials.experiment.pair).with_repeats(*outputs)
    arms = [
        Arm(each, HELD_SHARE, 1, held.in_words, f"held by {each.direction.sides[0]}")
        for each in held.events
    ]
    return [score or held] if arms else [], arms


def _rare_facts(trials: Trials, scores: list[Score]) -> Arm | None:
    """Let facts of encoded outputs be counted that hardly any output of the pilot showed."""
    encoder = trials.experiment.encoder
    if not isinstance(encoder, Vocabulary):
        return None
    counting, score = encoder.with_rare()
    trials.experiment = replace(trials.experiment, encoder=counting)
    scores[:] = [*(Leading(each, len(encoder.names)) for each in scores), score]
    return Arm(Event(lower=0.5), 0.0, len(scores) - 1, label="rare facts")


def _rare_event(design: Design, score: Score, outputs: Both, test_runs: int) -> list[Arm]:
    """Return what may happen so rarely that it moves no other bound; nothing of a small pilot."""
    if len(outputs[0]) < RARE_PILOT:
        return []
    x, x_prime = (score_outputs(score, side) for side in outputs)
    confidence = 1 - RARE_SHARE * (design.point_error or design.error)
    event = choose_event(
        x, x_prime, design.claim.delta, test_runs=test_runs, confidence=confidence, rare=True
    )
    return [Arm(event, RARE_SHARE)]


def _first_scores(trials: Trials, design: Design, outputs: Floats) -> Sequence[Score]:
    if design.learner is None:
        return []
    encoder = trials.experiment.encoder
    return encoder.scores if isinstance(encoder, Vocabulary) else first_scores(outputs)


def _sequential(trials: Trials, design: Design, runs: int) -> Outcome:
    """No pilot: the score is fixed, and every run counts from the first."""
    shown, _ = trials.experiment.both(Chunk(Stage.CHECK, 2, 0, 1))
    score = (design.scores or first_scores(shown))[0]
    point, curve = AnytimeNull(design.claim), design.curve_null()
    _tolerate(trials, shown)
    used = _feed(trials, design, [score], runs, point, curve)
    return Outcome(score, point, curve, used, 0)


def _feed(
    trials: Trials,
    design: Design,
    scores: Sequence[Score],
    runs: int,
    point: Null,
    curve: CurveNull | RatesNull | None,
) -> int:
    """Test runs, up to ``runs`` or to the refutation; how many were used."""
    used = 0
    for x, x_prime in trials.stage(Stage.TEST, runs, scores):
        used += len(x)
        point.update(x, x_prime)
        if curve is not None:
            curve.update(x[:, 0], x_prime[:, 0])
        if design.stop_early and (
            (curve is not None and curve.refuted) or design.point_refutes(point)
        ):
            break
    trials.require_independent()
    return used
