"""Rehearsing a subject: its real run on its own data, put to the test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.base.errors import DpAuditError
from dpaudit.certificate import Certificate
from dpaudit.plan import Plan
from dpaudit.project import Subject
from dpaudit.project.foreign import foreign
from dpaudit.project.targets import Target
from dpaudit.rehearsal.loading import kept_by_load, loading_findings
from dpaudit.rehearsal.public import public_findings
from dpaudit.rehearsal.rehearse import LONGEST, MOST, Rehearsed, rehearse
from dpaudit.workflow.replaying import replay_command


def with_rehearsal(
    certificate: Certificate, target: Target, *, data: str | None = None
) -> Certificate:
    """The certificate after a rehearsal of the code; as it is where no code is.

    Args:
        certificate: of the target.
        target: what is rehearsed.
        data: name of the data; the subject's default where not given.
    """
    if target.subject is None or target.release is not None:
        return certificate
    outcome = rehearsed(target.subject, target.record.name, plan=certificate.plan, data=data)
    return certificate.with_rehearsal(outcome.record, outcome.findings)


def rehearsed(
    subject: Subject,
    name: str,
    *,
    plan: Plan | None = None,
    data: str | None = None,
    seed: int = 0,
    timeout: float | None = LONGEST,
) -> Rehearsed:
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
    if kind.run is Subject.run:
        return Rehearsed.impossible("The subject has no run; define run and load.")
    if kind.load is Subject.load:
        return Rehearsed.impossible("The subject has no data to run on; define load.")
    source = subject.default_data if data is None else data
    plan = plan or subject.plan()
    before = dict(vars(subject))
    try:
        with foreign(name):
            loaded = subject.load(source, np.random.default_rng([seed, 0]))
    except DpAuditError as error:
        return Rehearsed.impossible(str(error))
    mixed, loads = loading_findings(subject, source, loaded, seed)
    asked, public = public_findings(subject, plan, (source, subject.default_data))
    found = [*asked, *kept_by_load(subject, before), *mixed]
    outcome = rehearsed_on(subject, name, loaded, source, plan=plan, seed=seed, timeout=timeout)
    record = replace(outcome.record, loads=loads, public=public)
    return replace(outcome, record=record, findings=(*outcome.findings, *found))


def rehearsed_on(
    subject: Subject,
    name: str,
    loaded: Any,
    source: str,
    *,
    plan: Plan | None = None,
    seed: int = 0,
    most: int = MOST,
    timeout: float | None = LONGEST,
) -> Rehearsed:
    """Rehearse the run of a subject on data that are loaded; as :func:`rehearsed`."""
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
        return Rehearsed.impossible(str(error))
