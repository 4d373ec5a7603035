"""What the owner of the data alone may see of a run, beside the certificate that all may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dpaudit import files
from dpaudit.certificate import Certificate
from dpaudit.errors import InputError


def with_owner(certificate: Certificate, path: Path) -> Certificate:
    """The certificate with the owner's results, for a report that is the owner's alone.

    Raises:
        InputError: if the certificate has no run, or the file is not what ``dpaudit run`` wrote.
    """
    if certificate.run is None:
        raise InputError("owner is given for a certificate without a run; leave it out.")
    record = files.load_json(path, what="owner's file")
    parts = [record.get(name) for name in ("summary", "series")] if _is_record(record) else []
    curves = parts[1].values() if parts and isinstance(parts[1], Mapping) else [None]
    sound = bool(parts) and isinstance(parts[0], Mapping)
    if not sound or not all(isinstance(each, list) and all(map(_number, each)) for each in curves):
        raise InputError(
            f"owner's file {files.shown(path)} must hold a summary and series of numbers, as "
            "dpaudit run writes them."
        )
    return replace(certificate, owner=record)


def _is_record(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"summary", "series"}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
