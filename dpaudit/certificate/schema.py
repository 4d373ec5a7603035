"""The JSON Schema of certificates, and validation against it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from dpaudit.errors import InputError
from dpaudit.files import parse_json
from dpaudit.validate import shown

SCHEMA_VERSION = "dpaudit-certificate/2"
_READ = {SCHEMA_VERSION: "certificate-2.json", "dpaudit-certificate/1": "certificate-1.json"}


@cache
def certificate_schema(version: str = SCHEMA_VERSION) -> dict[str, Any]:
    """The schema of a version that ships with the package."""
    text = resources.files("dpaudit.certificate").joinpath(_READ[version]).read_text("utf-8")
    schema: dict[str, Any] = parse_json(text, what="schema")
    return schema


def validate_certificate(record: Mapping[str, Any]) -> None:
    """Check a certificate's structure.

    Raises:
        InputError: naming the first field that does not follow the schema.
    """
    from jsonschema import Draft202012Validator

    version = record.get("schema")
    if not isinstance(version, str) or version not in _READ:
        if {"payload", "releases"} & record.keys():
            other = "a signed envelope" if "payload" in record else "an export of a book"
            reads = "dpaudit verify FILE --key PUBLIC.pem reads it"
            raise InputError(f"the file is {other} and no certificate; {reads}.")
        known = " and ".join(map(repr, _READ))
        raise InputError(f"schema is {shown(version)}; this version reads {known}.")
    errors = Draft202012Validator(certificate_schema(version)).iter_errors(record)
    first = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if first is not None:
        place = ".".join(map(str, first.absolute_path)) or "certificate"
        message = first.message if len(first.message) <= 160 else first.message[:157] + "..."
        raise InputError(f"{place} does not follow the schema: {message}.")
