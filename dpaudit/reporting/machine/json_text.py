"""A certificate as JSON, which ``dpaudit verify`` reads, and as an in-toto Statement v1."""

from __future__ import annotations

from typing import Any, ClassVar

from dpaudit.base import files
from dpaudit.certificate import Certificate
from dpaudit.certificate.certificate import certificate_schema
from dpaudit.reporting.base import Renderer


class JsonRenderer(Renderer):
    """What :meth:`dpaudit.certificate.Certificate.save` writes."""

    name: ClassVar[str] = "json"
    suffix: ClassVar[str] = ".json"

    def render(self, *certificates: Certificate) -> str:
        """Sorted keys, two spaces, one line break at the end; several make an array."""
        records = [certificate.to_dict() for certificate in certificates]
        return files.pretty_json(records[0] if len(records) == 1 else records)


STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
"""Type of the statement, fixed by the in-toto Attestation Framework."""

_CODE_DIGEST = "dpauditCodeV1"
"""Not ``sha256``, which would name one file: a hash over the hashes of the subject's files."""


class InTotoRenderer(Renderer):
    """An unsigned statement: its subjects are the plan and the code, its predicate the certificate.

    The type of the predicate is the identifier of the certificate's JSON Schema. The plan is named
    by the SHA-256 of its canonical JSON (sorted keys, no spaces, UTF-8).
    """

    name: ClassVar[str] = "in-toto"
    suffix: ClassVar[str] = ".intoto.json"

    def render(self, *certificates: Certificate) -> str:
        """Sorted keys, two spaces, one line break at the end; several make an array."""
        statements = [certificate_statement(certificate) for certificate in certificates]
        return files.pretty_json(statements[0] if len(statements) == 1 else statements)


def certificate_statement(certificate: Certificate) -> dict[str, Any]:
    """The statement of one certificate, as :class:`InTotoRenderer` writes it."""
    record = certificate.to_dict()
    subjects = [{"name": "plan", "digest": {"sha256": certificate.plan.hash}}]
    if certificate.subject.code_hash is not None:
        code = {_CODE_DIGEST: certificate.subject.code_hash}
        subjects.insert(0, {"name": certificate.subject.name, "digest": code})
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": certificate_schema()["$id"],
        "predicate": record,
    }
