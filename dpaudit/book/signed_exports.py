"""Signed exports of a book: who said what it held, and whether its log says the same.

``dpaudit book export --sign`` writes them, ``dpaudit verify`` and ``sign`` check them. A signature
is given only to what the log itself adds up to.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.base import files
from dpaudit.base.errors import TamperedError
from dpaudit.base.optional_import import require
from dpaudit.signing.keys import Signer
from dpaudit.signing.policy import Policy
from dpaudit.signing.statements import (
    Statement,
    envelope_of,
    export_statement,
    signed_export,
    write_envelope,
)
from dpaudit.workflow.verifying import Verification

if TYPE_CHECKING:
    from dpaudit.book import Book

_MOST_BYTES = 4_000_000_000


def export_signed(book: Book, path: Path, signer: Signer, at: datetime | None) -> tuple[Path, Path]:
    """Write all releases, and beside them ``NAME.dsse.json``, which says who says so, and when.

    Raises:
        TamperedError: if the log does not hold, or the tables are not what it adds up to.
        InputError: if the ending is of no form, or a file cannot be written.
    """
    from dpaudit.book import records_as_of
    from dpaudit.book.booking import records_of, renderer_of

    render, records = renderer_of(path), records_of(book)
    if records != records_as_of(book, records["lines"], records["hash"])[0]:
        raise TamperedError("the book's tables do not agree with its log; nothing is signed.")
    content, head = render(records), (records["book"], records["lines"], records["hash"])
    stated = export_statement(*head, files.sha256(content.encode()), at)
    envelope = stated.envelope().with_signature(signer)
    return files.write(path, content), write_envelope(envelope_of(path), envelope)


def require_file(statement: Statement, path: Path) -> None:
    """Refuse a file that is not the export that was signed."""
    data = files.read_bytes(path, what="export", limit=_MOST_BYTES)
    if files.sha256(data) != signed_export(statement)[1]:
        raise TamperedError(f"{files.shown(path)} differs from the export that was signed.")


def verify_export(
    path: Path, statement: Statement, policy: Policy | None, book: str | None, now: datetime
) -> Verification:
    """Check an export against what was signed of it, a policy, and the book at a URL.

    Raises:
        TamperedError: if the file is not the one that was signed, or not what the book's log adds
            up to.
        InputError: if there is no such book.
    """
    require_file(statement, path)
    stated, digest = signed_export(statement)
    behind = None if book is None else _behind(path, stated, digest, book)
    lacks = () if policy is None else policy.lacks_of_export(statement, now, behind)
    facts = {**stated, "signed_by": sorted(statement.signers)}
    facts["signed_at"] = str(statement.signed_at or "not stated")
    facts |= {} if policy is None else {"policy": "not met" if lacks else "met"}
    remarks = (f"the book has had {behind} more lines since then.",) if behind else ()
    return Verification("export", facts, remarks, lacks=lacks)


def _behind(path: Path, stated: Any, digest: str, url: str) -> int:
    """Count how many lines the book has had since; its log comes to what the export says."""
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book, records_as_of
    from dpaudit.book.booking import renderer_of

    records, behind = records_as_of(Book(url), stated["lines"], stated["head"])
    content = renderer_of(path)(records)
    if records["book"] != stated["book"] or files.sha256(content.encode()) != digest:
        raise TamperedError(
            f"{files.shown(path)} does not agree with the book's log up to line {stated['lines']}."
        )
    return behind
