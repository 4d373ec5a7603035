"""Runs that an organisation's book charges, and what it tells of all of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from dpaudit import files
from dpaudit.book import Book, Release, Reservation, Room
from dpaudit.certificate import Certificate, SubjectRecord, certify
from dpaudit.errors import DpAuditError, InputError
from dpaudit.plan import Plan
from dpaudit.project.targets import find_target, parse_settings
from dpaudit.reporting.machine.registry.renderer import (
    REGISTRY_HEAD,
    registry_record,
    registry_yaml,
)
from dpaudit.reporting.text import escaped
from dpaudit.workflow.calibrating import fitting

COLUMNS = (
    *("id", "made", "status", "dataset", "purpose", "by", "approved", "period", "plan", "ran"),
    *("request", "journal", "lines", "head", "certificate"),
)
"""Of an export as CSV."""


@dataclass(frozen=True)
class Booking:
    """Where, by whom and for what a run is charged.

    Attributes:
        book: the book.
        dataset: name of the data set.
        by: who asks.
        purpose: what it is for.
        approved: who approved it.
        request: the same one is charged once.
        period: the days whose data are read.
    """

    book: Book
    dataset: str
    by: str
    purpose: str
    approved: str = ""
    request: str | None = None
    period: str | None = None

    def reserve(self, plan: Plan) -> Reservation:
        """Charge a plan; as :meth:`dpaudit.book.Book.reserve`."""
        told = {name: value for name, value in vars(self).items() if name != "book"}
        return self.book.reserve(plan=plan, **told)

    def ran(self, reserved: Reservation, journal: Path, certificate: Certificate) -> None:
        """Close the release, with the hashes of journal and certificate."""
        digest = str(certificate.to_dict()["digest"])
        self.book.close(reserved.id, by=self.by, journal=journal, certificate=digest)

    def failed(self, reserved: Reservation, journal: Path) -> None:
        """Abandon it; where the book does not answer it stays charged as it is."""
        with suppress(DpAuditError):
            self.book.abandon(reserved.id, by=self.by, why="the run failed", journal=journal)


def planned(name: str, settings: Sequence[str]) -> Plan:
    """The plan of a plan file or a subject."""
    return find_target(name, parse_settings(settings)).plan


def noise_that_fits(room: Room, name: str) -> dict[str, tuple[str, float]] | None:
    """The least noise with which a plan file fits once; None where no noise is enough.

    Raises:
        InputError: if it is no plan file, or nothing in it says how much noise there is.
    """
    content = files.read_toml(name, what="plan file")
    return fitting(content, lambda plan: room.times(plan) != 0)


def export(book: Book, path: Path) -> Path:
    """Write all releases: as CSV, as JSON, or as drafts for the registry of deployments.

    Args:
        book: the book.
        path: of the file; its ending decides.

    Raises:
        InputError: if the ending is another one, or the file cannot be written.
    """
    for ending, render in _RENDERERS.items():
        if path.name.endswith(ending):
            return files.write(path, render(book))
    raise InputError(
        f"output {files.shown(path)} has no known ending; give one of {', '.join(_RENDERERS)}."
    )


def _csv(book: Book) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for record in _records(book):
        writer.writerow({name: _harmless(record[name]) for name in COLUMNS})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _json(book: Book) -> str:
    with book.reading() as connection:
        head = connection.execute(text("SELECT book, lines, hash FROM head")).mappings().one()
        made = {"book": head["book"], "lines": head["lines"], "head": head["hash"]}
        for table in ("dataset", "budget"):
            rows = connection.execute(text(f"SELECT record FROM {table} ORDER BY name"))
            made[f"{table}s"] = [json.loads(each.record) for each in rows]
    return files.pretty_json(made | {"releases": list(_records(book))})


def _records(book: Book) -> Iterator[dict[str, Any]]:
    with book.reading() as connection:
        rows = connection.execute(text("SELECT record FROM release"))
        records = [json.loads(each.record) for each in rows]
    yield from sorted(records, key=lambda record: int(record["id"][1:]))


def _registry(book: Book) -> str:
    """One document for each release; what differs among those of one plan is put in."""
    drafts: dict[tuple[str, str, str], str] = {}
    documents, known = [REGISTRY_HEAD], book.budgets
    for record in _records(book):
        release = Release.from_dict(record)
        kind = release.plan, release.dataset, release.purpose
        if kind not in drafts:
            deltas = [known[name].limit.point[1] for name in release.charged]
            delta = min(filter(None, deltas), default=0.0)
            drafts[kind] = _draft(book.plan(release.plan), release, delta)
        draft = drafts[kind].replace(_SLUG, f"release-{release.id.lower()}")
        documents.append(draft.replace(_DATE, f"'{release.made[:10]}'"))
    return "---\n".join(documents)


_SLUG, _DATE = "slug-of-the-release", "date-of-the-release"


def _draft(plan: Plan, release: Release, delta: float) -> str:
    proved = certify(plan, subject=SubjectRecord(release.purpose), delta=delta)
    record = registry_record(proved)
    record["url_slug"] += f"-{_SLUG}"
    record["deployment"]["basic"]["publication_date"] = _DATE
    record["deployment"]["basic"]["intended_use"] = escaped(
        f"{release.purpose} ({release.dataset})"
    )
    return registry_yaml([record])


_RENDERERS: dict[str, Callable[[Book], str]] = {
    ".csv": _csv,
    ".json": _json,
    ".registry.yaml": _registry,
}
