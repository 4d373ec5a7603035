"""All that a book knows by hash, held against what this version says of it.

``dpaudit book recheck`` calls it. Whatever no longer holds is told, release by release, and the
outcome is a line of the book's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import dpaudit
from dpaudit.accounting import require_affordable
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.book import Book, Release, releases_as_logged
from dpaudit.book.records import checked_text
from dpaudit.book.store import Page, Transaction
from dpaudit.certificate import AuditRecord, Certificate, load_certificate, recomputed, verify
from dpaudit.certificate.findings import FLOAT_NOISE
from dpaudit.workflow.outcomes import SCOPE, Change, Direction, changes, same_code
from dpaudit.workflow.verifying import Verification, require_journal

_MOST_TOLD = 100
"""Releases whose sentences are in the log; of the others it has the number."""


def recheck(
    book: Book, folder: Path, *, audits: Sequence[Path] = (), by: str, allow_work: bool = False
) -> Verification:
    """Verify again every certificate and every journal that a book knows, and every charge.

    The outcome becomes a line of the book's log.

    Args:
        book: the book.
        folder: where the files are, at any depth and of any name; hashes tell which is which.
        audits: certificates with audits, made since, of the same plan and code as some of the book.
        by: who does it.
        allow_work: whether a proof may take long.

    Returns:
        Of how many releases there are files; what is broken: releases, charges of people, budgets;
        of which releases files are missing; and in ``lacks`` why something is broken.

    Raises:
        TamperedError: if the log does not hold, or the tables are not its sum.
        InputError: if a file of audits is none, a proof would take long, or the database fails.
    """
    releases, broken = releases_as_logged(book)
    certificates, journals = _found(folder, releases)
    loaded = cache(load_certificate)
    newer = {path: loaded(path) for path in audits}
    used: set[Path] = set()
    missing: dict[str, str] = {}

    @cache
    def certified(path: Path, plan: str) -> tuple[str, ...]:
        try:
            certificate = loaded(path)
        except DpAuditError as error:
            return (str(error),)
        if certificate.plan.hash != plan:
            return ("its certificate is for another plan.",)
        if not allow_work:
            require_affordable(certificate.plan)
        known = [other for other in newer if same_code(certificate, newer[other])]
        used.update(known)
        more = [audit for other in known for audit in newer[other].audits]
        try:
            return tuple(_of_certificate(certificate, more))
        except DpAuditError as error:
            return (str(error),)

    checked = 0
    for release in releases:
        own, journal = certificates.get(release.certificate), journals.get(release.journal)
        there = {"certificate": own, "journal": journal}
        lacking = [each for each in there if getattr(release, each) and there[each] is None]
        wrong = () if own is None else certified(own, release.plan)
        if journal is not None:
            wrong += _of_journal(book, release, journal, partial(loaded, own) if own else None)
        checked += any(there.values())
        wrong += broken.get(release.id, ())
        broken |= {release.id: wrong} if wrong else {}
        missing |= {release.id: ", ".join(lacking)} if lacking else {}
    unused = [f"{path} matches no certificate in the folder." for path in newer if path not in used]
    ids = {own.id for own in releases}
    told = [
        {"release" if own in ids else "of": own, "why": list(why)} for own, why in broken.items()
    ]
    counts = {"checked": checked, "missing": len(missing), "broken": len(broken)}
    _log(book, checked_text(by=by), counts, told[:_MOST_TOLD])
    facts = {"checked": checked, "broken": list(broken), "missing": missing}
    named = {own: f"release {own}" if own in ids else own for own in broken}
    lacks = tuple(f"{named[own]}: {each}" for own, said in broken.items() for each in said)
    return Verification("recheck", facts, tuple(unused), lacks=lacks)


def _found(folder: Path, releases: Iterable[Release]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Find the files that the book knows: certificates by digest, journals by name."""
    if not folder.is_dir():
        raise InputError(f"{files.shown(folder)} is not a folder; give the folder with the files.")
    digests = {own.certificate for own in releases if own.certificate}
    names = {own.journal for own in releases if own.journal}
    certificates: dict[str, Path] = {}
    journals: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.json*")):
        with suppress(DpAuditError):  # other files are there too
            if path.suffix == ".json":
                record = files.load_json(path, what="certificate")
                digest = record.get("digest") if isinstance(record, dict) else None
                if isinstance(digest, str) and digest in digests:
                    certificates.setdefault(digest, path)
            elif path.suffix == ".jsonl":
                name = _name_of(path)
                if name in names:
                    journals.setdefault(name, path)
    return certificates, journals


def _name_of(path: Path) -> str:
    """Return what a journal calls itself, whether or not it holds."""
    with files.opened(path, what="journal") as file:
        line = file.readline(files.MAX_JSON_BYTES)
    header = files.parse_json(line.decode(errors="replace"), what="journal")
    return str(header.get("journal")) if isinstance(header, dict) else ""


def _of_certificate(certificate: Certificate, audits: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield what no longer holds of a certificate, given audits that were made since."""
    now = recomputed(certificate).with_audits(audits)
    worse = [each for each in changes(certificate, now) if _matters(each, certificate)]
    yield from (f"{each}." for each in worse)
    if not worse:
        verify(certificate)


def _matters(change: Change, old: Certificate) -> bool:
    """Tell whether it is for the worse, or a finding that the certificate lacks.

    Exact samplers remove the finding on floats, which follows from every plan. Nothing is rehearsed
    here, so that what was recomputed speaks of the plan alone.
    """
    if change.what == SCOPE:
        return False
    if old.run is not None and change.what.endswith(FLOAT_NOISE):
        return False
    found = change.what.startswith(("error ", "warning ")) and change.before == "none"
    return found or change.direction is Direction.WORSE


def _of_journal(
    book: Book, release: Release, path: Path, certificate: Callable[[], Certificate] | None
) -> tuple[str, ...]:
    try:
        book.check_journal(path, release.id)
        known = None if certificate is None else certificate()
        if known is not None and (known.run or {}).get("ledger"):
            require_journal(known, path, None)
    except DpAuditError as error:
        return (str(error),)
    return ()


def _log(book: Book, by: str, counts: dict[str, int], told: list[dict[str, Any]]) -> None:
    def run(page: Page) -> None:
        page.write("rechecked", by, dpaudit=dpaudit.__version__, **counts, told=told)

    book.change(Transaction(run))
