"""What is signed: in-toto statements as canonical JSON, in DSSE envelopes.

The format, and what is signed of it (PAE), are those of DSSE 1.0 (secure-systems-lab/dsse). Reading
is stricter: bytes have one text of base64, every signature names its key, no key signs twice, and a
payload is believed only if the statement that was read would be written as the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import dpaudit
from dpaudit.base import files
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.validate import shown
from dpaudit.certificate import Certificate
from dpaudit.ledger import JournalSummary
from dpaudit.reporting.machine.json_text import STATEMENT_TYPE, certificate_statement
from dpaudit.signing.keys import Signer, key_id

ENDING = ".dsse.json"
"""Of the file that holds the signatures of another."""
PAYLOAD_TYPE = "application/vnd.in-toto+json"
"""Of every payload: an in-toto statement."""
_MOST = 100
"""Signatures; every one of them takes time to check."""


@dataclass(frozen=True)
class Envelope:
    """A payload and its signatures, of which none is checked yet.

    Attributes:
        payload: the bytes that were signed.
        signatures: of them, by the id of the key.
    """

    payload: bytes
    signatures: dict[str, bytes]

    def with_signature(self, key: Signer) -> Envelope:
        """Return the envelope with one more signature.

        Raises:
            InputError: if the key has signed it already.
        """
        name = key_id(key.public_key())
        if name in self.signatures:
            raise InputError(f"key {name:.16}… has signed it already; give another one.")
        return Envelope(self.payload, self.signatures | {name: key.sign(self._encoded())})

    def signers(self, keys: Iterable[Ed25519PublicKey]) -> frozenset[str]:
        """Return the ids of those keys that signed the payload; other signatures count for nothing.

        Raises:
            TamperedError: if a signature is not of the key that it names, or none is of these keys.
        """
        known = {key_id(key): key for key in keys}
        found = frozenset(known.keys() & self.signatures.keys())
        if not found:
            raise TamperedError("none of the given keys has signed this; give the key of a signer.")
        for name in sorted(found):
            try:
                known[name].verify(self.signatures[name], self._encoded())
            except InvalidSignature:
                raise TamperedError(
                    f"the signature of key {name:.16}… does not fit this payload: it was "
                    "edited, or comes from elsewhere."
                ) from None
        return found

    def _encoded(self) -> bytes:
        """Return what is signed: type and payload, each with its length."""
        kind = PAYLOAD_TYPE.encode()
        return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(self.payload), self.payload)

    def to_json(self) -> str:
        """Return the text of the envelope's file."""
        coded = {name: base64.b64encode(each).decode() for name, each in self.signatures.items()}
        return files.pretty_json(
            {
                "payload": base64.b64encode(self.payload).decode(),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"keyid": name, "sig": sig} for name, sig in coded.items()],
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Envelope:
        """Read the envelope of a file, all of whose parts are right; no signature is checked.

        Raises:
            InputError: if it is no envelope that :meth:`to_json` could have written.
        """
        record = parse_json_bytes(data, "envelope")
        if not _has(record, "payload", "payloadType", "signatures"):
            raise TamperedError("envelope must have payload, payloadType and signatures alone.")
        kind, given = record["payloadType"], record["signatures"]
        if kind != PAYLOAD_TYPE:
            raise TamperedError(f"payloadType is {shown(kind)}; it must be {PAYLOAD_TYPE!r}.")
        if not isinstance(given, list) or not 1 <= len(given) <= _MOST:
            raise TamperedError(f"signatures must be a list of 1 to {_MOST}.")
        signatures: dict[str, bytes] = {}
        for each in given:
            if not _has(each, "keyid", "sig") or not isinstance(each["keyid"], str):
                raise TamperedError("a signature must have keyid and sig alone, which are texts.")
            if each["keyid"] in signatures:
                raise TamperedError(f"key {shown(each['keyid'])} signs twice; once is enough.")
            signatures[each["keyid"]] = _decoded("sig", each["sig"])
        return cls(_decoded("payload", record["payload"]), signatures)


def parse_json_bytes(data: bytes, what: str) -> Any:
    """Return the value of JSON in UTF-8, without a byte order mark or a key twice.

    Raises:
        InputError: if it is anything else.
    """
    with suppress(UnicodeDecodeError):
        return files.parse_json(data.decode(), what=what)
    raise TamperedError(f"{what} is not UTF-8 text; give the file as it was signed.")


def _has(record: Any, *keys: str) -> bool:
    return isinstance(record, dict) and record.keys() == {*keys}


def _decoded(name: str, value: Any) -> bytes:
    """Return the bytes of the one base64 text that they have."""
    with suppress(ValueError, TypeError):
        data = base64.b64decode(value)
        if base64.b64encode(data).decode() == value:
            return data
    raise TamperedError(f"{name} is {shown(value)}; it must be base64 with padding, on one line.")


def envelope_of(path: Path) -> Path:
    """Tell where the signatures of an export lie."""
    return path.with_name(path.name + ENDING)


def write_envelope(output: Path, envelope: Envelope) -> Path:
    """Write signatures, over no file but older ones."""
    if output.exists() and b'"payload' not in files.read_bytes(
        output, what="output", limit=files.MAX_JSON_BYTES
    ):
        raise InputError(
            f"output {files.shown(output)} is no file of signatures, and is not replaced; give "
            "another path with -o."
        )
    return files.write(output, envelope.to_json())


