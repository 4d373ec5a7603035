"""Replaying a subject on one neighbour, for its author: findings in full, with private values.

Rehearsing a subject: its real run on its own data, put to the test.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.auditing.replaying.replay import Comparison, RecordedRun, ReplayReport, record
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.certificate import Certificate
from dpaudit.plan import Plan
from dpaudit.project import Subject
from dpaudit.project.foreign import foreign
from dpaudit.project.targets import Target, configuration, find_subject, parse_settings
from dpaudit.rehearsal.loading import loading_findings, public_findings
from dpaudit.rehearsal.neighbours import moves
from dpaudit.rehearsal.rehearse import LONGEST, MOST_NEIGHBOURS, RehearsalOutcome, rehearse
from dpaudit.rehearsal.watching import apart, first_apart

_NO_ROWS = (
    "holds handles of its data and no rows, which leaves nothing to rehearse or replay; certify it "
    "on made-up rows with dpaudit check, or assert_certified."
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
        return max(self.report.comparisons, key=share, default=None)


def share(one: Comparison) -> float:
    """Tell how far apart values are, in units of the declared sensitivity."""
    if one.declared == 0:
        return math.inf if one.observed else 0.0
    return one.observed / one.declared


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
    source = subject.default_data if data is None else data
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
            f"no neighbour of {source!r} is made like that; leave --neighbour out to see which are."
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
    """
    kind = type(subject)
    if not subject.sees_rows:
        return RehearsalOutcome.impossible(f"{kind.__name__} {_NO_ROWS}")
    if kind.run is Subject.run:
        return RehearsalOutcome.impossible("The subject has no run; define run and load.")
    if kind.load is Subject.load:
        return RehearsalOutcome.impossible("The subject has no data to run on; define load.")
    source = subject.default_data if data is None else data
    plan = plan or subject.plan()
    try:
        with foreign(name):
            loaded = subject.load(source, np.random.default_rng([seed, 0]))
    except DpAuditError as error:
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
