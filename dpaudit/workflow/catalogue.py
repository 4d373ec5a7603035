"""Measuring the auditors on mechanisms whose losses are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.auditing.catalogue.entries import load_catalogue
from dpaudit.auditing.catalogue.floats import FloatRow, run_floats
from dpaudit.auditing.catalogue.rows import Row, false_alarms, run_catalogue

__all__ = ["DEFAULT_CATALOGUE", "CatalogueTable", "audit_catalogue"]

DEFAULT_CATALOGUE = "audits/catalogue"
"""Where a project keeps its catalogue."""


@dataclass(frozen=True)
class CatalogueTable:
    """What the auditors found on every row.

    Attributes:
        rows: mechanisms.
        floats: samplers.
    """

    rows: tuple[Row, ...]
    floats: tuple[FloatRow, ...]

    @property
    def as_expected(self) -> bool:
        """Whether every wrong row was found, and right ones no more often than the error rate."""
        sound = [row.as_expected for row in self.rows]
        return all([*sound, *(row.as_expected for row in self.floats)])

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        refuted, audits = false_alarms(self.rows)
        return {
            "rows": [row.to_dict() for row in self.rows],
            "floats": [row.to_dict() for row in self.floats],
            "false_alarms": {"refuted": refuted, "audits": audits},
            "as_expected": self.as_expected,
        }


def audit_catalogue(
    folder: Path | str,
    *,
    seed: int | None = None,
    seeds: int = 1,
    runs: int | None = None,
    progress: Callable[[Row], None] | None = None,
) -> CatalogueTable:
    """Audit every row of a catalogue folder. This runs its code.

    Args:
        folder: with an ``__init__.py`` that defines ``ENTRIES``.
        seed: the first seed; 0 where not given, so that tables can be compared.
        seeds: audits of each row.
        runs: at most so many runs an audit.
        progress: is given every row as soon as it is there.

    Raises:
        InputError: if the folder is no catalogue.
    """
    catalogue = load_catalogue(folder)
    rows = run_catalogue(
        catalogue.entries, seed=seed or 0, seeds=seeds, runs=runs, progress=progress
    )
    return CatalogueTable(rows, run_floats(catalogue.floats, draws=runs))
