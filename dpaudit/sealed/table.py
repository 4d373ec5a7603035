"""The table of a sealed subject: where it is and what its columns may hold, declared in code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.base.fields import plain

KEYS = ("source", "unit", "columns", "derived", "join", "table", "delimiter", "quote", "roster")

SYNTHETIC = re.compile(r"synthetic (\d{1,7})")
"""Name of data that are so many made-up rows."""


def is_made_up(data: str) -> bool:
    """Tell whether it names made-up rows, and no file."""
    return SYNTHETIC.fullmatch(data) is not None


@dataclass(frozen=True)
class Table:
    """A declared table, with the keys of ``[data]`` of a release file.

    Attributes:
        source: a path, seen from the folder of the code, or a ``postgresql://`` address.
        unit: column that says whose a row is.
        columns: what each column holds, as ``{"age": {"type": "integer", "range": [0, 110]}}``.
        derived: further columns, as expressions over these.
        join: a public table that adds columns.
        table: name of a table in a database.
        delimiter: of a CSV file.
        quote: of a CSV file.
        roster: names of all units, where these are public, as under local trust; else none. A unit
            may have no rows, and rows of a unit that is not listed are left out.
    """

    source: str
    unit: str
    columns: Mapping[str, Mapping[str, Any]]
    derived: Mapping[str, str] = field(default_factory=dict)
    join: Mapping[str, Any] | None = None
    table: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    roster: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The keys of a file; those that are not given are left out."""
        found = {name: plain(getattr(self, name)) for name in KEYS}
        return {name: value for name, value in found.items() if value not in (None, {}, [])}
