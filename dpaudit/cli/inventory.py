"""What is installed: subjects, mechanisms, and all else that a plan can name."""

from __future__ import annotations

from typing import Any

from dpaudit.accounting import Accountant
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.plan import Relation, Sampling
from dpaudit.project.describing import first_line, parameters
from dpaudit.project.targets import configuration, registered_subjects


def inventory() -> dict[str, Any]:
    """Everything that a user can name, as JSON values."""
    return {
        "subjects": [
            {"name": name, "about": first_line(kind.__doc__), "defaults": configuration(kind())}
            for name, kind in registered_subjects().items()
        ],
        "mechanisms": [
            {"name": name, "about": first_line(kind.__doc__), "fields": _fields(kind)}
            for name, kind in sorted(Mechanism.kinds().items())
        ],
        "factorizations": sorted(Factorization.kinds()),
        "sampling": sorted(Sampling.kinds()),
        "accountants": sorted(Accountant.kinds()),
        "relations": sorted(Relation.kinds()),
    }


def _fields(kind: type[Mechanism]) -> list[str]:
    return [
        each.name if each.default is None else f"{each.name}={each.default or 'none'}"
        for each in parameters(kind)
    ]
