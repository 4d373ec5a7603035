"""Attacking the real run of a subject: no model of it by its author is needed."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.auditing.replaying.replay import ReplayReport, record
from dpaudit.auditing.subjects.transcripts import audit_transcript
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.plan import Invocation
from dpaudit.project import AuditPair, Execution, Move, Subject
from dpaudit.project.foreign import foreign
from dpaudit.rehearsal.neighbours import moves
from dpaudit.rehearsal.rehearse import MOST

FEWEST = 60
"""Draws that are made however long they take: of fewer nothing follows."""
RUNS_OF_DRAW = 3, 5
"""How often the subject runs for a draw of either side, without samples and with them."""


def audit_run(
    subject: Subject,
    name: str,
    claim: Claim,
    execution: Execution,
    *,
    seconds: float | None = None,
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

    Returns:
        The record. Its pair says how the neighbour was made, without any value.

    Raises:
        InputError: if there are no data, or no neighbour that differs.
        UnsupportedError: if a mechanism declares no density, or units are sampled otherwise than
            by ``ledger.sample``, or as no theorem covers.
    """
    execution = execution.updated({"seed": execution.known_seed()})
    assert execution.seed is not None
    source = subject.default_data
    with foreign(name):
        x = subject.load(source, np.random.default_rng([execution.seed, 0]))
        move = furthest(subject, x, execution.seed)
        if seconds is not None:
            fitting = math.floor(seconds / _seconds_of_draw(subject, x, execution.seed))
            fitting = min(max(fitting, FEWEST), execution.runs)
            execution = execution.updated({"runs": fitting})
        with progress_bar(f"attack on {name}") as progress:
            found = audit_transcript(
                subject,
                AuditPair(x, move.data),
                epsilon=claim.epsilon,
                delta=claim.delta,
                execution=execution.updated({"progress": progress}),
            )
    pair = {"x": source, "x_prime": move.recipe}
    details = {**found.details, "why_this_pair": "values before noise lie furthest apart"}
    return replace(found, pair=pair, details=details)


def _seconds_of_draw(subject: Subject, x: object, seed: int) -> float:
    """Tell how long one draw on both sides takes."""
    start = time.perf_counter()
    record(subject, x, seed)
    sampled = any(each.sampling for each in subject.plan().invocations)
    return 2 * RUNS_OF_DRAW[sampled] * (time.perf_counter() - start)


def furthest(subject: Subject, x: object, seed: int) -> Move:
    """The neighbour whose values before noise lie furthest from those of x.

    Raises:
        InputError: if there is none on which the run ends and anything differs.
    """
    first = record(subject, x, seed, _everyone)
    rng = np.random.default_rng([seed, 1])
    near, _ = moves(subject, x, subject.plan(), rng, absent=True)
    best, largest = None, 0.0
    for move in islice((move for move in near if move.base is None and move.hops == 1), MOST):
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
