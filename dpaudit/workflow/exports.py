"""Signed exports of a book: who said what it held, and whether its log says the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit import files
from dpaudit.errors import InputError, TamperedError
from dpaudit.extras import require
from dpaudit.signing.envelope import Envelope
from dpaudit.signing.keys import Signer
from dpaudit.signing.policy import Policy, SeenExport
from dpaudit.signing.statements import Statement, export_statement, signed_export
from dpaudit.workflow.verifying import Verification

if TYPE_CHECKING:
    from dpaudit.book import Book

ENDING = ".dsse.json"
_MOST_BYTES = 4_000_000_000


def export_signed(book: Book, path: Path, signer: Signer, at: datetime | None) -> tuple[Path, Path]:
    """Write all releases, and beside them who says so: ``NAME.dsse.json``.

    Args:
        book: the book.
        path: of the export, whose ending says how it is written.
        signer: a private key.
        at: when it is signed, in UTC; None does not say.

    Raises:
        InputError: if the ending is of no form, or a file cannot be written.
    """
    from dpaudit.workflow.booking import records_of, renderer_of

    render, records = renderer_of(path), records_of(book)
    content = render(records)
    head = records["book"], records["lines"], records["hash"]
    stated = export_statement(*head, _sha256(content.encode()), at)
    envelope = stated.envelope().signed(signer)
    beside = envelope_of(path)
    return files.write(path, content), write_envelope(beside, envelope)


def envelope_of(path: Path) -> Path:
    """Where the signatures of an export lie."""
    return path.with_name(path.name + ENDING)


def write_envelope(output: Path, envelope: Envelope) -> Path:
    """Write signatures, over none but older ones.

    Raises:
        InputError: if there is another file.
    """
    if output.exists() and b'"payload' not in files.read_bytes(
        output, what="output", limit=files.MAX_JSON_BYTES
    ):
        raise InputError(
            f"output {files.shown(output)} is a file that was not signed, such as a key; give "
            "another path with -o."
        )
    return files.write(output, envelope.to_json())


def require_file(statement: Statement, path: Path) -> bytes:
    """The export that was signed.

    Raises:
        TamperedError: if the file is another one.
    """
    _, digest = signed_export(statement)
    data = files.read_bytes(path, what="export", limit=_MOST_BYTES)
    if _sha256(data) != digest:
        raise TamperedError(f"{files.shown(path)} is not, to the byte, the export that was signed.")
    return data


def verify_export(
    path: Path, statement: Statement, policy: Policy | None, book: str | None, now: datetime
) -> Verification:
    """Check an export against what was signed of it, and against the book where that is there.

    Args:
        path: of the export.
        statement: whose signatures hold.
        policy: what is demanded of it.
        book: URL of the book, whose log must come to the same.
        now: the time, in UTC.

    Raises:
        TamperedError: if the file is not the one that was signed, or not what the book's log adds
            up to.
        InputError: if there is no such book.
    """
    require_file(statement, path)
    stated, digest = signed_export(statement)
    behind = None if book is None else _behind(path, stated, digest, book)
    lacks = () if policy is None else policy.lacks_of_export(SeenExport(statement, now, behind))
    facts = {**stated, "signed_by": sorted(statement.signers)}
    facts["signed_at"] = str(statement.signed_at or "not stated")
    facts |= {} if policy is None else {"policy": "not met" if lacks else "met"}
    remark = f"the book has had {behind} lines since."
    return Verification("export", facts, (remark,) if behind else (), lacks=lacks)


def _behind(path: Path, stated: Any, digest: str, url: str) -> int:
    """How many lines the book has had since; its log comes to what the export says."""
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book, records_as_of
    from dpaudit.workflow.booking import renderer_of

    book = Book(url)
    try:
        records, behind = records_as_of(book, stated["lines"], stated["head"])
    finally:
        book.disconnect()
    render: Callable[[dict[str, Any]], str] = renderer_of(path)
    if records["book"] != stated["book"] or _sha256(render(records).encode()) != digest:
        raise TamperedError(
            f"{files.shown(path)} is not what the book's log came to at its line {stated['lines']}."
        )
    return behind


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
