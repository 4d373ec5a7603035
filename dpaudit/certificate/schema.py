"""The JSON Schema of certificates, and validation against it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.base.files import parse_json
from dpaudit.base.validate import shown

SCHEMA_VERSION = "dpaudit-certificate/3"
_SECOND, _FIRST = "dpaudit-certificate/2", "dpaudit-certificate/1"
_READ = {
    SCHEMA_VERSION: "certificate-3.json",
    _SECOND: "certificate-2.json",
    _FIRST: "certificate-1.json",
}
_SINCE: dict[str, dict[str, Any]] = {
    "rehearsal": {"exercised": {}, "laws": {}, "public": 0},
    "assumptions": {"alone": "assumed", "rests_on": []},
}
"""What the third schema added within a part of the second, with what is read where it is not."""
_NEWEST: dict[str, Any] = {"scope": "plan", "foreign": {}, "witness": None, "checked": None}
_WHERE_USED = {"filtered", "release"}
_NEWER: dict[str, Any] = {"assumptions": [], "rehearsal": None}


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


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of any schema with all parts of the newest: what it says, and no more.

    How a premise of the second schema stands is how it stands alone.
    """
    full = {**_NEWEST, **_NEWER, **record}
    if record["schema"] == SCHEMA_VERSION:
        return full
    if full["rehearsal"] is not None:
        full["rehearsal"] = _SINCE["rehearsal"] | full["rehearsal"]
    full["assumptions"] = [
        _SINCE["assumptions"] | each | {"alone": each["standing"]} for each in full["assumptions"]
    ]
    return full


def written_as(schema: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what an older schema does not know."""
    if schema == SCHEMA_VERSION:
        return dict(record)
    unknown = _NEWEST.keys() | _WHERE_USED | (_NEWER.keys() if schema == _FIRST else set())
    kept = {name: value for name, value in record.items() if name not in unknown}
    if kept.get("rehearsal") is not None:
        kept["rehearsal"] = _without(kept["rehearsal"], _SINCE["rehearsal"])
    if "assumptions" in kept:
        kept["assumptions"] = [
            _without(each, _SINCE["assumptions"]) for each in kept["assumptions"]
        ]
    return kept


def _without(record: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}
