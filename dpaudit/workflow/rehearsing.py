"""The real run of a subject, put to the test: rehearsed, replayed and attacked.

A rehearsal is on the subject's own data. A replay on one neighbour is for its author: findings in
full, with private values. An attack needs no model of the run by its author: the run is recorded on
the data and on a neighbour, and run again with the releases forced. How long that takes follows
from a run, so that it can be told, and bounded, before it starts.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.auditing.children import TrialTimeoutError, within_time
from dpaudit.auditing.replaying.replay import Comparison, RecordedRun, ReplayReport, record
from dpaudit.auditing.subjects.transcripts import audit_transcript
from dpaudit.base.errors import DpAuditError, InconclusiveError, InputError, PublicError
from dpaudit.certificate import AuditRecord, Certificate, Claim
from dpaudit.plan import Invocation, Plan
from dpaudit.project import AuditPair, Execution, Move, Subject
from dpaudit.project.audit_request import AuditRequest
from dpaudit.project.foreign import foreign
from dpaudit.project.subject import source_of
from dpaudit.project.targets import Target, configuration, find_subject, parse_settings
from dpaudit.rehearsal.loading import loading_findings, public_findings
from dpaudit.rehearsal.neighbours import moves
from dpaudit.rehearsal.rehearse import LONGEST, MOST_NEIGHBOURS, RehearsalOutcome, rehearse
from dpaudit.rehearsal.watching import apart, first_apart

_NO_ROWS = (
    "holds handles and no rows, so there is nothing to rehearse or replay; certify it on "
    "made-up rows with dpaudit check, or with assert_certified."
)


@dataclass(frozen=True)
class NeighbourReplay:
    """A run on one neighbour with the releases of the run on the data.

    Attributes:
        neighbour: how the neighbour was made.
        hops: how many steps lead there; infinite where values may lie as far apart as they like.
        report: what it showed; it tells private values.
    """

    neighbour: str
    hops: float
    report: ReplayReport

    @property
    def largest(self) -> Comparison | None:
        """The release whose values lie furthest apart, in units of what is declared."""
        return max(self.report.comparisons, key=lambda one: one.share, default=None)


def replay_subject(
    name: str,
    settings: Sequence[str] = (),
    *,
    data: str | None = None,
    seed: int = 0,
    neighbour: str = "",
) -> Iterator[NeighbourReplay]:
    """The replays of a rehearsal, one by one, each in a process of its own where that is possible.

    Args:
        name: ``module:Object``.
        settings: ``key=value`` texts.
        data: name or path of the data; the subject's default where not given.
        seed: of the rehearsal.
        neighbour: how the one is made that is wanted, as a finding names it; all where empty.

    Raises:
        InputError: if something is wrong with the input, or no neighbour is made like that.
    """
    subject = find_subject(name, parse_settings(settings))
    if not subject.sees_rows:
        raise InputError(f"{name:.80} {_NO_ROWS}")
    source = source_of(subject, data)
    found = False
    with foreign(name):
        loaded = subject.load(source, np.random.default_rng([seed, 0]))

        def ran_on(x: Any) -> RecordedRun:
            return first_apart(subject, x, seed) or record(subject, x, seed)

        first = ran_on(loaded)
        near, far = moves(subject, loaded, subject.plan(), np.random.default_rng([seed, 1]))
        for number, move in enumerate([*near, *far]):
            if neighbour in (move.recipe, "") and (neighbour or number < MOST_NEIGHBOURS):
                found = True
                base = first if move.base is None else ran_on(move.base)
                compare = partial(base.against, move.data, hops=move.hops)
                yield NeighbourReplay(move.recipe, move.hops, apart(compare) or compare())
    if not found:
        raise InputError(
            f"--neighbour names no neighbour of {source!r}; leave it out to see which ones "
            "there are."
        )


def replay_command(subject: Subject, name: str, data: str, seed: int) -> str:
    """The command that tells of one neighbour in full; how it is made is still to follow."""
    usual = {each.name: each.default for each in fields(subject)}  # type: ignore[arg-type]
    module, _, attribute = name.rpartition(":")
    loaded = sys.modules.get(Path(module).stem if module.endswith(".py") else module)
    named = getattr(loaded, attribute, None)  # an instance has its own fields already
    own = configuration(named) if isinstance(named, Subject) else {}
    words = ["dpaudit", "replay", name]
    for key, value in configuration(subject).items():
        if value != own[key] if key in own else getattr(subject, key) != usual[key]:
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    if data != subject.default_data:
        words += ["--data", data]
    if seed:
        words += ["--seed", str(seed)]
    return shlex.join([*words, "--neighbour"])


def with_rehearsal(
    certificate: Certificate, target: Target, *, data: str | None = None
) -> Certificate:
    """The certificate after a rehearsal of the code; as it is where no code is.

    Args:
        certificate: of the target.
        target: what is rehearsed.
        data: name of the data; the subject's default where not given.
    """
    if target.subject is None or not target.subject.sees_rows:
        return certificate
    outcome = rehearse_subject(target.subject, target.record.name, plan=certificate.plan, data=data)
    return certificate.with_rehearsal(outcome.record, outcome.findings)


def rehearse_subject(
    subject: Subject,
    name: str,
    *,
    plan: Plan | None = None,
    data: str | None = None,
    seed: int = 0,
    timeout: float | None = LONGEST,
) -> RehearsalOutcome:
    """Load the data of a subject and rehearse its run; what prevents it becomes the reason.

    Args:
        subject: what is rehearsed.
        name: of it, for sentences.
        plan: what is certified of it; its plan before the data are loaded where not given.
        data: name of the data; the subject's default where not given.
        seed: of the whole rehearsal.
        timeout: seconds that one run may take.

    Raises:
        PublicError: if the data that are named cannot be those of the subject.
    """
    kind = type(subject)
    if not subject.sees_rows:
        return RehearsalOutcome.impossible(f"{kind.__name__} {_NO_ROWS}")
    if kind.run is Subject.run:
        return RehearsalOutcome.impossible("The subject has no run; define run and load.")
    if kind.load is Subject.load:
        return RehearsalOutcome.impossible("The subject has no data to run on; define load.")
    source = source_of(subject, data)
    plan = plan or subject.plan()
    try:
        with foreign(name):
            loaded = subject.load(source, np.random.default_rng([seed, 0]))
    except DpAuditError as error:
        if data is not None and isinstance(error, PublicError):
            raise
        return RehearsalOutcome.impossible(str(error))
    mixed, loads = loading_findings(subject, source, loaded, seed)
    found, public = public_findings(subject, plan, (source, subject.default_data))
    outcome = rehearse_on(subject, name, loaded, source, plan=plan, seed=seed, timeout=timeout)
    record = replace(outcome.record, loads=loads, public=public)
    return replace(outcome, record=record, findings=(*outcome.findings, *found, *mixed))


def rehearse_on(
    subject: Subject,
    name: str,
    loaded: Any,
    source: str,
    *,
    plan: Plan | None = None,
    seed: int = 0,
    most: int = MOST_NEIGHBOURS,
    timeout: float | None = LONGEST,
) -> RehearsalOutcome:
    """Rehearse the run of a subject on data that are loaded; as :func:`rehearse_subject`."""
    command = replay_command(subject, name, source, seed) if ":" in name else ""
    try:
        with progress_bar(f"rehearsal of {name}") as progress, foreign(name):
            return rehearse(
                subject,
                loaded,
                source,
                plan=plan,
                seed=seed,
                most=most,
                timeout=timeout,
                progress=progress,
                command=command,
            )
    except DpAuditError as error:
        return RehearsalOutcome.impossible(str(error))


FEWEST = 60
"""Draws that are made however long they take: of fewer nothing follows."""
RUNS_OF_DRAW = 3, 5
"""How often the subject runs for a draw of either side, without samples and with them."""
BESIDE = 15
"""Draws that would take as long as all else: neighbours, the first look, the rehearsal."""


def audit_run(
    subject: Subject,
    name: str,
    claim: Claim,
    request: AuditRequest,
) -> AuditRecord:
    """Attack what the real run of a subject releases, on its data and a neighbour of them.

    Of the neighbours that a rehearsal tries, the one is taken whose values before noise lie
    furthest apart, in units of what is declared. The score is the exact log-likelihood ratio of all
    that was released, from the values that the run itself computes on either neighbour.

    Args:
        subject: what is attacked.
        name: of it, for sentences.
        claim: what is tested.
        request: how many runs are drawn, how, and in which time; each costs three runs of the
            subject, or five where it samples units.

    Returns:
        The record. Its pair says how the neighbour was made, without any value.

    Raises:
        InputError: if there are no data, no neighbour that differs, or not the time for its draws.
        InconclusiveError: if it would not end within the limit.
        UnsupportedError: if a mechanism declares no density, or units are sampled otherwise than
            by ``ledger.sample``, or as no theorem covers.
    """
    seed, limit = request.execution.known_seed(), request.limit
    source, start = subject.default_data, time.monotonic()
    with foreign(name):
        x = subject.load(source, np.random.default_rng([seed, 0]))
        draw = _seconds_of_draw(subject, x, seed)
        execution = _fitting(request, draw).updated({"seed": seed})
        with progress_bar(f"attack on {name}") as progress:

            def attacked() -> tuple[Move, AuditRecord]:
                move = furthest(subject, x, seed)
                return move, audit_transcript(
                    subject,
                    AuditPair(x, move.data),
                    epsilon=claim.epsilon,
                    delta=claim.delta,
                    execution=execution.updated({"progress": progress}),
                )

            try:
                move, found = within_time(time_left(limit, start), attacked)
            except TrialTimeoutError:
                raise InconclusiveError(
                    f"{execution.runs} draws on each side did not end within the {limit:g} s of "
                    "--timeout; give more, or fewer --runs."
                ) from None
    pair = {"x": source, "x_prime": move.recipe}
    details = {**found.details, "why_this_pair": "values before noise are furthest apart"}
    return replace(found, pair=pair, details=details)


def time_left(limit: float | None, start: float) -> float | None:
    """What is left of a limit, and in any case a moment."""
    return None if limit is None else max(1e-3, limit - (time.monotonic() - start))


def _fitting(request: AuditRequest, draw: float) -> Execution:
    """As many draws as there is time for, of so many seconds each; and tell how long they take."""
    execution, seconds, limit = request.execution, request.seconds, request.limit
    beside = BESIDE * draw
    if seconds is not None:
        time_for = seconds if limit is None else limit - beside
        fitting = min(max(math.floor(time_for / draw), FEWEST), execution.runs)
        execution = execution.updated({"runs": fitting})
    told = (
        f"{execution.runs} draws on each side, at {draw:.2g} s for both sides: about "
        f"{execution.runs * draw + beside:.0f} s in all"
    )
    if limit is not None and execution.runs * draw + beside > limit:
        raise InputError(
            f"--timeout is {limit:g} s, too few for {told}; give more"
            f"{' or fewer --runs' if seconds is None else ''}."
        )
    if request.notice is not None:
        request.notice(f"{told}.")
    return execution


def _seconds_of_draw(subject: Subject, x: object, seed: int) -> float:
    """Tell how long one draw on both sides takes; a first run may load what the next ones have."""
    sampled = any(each.sampling for each in subject.plan().invocations)
    times = [time.monotonic()]
    for _ in range(2):
        record(subject, x, seed)
        times.append(time.monotonic())
    return 2 * RUNS_OF_DRAW[sampled] * min(np.diff(times).tolist())


def furthest(subject: Subject, x: object, seed: int) -> Move:
    """The neighbour whose values before noise lie furthest from those of x.

    Raises:
        InputError: if there is none on which the run ends and anything differs.
    """
    first = record(subject, x, seed, _everyone)
    rng = np.random.default_rng([seed, 1])
    near, _ = moves(subject, x, subject.plan(), rng, absent=True)
    best, largest = None, 0.0
    for move in islice(
        (move for move in near if move.base is None and move.hops == 1), MOST_NEIGHBOURS
    ):
        report = first.against(move.data)
        apart = 0.0 if report.raised else _apart(report)
        if apart > largest:
            best, largest = move, apart
    if best is None:
        raise InputError("no neighbour of the data changes what is released; define neighbours.")
    return best


def _everyone(use: Invocation, units: Sequence[str]) -> list[int]:
    """As many as can take part, so that what they change is seen."""
    return list(range(getattr(use.sampling, "size", len(units))))


def _apart(report: ReplayReport) -> float:
    """The distances of all releases together, each at most as declared or, if more, as it is."""
    shares = [each.share for each in report.comparisons if math.isfinite(each.share)]
    return math.sqrt(math.fsum(share * share for share in shares))
