"""DSSE envelopes: a payload, its type, and who signed both.

The format, and what is signed of it (PAE), are those of DSSE 1.0 (secure-systems-lab/dsse). Reading
is stricter: bytes have one text of base64, every signature names its key, and no key signs twice.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpaudit.base import files
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.validate import shown
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

    def signed(self, key: Signer) -> Envelope:
        """The envelope with one more signature.

        Raises:
            InputError: if the key has signed it already.
        """
        name = key_id(key.public_key())
        if name in self.signatures:
            raise InputError(f"key {name:.16}… has signed it already; give another one.")
        return Envelope(self.payload, self.signatures | {name: key.sign(self._encoded())})

    def signers(self, keys: Iterable[Ed25519PublicKey]) -> frozenset[str]:
        """The ids of those keys that signed the payload; other signatures count for nothing.

        Raises:
            TamperedError: if a signature is not of the key that it names, or none is of these keys.
        """
        known = {key_id(key): key for key in keys}
        found = frozenset(known.keys() & self.signatures.keys())
        if not found:
            raise TamperedError("none of the given keys has signed this; give that of a signer.")
        for name in sorted(found):
            try:
                known[name].verify(self.signatures[name], self._encoded())
            except InvalidSignature:
                raise TamperedError(
                    f"the signature of key {name:.16}… is not of this payload: it was edited, or "
                    "comes from elsewhere."
                ) from None
        return found

    def _encoded(self) -> bytes:
        """What is signed: type and payload, each with its length."""
        kind = PAYLOAD_TYPE.encode()
        return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(self.payload), self.payload)

    def to_json(self) -> str:
        """The text of the envelope's file."""
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
        """The envelope of a file, every part of which is as it must be; no signature is checked.

        Raises:
            InputError: if it is no envelope that :meth:`to_json` could have written.
        """
        record = parsed(data, "envelope")
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


def parsed(data: bytes, what: str) -> Any:
    """The value of JSON in UTF-8, without a byte order mark or a key twice.

    Raises:
        InputError: if it is anything else.
    """
    with suppress(UnicodeDecodeError):
        return files.parse_json(data.decode(), what=what)
    raise TamperedError(f"{what} is not UTF-8 text; give the file as it was signed.")


def _has(record: Any, *keys: str) -> bool:
    return isinstance(record, dict) and record.keys() == {*keys}


def _decoded(name: str, value: Any) -> bytes:
    """The bytes of the one base64 text that they have."""
    with suppress(ValueError, TypeError):
        data = base64.b64decode(value)
        if base64.b64encode(data).decode() == value:
            return data
    raise TamperedError(f"{name} is {shown(value)}; it must be base64 with padding, on one line.")


def envelope_of(path: Path) -> Path:
    """Where the signatures of an export lie."""
    return path.with_name(path.name + ENDING)


def write_envelope(output: Path, envelope: Envelope) -> Path:
    """Write signatures, over no file but older ones."""
    if output.exists() and b'"payload' not in files.read_bytes(
        output, what="output", limit=files.MAX_JSON_BYTES
    ):
        raise InputError(
            f"output {files.shown(output)} is a file that was not signed, such as a key; give "
            "another path with -o."
        )
    return files.write(output, envelope.to_json())
