"""What is installed: subjects, mechanisms, accountants, relations."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from dpaudit.accounting import Accountant
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Relation
from dpaudit.project.targets import configuration, registered_subjects

__all__ = ["inventory"]


def inventory() -> dict[str, Any]:
    """Everything that a user can name, as JSON values."""
    return {
        "subjects": [
            {"name": name, "about": _first_line(kind.__doc__), "defaults": configuration(kind())}
            for name, kind in registered_subjects().items()
        ],
        "mechanisms": [
            {"name": name, "about": _first_line(kind.__doc__), "fields": _fields(kind)}
            for name, kind in sorted(Mechanism.kinds().items())
        ],
        "accountants": sorted(Accountant.kinds()),
        "relations": sorted(Relation.kinds()),
    }


def _first_line(docstring: str | None) -> str:
    """The summary of a docstring, without the markup of references."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", (docstring or "").strip().split("\n")[0])


def _fields(kind: type[Mechanism]) -> list[str]:
    return [
        field.name if field.default is MISSING else f"{field.name}={field.default}"
        for field in fields(kind)
        if field.compare
    ]
