"""What the owner of the data alone may see of a run, beside the certificate that all may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate


def with_owner(certificate: Certificate, path: Path) -> Certificate:
    """The certificate with the owner's results, for a report that is the owner's alone.

    Raises:
        InputError: if the certificate has no run, or the file is not what ``dpaudit run`` wrote.
    """
    if certificate.run is None:
        raise InputError("owner is given for a certificate without a run; leave it out.")
    record = files.load_json(path, what="owner's file")
    if not _is_record(record):
        raise InputError(
            f"owner's file {files.shown(path)} must hold a summary and series of numbers, as "
            "dpaudit run writes them."
        )
    return replace(certificate, owner=record)


def _is_record(value: object) -> bool:
    """Tell whether it is a summary beside curves of numbers."""
    if not isinstance(value, dict) or value.keys() != {"summary", "series"}:
        return False
    if not all(isinstance(part, Mapping) for part in value.values()):
        return False
    curves = value["series"].values()
    return all(isinstance(each, list) and all(map(_number, each)) for each in curves)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
