"""Where in the source a result stands, in SARIF's terms."""

from __future__ import annotations

import re
from os.path import isfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpaudit.certificate import SubjectRecord

_FILE_AND_LINE = re.compile(r"(?P<file>[^\n]+\.\w{1,8})(?::(?P<line>\d{1,9}))?")
_PLAN_FILES = (".toml", ".json", ".yaml", ".yml")


def location(subject: SubjectRecord, at: str = "") -> dict[str, Any] | None:
    """The place that a finding names, or else the subject's own.

    Args:
        subject: of the certificate.
        at: a place in the code as ``file:line``, or the label of an invocation.

    Returns:
        A location object; None where nothing is known.
    """
    named = _FILE_AND_LINE.fullmatch(at)
    own = None if named is None or named["line"] is None else _physical(at)
    place: dict[str, Any] = {}
    if physical := own or _physical(subject.location) or _plan_file(subject):
        place["physicalLocation"] = physical
    if at and own is None:
        place["logicalLocations"] = [
            {"name": at, "fullyQualifiedName": f"{subject.name}:{at}", "kind": "member"}
        ]
    return place or None


def _plan_file(subject: SubjectRecord) -> dict[str, Any] | None:
    return _physical(subject.name) if subject.name.lower().endswith(_PLAN_FILES) else None


def _physical(place: str) -> dict[str, Any] | None:
    """``file`` or ``file:line``, as a path below the root of the source."""
    found = _FILE_AND_LINE.fullmatch(place)
    if found is None:
        return None
    path = found["file"].replace("\\", "/").lstrip("/")
    if ".." in path.split("/"):
        return None
    # A foreign name must stay a path below the root: no scheme, no host, no way up.
    uri = quote(_in_repository(path), safe="/")
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
    if found["line"] is not None and int(found["line"]) > 0:
        physical["region"] = {"startLine": int(found["line"])}
    return physical


def _in_repository(path: str) -> str:
    """A file that is seen from here as its repository sees it, which a code host goes by."""
    file = Path.cwd() / path
    roots = [folder for folder in file.parents if (folder / ".git").exists()]
    return file.relative_to(roots[0]).as_posix() if roots and isfile(file) else path  # noqa: PTH113 - of any length
