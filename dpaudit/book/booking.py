"""Runs that an organisation's book charges, what would still fit, and what it exports.

The kernel's ``run`` and ``check``, the book's commands and its server call it. An export is of one
state of the book; no text in it is taken for a formula by a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from dpaudit.base import files
from dpaudit.base.errors import BudgetExceededError, DpAuditError, InputError
from dpaudit.base.validate import shown
from dpaudit.book import (
    Book,
    BudgetRecord,
    BudgetUsage,
    Release,
    RemainingBudget,
    Reservation,
    Status,
)
from dpaudit.certificate import Certificate, Claim, SubjectRecord, certify, load_certificate
from dpaudit.plan import Plan
from dpaudit.project.targets import find_target, parse_settings
from dpaudit.reporting.machine.registry import (
    REGISTRY_HEAD,
    registry_record,
    registry_yaml,
)
from dpaudit.reporting.text import escaped
from dpaudit.workflow import outcomes
from dpaudit.workflow.calibrating import fitting
from dpaudit.workflow.outcomes import in_sequence
from dpaudit.workflow.results import unformula

COLUMNS = (
    *("id", "made", "status", "dataset", "purpose", "by", "approved", "period", "plan", "ran"),
    *("request", "journal", "lines", "head", "certificate"),
)
"""Of an export as CSV."""


@dataclass(frozen=True)
class Booking:
    """The charge of a run: in which book, for which data set, by whom and for what.

    The fields are the arguments of :meth:`dpaudit.book.Book.reserve`.
    """

    book: Book
    dataset: str
    by: str
    purpose: str
    approved: str = ""
    request: str | None = None
    period: str | None = None

    def reserve(self, plan: Plan) -> Reservation:
        """Charge a plan."""
        told = {name: value for name, value in vars(self).items() if name != "book"}
        return self.book.reserve(plan=plan, **told)

    def begin(self, plan: Plan) -> Reservation:
        """Charge a plan that is to run now.

        Raises:
            BudgetExceededError: if it has to be approved before.
        """
        reserved = self.reserve(plan)
        if reserved.release.status is Status.REQUESTED:
            raise BudgetExceededError(
                f"release {reserved.id} waits for approval, and nothing was drawn; once it is "
                f"approved, run it with --request {reserved.release.request}."
            )
        return reserved

    def ran(self, reserved: Reservation, journal: Path, certificate: Certificate) -> None:
        """Close the release, with the hashes of journal and certificate."""
        digest = str(certificate.to_dict()["digest"])
        self.book.close(reserved.id, by=self.by, journal=journal, certificate=digest)

    def failed(self, reserved: Reservation, journal: Path) -> None:
        """Abandon it, or withdraw it where its ledger never began.

        Where the book does not answer it stays charged as it is.
        """
        with suppress(DpAuditError):
            if self.book.release(reserved.id).status is Status.RESERVED:
                self.book.withdraw(reserved.id, by=self.by, why="the run failed before its ledger")
                return
            self.book.close(reserved.id, by=self.by, journal=journal, abandoned="the run failed")


def certificate_of(book: Book, release: str, path: Path) -> str:
    """Return the digest of a certificate of what a release was reserved for.

    Raises:
        InputError: if it is of another plan, or none.
    """
    certificate = load_certificate(path)
    if certificate.plan.hash != book.release(release).plan:
        raise InputError(
            f"certificate {files.shown(path)} is for another plan than release {shown(release)}; "
            "give the certificate of its run."
        )
    return str(certificate.to_dict()["digest"])


@dataclass(frozen=True)
class Fit:
    """The number of times that a plan fits (None: always), and the least noise that fits once."""

    times: int | None
    noise: Mapping[str, tuple[str, float]] | None


def plan_of_target(name: str, settings: Sequence[str]) -> Plan:
    """Return the plan of a plan file or a subject."""
    return find_target(name, parse_settings(settings)).plan


def fit(room: RemainingBudget, name: str, settings: Sequence[str]) -> Fit:
    """Return what could still be released of a plan file or a subject."""
    plan = plan_of_target(name, settings)
    is_file = name.endswith(".toml")
    return fit_of(room, plan, files.read_toml(name, what="plan file") if is_file else None)


def fit_of(
    room: RemainingBudget,
    plan: Plan,
    content: Mapping[str, Any] | None,
    before_each: Callable[[], None] = lambda: None,
) -> Fit:
    """Say how often a plan could still be released, and of a plan file with what noise.

    Args:
        room: what is left.
        plan: to be released.
        content: the tables of its file, if it has one.
        before_each: may end the search for noise, by raising what is no InputError.
    """

    def fits(plan: Plan) -> bool:
        before_each()
        return room.times(plan) != 0

    noise = None if content is None else fitting(content, fits)
    return Fit(room.times(plan), noise)


def export(book: Book, path: Path) -> Path:
    """Write all releases: as CSV, as JSON, or as drafts for the registry of deployments.

    Raises:
        InputError: if the ending is of none of them, or the file cannot be written.
    """
    render = renderer_of(path)
    return files.write(path, render(records_of(book)))


def renderer_of(path: Path) -> Callable[[dict[str, Any]], str]:
    """Return what writes an export of that name.

    Raises:
        InputError: if the ending is of none.
    """
    renderers = {".csv": _csv, ".json": _json, ".registry.yaml": _registry}
    for ending, render in renderers.items():
        if path.name.endswith(ending):
            return render
    raise InputError(
        f"output {files.shown(path)} has an unknown ending; use one of {', '.join(renderers)}."
    )


def records_of(book: Book) -> dict[str, Any]:
    """Return all records of one state of the book, and the head of its log."""
    with book.reading() as connection:
        head = connection.execute(text("SELECT book, lines, hash FROM head")).mappings().one()
        made: dict[str, Any] = dict(head)
        for table in ("dataset", "budget", "release"):
            rows = connection.execute(text(f"SELECT record FROM {table}"))
            made[f"{table}s"] = [json.loads(each.record) for each in rows]
        named = {own[plan] for own in made["releases"] for plan in ("plan", "ran")}
        rows = connection.execute(text("SELECT hash, record FROM plan"))
        made["plans"] = [json.loads(each.record) for each in rows if each.hash in named]
    made["plans"].sort(key=files.canonical_json)
    for table in ("datasets", "budgets"):
        made[table].sort(key=lambda record: str(record["name"]))
    made["releases"].sort(key=lambda record: int(record["id"][1:]))
    return made


def _json(whole: dict[str, Any]) -> str:
    """Return one release a line: quick to write, and to compare."""
    releases = ",\n".join(map(files.canonical_json, whole["releases"]))
    rest = {name: value for name, value in whole.items() if name != "releases"}
    return f'{files.canonical_json(rest)[:-1]},"releases":[\n{releases}\n]}}\n'


def _csv(whole: dict[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: unformula(v) for k, v in each.items()} for each in whole["releases"])
    return out.getvalue()


_SLUG, _DATE = "slug-of-the-release", "date-of-the-release"


def _registry(whole: dict[str, Any]) -> str:
    """Return one document for each release; what differs among those of one plan is put in."""
    plans = {plan.hash: plan for plan in map(Plan.from_dict, whole["plans"])}
    budgets = {each["name"]: BudgetRecord.from_dict(each) for each in whole["budgets"]}
    drafts: dict[tuple[str, str, str], str] = {}
    documents = [REGISTRY_HEAD]
    for record in whole["releases"]:
        kind = record["plan"], record["dataset"], record["purpose"]
        if kind not in drafts:
            deltas = [budgets[name].limit.point[1] for name in record["charged"]]
            drafts[kind] = _draft(plans[record["plan"]], Release.from_dict(record), deltas)
        draft = drafts[kind].replace(_SLUG, f"release-{record['id'].lower()}")
        documents.append(draft.replace(_DATE, f"'{record['made'][:10]}'"))
    return "---\n".join(documents)


def _draft(plan: Plan, release: Release, deltas: Sequence[float]) -> str:
    delta = min(filter(None, deltas), default=0.0)
    proved = certify(plan, subject=SubjectRecord(release.purpose), delta=delta)
    record = registry_record(proved)
    record["url_slug"] += f"-{_SLUG}"
    basic = record["deployment"]["basic"]
    basic["publication_date"] = _DATE
    basic["intended_use"] = escaped(f"{release.purpose} ({release.dataset})")
    return registry_yaml([record])


def budget_rows(
    left: RemainingBudget, rows: Mapping[str, outcomes.SubjectRow]
) -> Iterator[outcomes.BudgetRow]:
    """Yield a row for each budget of a data set, for one more run of all subjects."""
    return (_row(each, left, rows) for each in left.left)


def _row(
    left: BudgetUsage, room: RemainingBudget, rows: Mapping[str, outcomes.SubjectRow]
) -> outcomes.BudgetRow:
    """Tell whether all subjects together fit what is left of a budget of the book."""
    known = {name: row.certificate for name, row in rows.items()}
    point = left.budget.limit.point
    row = outcomes.BudgetRow(
        f"{left.budget.name} (book)", tuple(rows), Claim(*point), outcomes.Status.ERROR
    )
    plans = {name: each.plan for name, each in known.items() if each is not None}
    if len(plans) < len(known):
        return replace(row, note="a subject could not be certified.")
    try:
        whole = in_sequence(plans)
        room.dataset.require(whole)
        times = left.times(whole)
    except InputError as error:
        return replace(row, note=str(error))
    status = outcomes.Status.EXCEEDED if times == 0 else outcomes.Status.CERTIFIED
    return replace(row, status=status, note="" if times is None else f"{times} runs are left.")
