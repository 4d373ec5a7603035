"""Signing what a file says, and checking who said it.

The commands ``sign`` and ``verify`` call it. Nothing is signed that was not verified, and nothing
is read before the signature holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.applications import offered
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.validate import shown
from dpaudit.certificate import Certificate
from dpaudit.certificate.certificate import SCHEMA_VERSION, certificate_schema
from dpaudit.signing.keys import key_id, load_public, signer_of
from dpaudit.signing.policy import Policy, Seen, read_policy
from dpaudit.signing.statements import (
    ENDING,
    JOURNAL_TYPE,
    Envelope,
    Statement,
    envelope_of,
    journal_statement,
    parse_json_bytes,
    signed_certificate,
    statement_of,
    write_envelope,
)
from dpaudit.workflow.verifying import (
    Opinion,
    Verification,
    is_journal,
    read_ledger,
    require_journal,
    verification,
    verified,
)


def sign_file(
    path: Path,
    key: Path | str,
    output: Path,
    password: Callable[[], str],
    *,
    timed: bool = True,
    book: str | None = None,
    allow_work: bool = False,
) -> Path:
    """Sign a certificate or the head of a journal, after it was verified; or an envelope once more.

    Of an export the envelope lies beside it, as ``dpaudit book export --sign`` left it.

    Args:
        path: of the file.
        key: of the signer: a PKCS#8 file, or ``agent:…`` as for :func:`signer_of`.
        output: where the envelope goes.
        password: asked for that of the key.
        timed: whether a new statement says when it was signed.
        book: URL of the book that an export is of, which its log must have come to.
        allow_work: as for :func:`dpaudit.workflow.verifying.load_verified`.

    Raises:
        InputError: if something is wrong with file or key, or the key has signed it already.
    """
    now = datetime.now(UTC) if timed else None
    if book is not None and not path.name.endswith(ENDING):
        raise InputError("--book is given without the envelope of an export; leave it out.")
    if is_journal(path):
        envelope = journal_statement(read_ledger(path), now).envelope()
    else:
        data = _bytes(path)
        record = parse_json_bytes(data, "file")
        if isinstance(record, dict) and "payloadType" in record:
            envelope = Envelope.from_json(data)
            statement = Statement.from_envelope(envelope, None)
            if verify := offered("statement").get(statement.kind):
                signed = path.with_name(path.name.removesuffix(ENDING))
                verify(signed, statement, None, book, datetime.now(UTC))
                return write_envelope(output, envelope.with_signature(signer_of(key, password)))
            certificate, _ = signed_certificate(statement)
        elif isinstance(record, dict) and record.get("schema") == SCHEMA_VERSION:
            certificate = Certificate.from_dict(record)
            envelope = statement_of(certificate, files.sha256(data), now).envelope()
        else:
            raise InputError(f"{files.shown(path)} is not a {SCHEMA_VERSION!r}; certify it again.")
        verified(certificate, allow_work=allow_work)
    return write_envelope(output, envelope.with_signature(signer_of(key, password)))


def verify_signed(
    path: Path,
    keys: Sequence[Path],
    *,
    policy: Path | None = None,
    signature: Path | None = None,
    ledger: Path | None = None,
    anchor: Path | None = None,
    book: str | None = None,
    opinion_on: Opinion | None = None,
    allow_work: bool = False,
    now: datetime | None = None,
) -> Verification:
    """Check who signed an envelope, what it says, and whether that is what a policy demands.

    What is verified is what the envelope holds. A file beside it must be the one that was signed.

    Args:
        path: of the envelope; or of the file that it names.
        keys: public ones. All of them must have signed, where no policy says otherwise.
        policy: what is demanded of a certificate.
        signature: the envelope, if ``path`` is not; by default the one that lies beside an export.
        ledger: of the run that a certificate speaks of, or the one that was signed.
        anchor: as for :func:`dpaudit.workflow.verifying.verify_file`, with what follows.
        book: URL of the book that an export is of.
        opinion_on: as there.
        allow_work: as there.
        now: the time; the clock's by default.

    Raises:
        TamperedError: if a signature or anything else does not belong to what it stands beside.
        InputError: if a file is not what it must be.
    """
    demanded = None if policy is None else read_policy(policy)
    now = datetime.now(UTC) if now is None else now
    if signature is None and not path.name.endswith(ENDING) and envelope_of(path).exists():
        signature = envelope_of(path)
    statement = _open_trusted(signature or path, keys, demanded)
    at = str(statement.signed_at or "not stated")
    signed = {"signed_by": sorted(statement.signers), "signed_at": at}
    if verify := offered("statement").get(statement.kind):
        if ledger or anchor or opinion_on or signature is None:
            raise InputError(
                "an export is verified by itself: give only the export, --book, and its envelope "
                "(beside it, or by --signature)."
            )
        found: Verification = verify(path, statement, demanded, book, now)
        return found
    if book is not None:
        raise InputError("--book is given, and no export was signed; leave it out.")
    if statement.kind == JOURNAL_TYPE and not (demanded or opinion_on):
        if signature is not None and ledger is not None:
            raise InputError("--ledger is given for a ledger; give it only with a certificate.")
        _require_signed(statement, ledger if signature is None else path, anchor)
        return Verification("journal head", {**statement.predicate, **signed})
    if statement.kind != certificate_schema()["$id"]:
        raise InputError(f"what was signed is a {shown(statement.kind)}, not a certificate.")
    certificate, digest = signed_certificate(statement)
    if signature is not None and files.sha256(_bytes(path)) != digest:
        raise TamperedError(f"{files.shown(path)} differs from the file that was signed.")
    verified(certificate, allow_work=allow_work)
    journal = require_journal(certificate, ledger, anchor)
    found = verification(certificate, opinion_on=opinion_on)
    if demanded is None:
        return replace(found, facts={**found.facts, **signed})
    whole = journal is not None and journal.closed and not journal.cut
    seen = Seen(certificate, statement, now, whole, whole and anchor is not None)
    lacks = demanded.lacks(seen)
    facts = {**found.facts, **signed, "policy": "not met" if lacks else "met"}
    return replace(found, facts=facts, lacks=lacks)


def _open_trusted(path: Path, keys: Sequence[Path], policy: Policy | None) -> Statement:
    """Open what those signed whose keys are given: all, where no policy names its own."""
    if not keys:
        raise InputError("no key is given; say who must have signed with --key PUBLIC.pem.")
    trusted = {key_id(key): key for key in map(load_public, keys)}
    statement = Statement.from_envelope(Envelope.from_json(_bytes(path)), trusted.values())
    missing = sorted(trusted.keys() - statement.signers)
    if missing and (policy is None or not policy.keys):
        raise TamperedError(
            f"key {missing[0]:.16}… has not signed it; leave the key out, or have it signed."
        )
    return statement


def _require_signed(statement: Statement, ledger: Path | None, anchor: Path | None) -> None:
    """Return the journal, if it is there, ends where it was signed."""
    if ledger is None and anchor is not None:
        raise InputError("--anchor is given without a ledger; give --ledger too.")
    if ledger is not None:
        head = journal_statement(read_ledger(ledger, anchor), statement.signed_at)
        if head.to_dict() != statement.to_dict():
            raise TamperedError(
                "the journal is not the one that was signed: it is shorter, longer or different."
            )


def _bytes(path: Path) -> bytes:
    return files.read_bytes(path, what="file", limit=files.MAX_JSON_BYTES)