JOURNAL_TYPE = "urn:dpaudit:journal-head:1"
"""Type of the predicate that tells how far a journal had come."""
EXPORT_TYPE = "urn:dpaudit:book-export:1"
"""Type of the predicate that tells of which state of a book a file is."""


@dataclass(frozen=True)
class Statement:
    """A statement about subjects.

    Attributes:
        kind: type of the predicate, a URI.
        predicate: what is stated, a JSON object without ``signed_at``.
        subjects: each a name and digests.
        signed_at: when it was signed, as whoever signed first says, in UTC to the second; it is
            written into the predicate.
        signers: ids of the keys whose signatures were checked.
    """

    kind: str
    predicate: Mapping[str, Any]
    subjects: Sequence[Mapping[str, Any]]
    signed_at: datetime | None = None
    signers: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON record."""
        time = (
            {} if self.signed_at is None else {"signed_at": f"{self.signed_at:%Y-%m-%dT%H:%M:%SZ}"}
        )
        return {
            "_type": STATEMENT_TYPE,
            "subject": list(self.subjects),
            "predicateType": self.kind,
            "predicate": {**self.predicate, **time},
        }

    def envelope(self) -> Envelope:
        """Return what is to be signed, without a signature."""
        return Envelope(files.canonical_json(self.to_dict()).encode(), {})

    @classmethod
    def from_envelope(
        cls, envelope: Envelope, keys: Iterable[Ed25519PublicKey] | None
    ) -> Statement:
        """Return what an envelope states: the payload's own bytes, once its signatures hold.

        Args:
            envelope: of a statement.
            keys: some of which must have signed it; None believes nobody, and checks nothing.

        Raises:
            InputError: if a signature is wrong, none is of these keys, or the payload is none that
                :meth:`envelope` could have made.
        """
        signers = frozenset() if keys is None else envelope.signers(keys)
        record = parse_json_bytes(envelope.payload, "payload")
        with suppress(LookupError, TypeError, ValueError, RecursionError):
            predicate, subjects = dict(record["predicate"]), record["subject"]
            time = predicate.pop("signed_at", None)
            signed_at = None if time is None else datetime.fromisoformat(time)
            found = cls(record["predicateType"], predicate, subjects, signed_at, signers)
            if found.envelope().payload == envelope.payload:
                return found
        raise TamperedError("payload is not an in-toto statement in canonical JSON; sign it again.")


def statement_of(certificate: Certificate, file: str, signed_at: datetime | None) -> Statement:
    """Give a certificate, about its code, its plan and its file, which is named by its SHA-256."""
    record = certificate_statement(certificate)
    subjects = [*record["subject"], {"name": "certificate", "digest": {"sha256": file}}]
    return Statement(record["predicateType"], record["predicate"], subjects, signed_at)


def signed_certificate(statement: Statement) -> tuple[Certificate, str]:
    """Return the certificate that was signed, and the SHA-256 of its file.

    Raises:
        InputError: if it does not follow the newest schema, or the subjects are not its own.
    """
    certificate = Certificate.from_dict(statement.predicate)
    with suppress(LookupError, TypeError):
        file = statement.subjects[-1]["digest"]["sha256"]
        again = statement_of(certificate, file, statement.signed_at)
        if again.to_dict() == statement.to_dict():
            return certificate, file
    raise TamperedError("the statement's subjects or schema do not match its certificate.")


def journal_statement(content: JournalSummary, signed_at: datetime | None) -> Statement:
    """Tell how far a journal has come: whoever has this can tell a shorter or another one.

    Raises:
        InputError: if its last line was cut off.
    """
    if content.cut:
        raise InputError("the journal's last line was cut off; resume and close the ledger first.")
    predicate = {
        "journal": content.identifier,
        "lines": content.lines,
        "head": content.head,
        "closed": content.closed,
        "plan_hash": content.plan.hash,
        "releases": content.releases,
    }
    digest = {"dpauditJournalHeadV1": content.head}  # of the last line, which holds the one before
    subjects = [{"name": f"journal {content.identifier}", "digest": digest}]
    return Statement(JOURNAL_TYPE, predicate, subjects, signed_at)


def export_statement(
    book: str, lines: int, head: str, file: str, signed_at: datetime | None
) -> Statement:
    """Return a file that tells what a book held when its log had so many lines.

    Args:
        book: identifier of the book.
        lines: of its log.
        head: hash of the last of them.
        file: SHA-256 of the file.
        signed_at: when.
    """
    predicate = {"book": book, "lines": lines, "head": head, "dpaudit": dpaudit.__version__}
    subjects = [{"name": f"export of book {book}", "digest": {"sha256": file}}]
    return Statement(EXPORT_TYPE, predicate, subjects, signed_at)


def signed_export(statement: Statement) -> tuple[Mapping[str, Any], str]:
    """Return what was signed of an export, and the SHA-256 of its file.

    Raises:
        TamperedError: if it is not what :func:`export_statement` makes.
    """
    with suppress(LookupError, TypeError):
        told, file = dict(statement.predicate), statement.subjects[0]["digest"]["sha256"]
        made = told.pop("dpaudit")
        again = export_statement(**told, file=file, signed_at=statement.signed_at)
        again = replace(again, predicate={**again.predicate, "dpaudit": made})
        texts = all(isinstance(each, str) for each in (told["book"], told["head"], made, file))
        if again.to_dict() == statement.to_dict() and texts and type(told["lines"]) is int:
            return statement.predicate, file
    raise TamperedError("the statement does not have the form of a book's export; sign it again.")
