"""Checking a whole project: every subject certified, attacked and compared; every budget summed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpaudit.accounting import guarantee
from dpaudit.auditing import progress_bar
from dpaudit.base.errors import DpAuditError, InconclusiveError, InputError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import holds
from dpaudit.certificate import Certificate, Claim, Finding, with_witness
from dpaudit.plan import Plan
from dpaudit.project.foreign import foreign
from dpaudit.project.project_file import (
    BudgetEntry,
    Code,
    ProjectFile,
    SubjectEntry,
    read_project_file,
)
from dpaudit.project.sealed_subject import on_made_up_rows
from dpaudit.project.targets import certified, find_target
from dpaudit.reporting import renderer_for, suffixes
from dpaudit.workflow.attacking import with_planned_audits
from dpaudit.workflow.outcomes import (
    BudgetRow,
    ProjectOutcome,
    Status,
    SubjectRow,
    budget_changes,
    changes,
    in_sequence,
)
from dpaudit.workflow.publishing import (
    Baseline,
    publish,
    read_baseline,
    refuse_unwritable,
    rendered,
)
from dpaudit.workflow.rehearsing import with_rehearsal
from dpaudit.workflow.running import open_target, tried_on_made_up_rows
from dpaudit.workflow.sealing import NOT_SEALED

OtherBudgets = Callable[[Mapping[str, SubjectRow]], Iterable[BudgetRow]]
"""Budgets that are kept elsewhere, and whether all subjects together fit what is left of each."""

_found = FindingTable(__name__)


def check_project(
    path: Path | str,
    *,
    since: Path | str | None = None,
    reports: Path | None = None,
    others: OtherBudgets | None = None,
) -> tuple[ProjectOutcome, tuple[Path, ...]]:
    """Check a project and write its reports.

    The project file, the folder of the reports and the older certificates are validated before any
    work is done, and files are written when all work is done. A subject that fails becomes a row
    that says so; the others are not affected. This imports and runs the code of the subjects.

    Args:
        path: the project file, or its folder.
        since: an older certificate, or a folder of them. Where that is the folder of the reports,
            and a subject is worse now or has no certificate, it stays as it is: the reports go to
            a folder beside it, of a name that ends in ``-worse``.
        reports: folder to write, in place of the project file's.
        others: budgets that are kept elsewhere, for one more run of all subjects.

    Returns:
        What was found, and the files.

    Raises:
        InputError: if the project file, the older certificates or the folder are wrong.
    """
    project = read_project_file(path, suffixes())
    for ending in project.formats:
        renderer_for(f"report{ending}")  # says before any work that a format needs an extra
    if reports is not None:
        project = replace(project, reports=reports.absolute())
    baseline = None if since is None else read_baseline(since)
    refuse_unwritable(project.reports)
    rows: dict[str, SubjectRow] = {}
    with progress_bar("subjects", lambda: (len(rows), len(project.subjects))):
        rows.update((e.name, _subject_row(e, project, baseline)) for e in project.subjects)
    subjects = tuple(rows.values())
    budgets = tuple(_budget_row(entry, rows) for entry in project.budgets)
    if others is not None:
        budgets += tuple(others(rows))
    outcome = ProjectOutcome(subjects, budgets, _gone(baseline, subjects))
    if baseline is not None:
        names = {row.since or row.name: row.name for row in subjects}
        found = tuple(budget_changes(baseline.budgets, project.budgets, names))
        outcome = replace(outcome, changes=found)
    if since is not None and _would_forget(outcome, Path(since), project.reports):
        beside = project.reports.with_name(f"{project.reports.name}-worse")
        project = replace(project, reports=beside)
        refuse_unwritable(beside)
        outcome = replace(outcome, beside=True)
    return outcome, publish(outcome, project)


def _would_forget(outcome: ProjectOutcome, since: Path, reports: Path) -> bool:
    """Tell whether the reports would replace better certificates that they were compared with."""
    same = reports.resolve() in (since.resolve(), since.resolve().parent)
    return same and (outcome.is_worse or any(row.certificate is None for row in outcome.subjects))


def _gone(baseline: Baseline | None, rows: Sequence[SubjectRow]) -> tuple[str, ...]:
    """Older certificates that belong to no subject of the project, not even to a failed one."""
    if baseline is None:
        return ()
    failed = [row for row in rows if row.certificate is None]
    matched = {*(row.since for row in rows), *(row.name for row in failed)}
    return baseline.without(matched, {_recorded(row.target) for row in failed})


def _recorded(target: str) -> str:
    """Return what certificates call a target: a plan file goes by its name without folders."""
    return Path(target).name if target.endswith(".toml") else target


def _subject_row(
    entry: SubjectEntry, project: ProjectFile, baseline: Baseline | None
) -> SubjectRow:
    """Certify, attack, compare and render; whatever foreign code raises becomes one sentence."""
    row = SubjectRow(entry.name, entry.target)
    try:
        with contextlib.chdir(project.root), foreign(entry.target):
            certificate = certify_entry(entry)
            row = replace(
                row, certificate=certificate, unrehearsed=_unrehearsed(entry, certificate)
            )
            row = _compared(row, project, baseline)
            return replace(row, files=rendered(entry.name, certificate, project.formats))
    except DpAuditError as error:
        undecided = isinstance(error, InconclusiveError)
        return replace(row, certificate=None, error=str(error), inconclusive=undecided)


def _unrehearsed(entry: SubjectEntry, certificate: Certificate) -> str:
    """Tell why the certificate says nothing of the code, though it should."""
    rehearsal = certificate.rehearsal
    if entry.code is Code.NOT_REHEARSED or rehearsal is None or not rehearsal.reason:
        return ""
    return (
        f"The code was not rehearsed: {rehearsal.reason} The certificate speaks of the plan alone; "
        f'to accept that, state code = "{Code.NOT_REHEARSED}" in the project file.'
    )


def certify_entry(entry: SubjectEntry) -> Certificate:
    """The certificate of one subject of a project file, after the attacks that it plans.

    Paths are seen from the current folder, which should be that of the project file. This imports
    and runs the code of the subject; that of a sealed subject in a sealed process, on made-up rows,
    and here only where attacks are planned.

    Raises:
        InputError: if the subject cannot be found or certified, or an attack cannot be made.
    """
    target = tried = None
    if entry.code is Code.NOT_REHEARSED:
        target = find_target(entry.target, entry.settings)
    else:
        tried = tried_on_made_up_rows(entry.target, entry.settings, entry.data)
    if entry.code is Code.SEALED and (tried is None or tried.seal is None):
        found = () if tried is None else tried.findings
        why = [each.message for each in found if each.rule == NOT_SEALED]
        raise InputError(f'code is "sealed": {"".join(why) or "this is not a SealedSubject."}')
    target = target or tried or open_target(entry.target, entry.settings)
    if entry.claim is not None:
        notes = overridden(target.claim, entry.claim)
        target = replace(target, claim=entry.claim, findings=(*target.findings, *notes))
    certificate = with_witness(certified(target, entry.delta, entry.accountant))
    if entry.code is Code.REHEARSED:
        certificate = with_rehearsal(certificate, target, data=entry.data)
    if target.seal is not None and entry.audits:
        held = find_target(entry.target, entry.settings)
        target = replace(target, subject=on_made_up_rows(held.subject, entry.data))
    return with_planned_audits(certificate, target, entry)


def overridden(own: Claim | None, claim: Claim) -> tuple[Finding, ...]:
    """A warning if a project file claims less privacy than the subject itself does."""
    if own is None or claim.implies(own):
        return ()
    return (_found("claim-loosened", claim=claim, own=own),)


def _compared(row: SubjectRow, project: ProjectFile, baseline: Baseline | None) -> SubjectRow:
    if baseline is None or row.certificate is None:
        return row
    targets = [_recorded(entry.target) for entry in project.subjects]
    alone = targets.count(_recorded(row.target)) == 1
    since = baseline.match(row.name, row.certificate.subject, alone=alone)
    if since is None:
        return row
    found = changes(baseline.certificates[since], row.certificate)
    return replace(row, since=since, changes=found)


def _budget_row(entry: BudgetEntry, rows: Mapping[str, SubjectRow]) -> BudgetRow:
    """Compose the plans by the accountants: the sum of their ε would be far larger."""
    row = BudgetRow(entry.name, entry.subjects, entry.limit, Status.ERROR)
    plans: dict[str, Plan] = {}
    for name in entry.subjects:
        certificate = rows[name].certificate
        if certificate is None:
            status = rows[name].status  # an error, or an attack that decided nothing
            return replace(row, status=status, note=f"{name} could not be certified.")
        plans[name] = certificate.plan
    try:
        plan = in_sequence(plans)
        proved = guarantee(plan, entry.limit.delta)
    except UnsupportedError as error:
        return replace(row, status=Status.UNPROVEN, note=str(error))
    except InputError as error:
        return replace(row, note=str(error))
    kept = holds(proved.epsilon, entry.limit.epsilon)
    row = replace(row, guarantee=proved, status=Status.CERTIFIED if kept else Status.EXCEEDED)
    if proved.epsilon == math.inf:
        return replace(
            row,
            status=Status.UNPROVEN,
            note=f"{proved.native.get('reason', 'no finite ε is proved')}.",
        )
    objections = list(filter(None, (_objection(rows[name]) for name in entry.subjects)))
    if objections and row.status is Status.CERTIFIED:
        return replace(row, status=Status.UNPROVEN, note=f"it rests on {'; '.join(objections)}.")
    return row


def _objection(row: SubjectRow) -> str:
    """Tell why no budget can rest on a subject's plan; an exceeded claim is no reason."""
    if row.status is Status.REFUTED:
        return f"the plan of {row.name}, which an audit refutes"
    disputed = () if row.certificate is None else row.certificate.disputed
    if disputed:
        return f"the plan of {row.name}, which is in error ({', '.join(disputed)})"
    return ""
