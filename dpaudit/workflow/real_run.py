"""Attacking the real run of a subject: no model of it by its author is needed.

The run is recorded on the data and on a neighbour, and run again with the releases forced. How long
that takes follows from a run, so that it can be told, and bounded, before it starts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.auditing.children import TrialTimeoutError, within_time
from dpaudit.auditing.replaying.replay import ReplayReport, record
from dpaudit.auditing.subjects.transcripts import audit_transcript
from dpaudit.base.errors import InconclusiveError, InputError
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.plan import Invocation
from dpaudit.project import AuditPair, Execution, Move, Subject
from dpaudit.project.audit_request import Notice
from dpaudit.project.foreign import foreign
from dpaudit.rehearsal.neighbours import moves
from dpaudit.rehearsal.rehearse import MOST_NEIGHBOURS

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
    execution: Execution,
    *,
    seconds: float | None = None,
    limit: float | None = None,
    notice: Notice | None = None,
) -> AuditRecord:
    """Attack what the real run of a subject releases, on its data and a neighbour of them.

    Of the neighbours that a rehearsal tries, the one is taken whose values before noise lie
    furthest apart, in units of what is declared. The score is the exact log-likelihood ratio of all
    that was released, from the values that the run itself computes on either neighbour.

    Args:
        subject: what is attacked.
        name: of it, for sentences.
        claim: what is tested.
        execution: how many runs are drawn, and how; each costs three runs of the subject,
            or five where it samples units.
        seconds: about how long all draws may take; fewer than ``execution`` says are made then.
        limit: seconds within which it ends.
        notice: is told how long it will take.

    Returns:
        The record. Its pair says how the neighbour was made, without any value.

    Raises:
        InputError: if there are no data, no neighbour that differs, or not the time for its draws.
        InconclusiveError: if it would not end within the limit.
        UnsupportedError: if a mechanism declares no density, or units are sampled otherwise than
            by ``ledger.sample``, or as no theorem covers.
    """
    execution = execution.updated({"seed": execution.known_seed()})
    assert execution.seed is not None
    source, start = subject.default_data, time.monotonic()
    with foreign(name):
        x = subject.load(source, np.random.default_rng([execution.seed, 0]))
        draw = _seconds_of_draw(subject, x, execution.seed)
        execution = _fitting(execution, draw, seconds, limit, notice)
        with progress_bar(f"attack on {name}") as progress:

            def attacked() -> tuple[Move, AuditRecord]:
                move = furthest(subject, x, execution.known_seed())
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
                    f"{execution.runs} draws a side did not end within the {limit:g} s of "
                    "--timeout; give more, or fewer --runs."
                ) from None
    pair = {"x": source, "x_prime": move.recipe}
    details = {**found.details, "why_this_pair": "values before noise lie furthest apart"}
    return replace(found, pair=pair, details=details)


def time_left(limit: float | None, start: float) -> float | None:
    """What is left of a limit, and in any case a moment."""
    return None if limit is None else max(1e-3, limit - (time.monotonic() - start))


def _fitting(
    execution: Execution,
    draw: float,
    seconds: float | None,
    limit: float | None,
    notice: Notice | None,
) -> Execution:
    """As many draws as there is time for, of so many seconds each; and tell how long they take."""
    beside = BESIDE * draw
    if seconds is not None:
        time_for = seconds if limit is None else limit - beside
        fitting = min(max(math.floor(time_for / draw), FEWEST), execution.runs)
        execution = execution.updated({"runs": fitting})
    told = (
        f"{execution.runs} draws a side, at {draw:.2g} s for both sides: about "
        f"{execution.runs * draw + beside:.0f} s in all"
    )
    if limit is not None and execution.runs * draw + beside > limit:
        raise InputError(
            f"--timeout is {limit:g} s, too few for {told}; give more"
            f"{' or fewer --runs' if seconds is None else ''}."
        )
    if notice is not None:
        notice(f"{told}.")
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
        raise InputError("no neighbour of the data moves what is released; define neighbours.")
    return best


def _everyone(use: Invocation, units: Sequence[str]) -> list[int]:
    """As many as can take part, so that what they change is seen."""
    return list(range(getattr(use.sampling, "size", len(units))))


def _apart(report: ReplayReport) -> float:
    """The distances of all releases together, each at most as declared or, if more, as it is."""
    shares = [each.observed / each.declared for each in report.comparisons if each.declared > 0]
    finite = [share for share in shares if math.isfinite(share)]
    return math.sqrt(math.fsum(share * share for share in finite))
