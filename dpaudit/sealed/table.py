"""The table of a sealed subject: where it is and what its columns may hold, declared in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.base import toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import plain
from dpaudit.base.files import digest
from dpaudit.base.validate import shown
from dpaudit.tables.engines.duck import Layout
from dpaudit.tables.engines.sources import Source
from dpaudit.tables.expressions import Expression
from dpaudit.tables.release_file import read_table

_KEYS = ("source", "unit", "columns", "derived", "join", "table", "delimiter", "quote", "roster")


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
        roster: names of all units, where these are public, as under local trust; else none.
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
        found = {name: plain(getattr(self, name)) for name in _KEYS}
        return {name: value for name, value in found.items() if value not in (None, {}, [])}


@dataclass(frozen=True)
class ReadTable:
    """A declared table as it was read.

    Attributes:
        source: where the rows are.
        layout: how they are read.
        known: the columns, by lower-case name.
        roster: public names of all units, if there are any.
        declaration: SHA-256 of all of it.
    """

    source: Source
    layout: Layout
    known: Mapping[str, Expression]
    roster: tuple[str, ...]
    declaration: str

    @classmethod
    def of(cls, record: object, folder: Path) -> ReadTable:
        """The table of a record of :meth:`Table.to_dict`.

        Raises:
            InputError: naming the first field that is wrong.
        """
        given = toml_tables.table("table", record, _KEYS)
        roster = _roster(given.pop("roster", ()))
        source, layout, known = read_table(given, folder)
        return cls(source, layout, known, roster, digest(plain(dict(record))))  # type: ignore[call-overload]


def _roster(names: object) -> tuple[str, ...]:
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise InputError(f"roster is {shown(names)}; it must be a list of names.")
    for name in names:
        validate.text(roster=name)
    if len(set(names)) < len(names):
        raise InputError("roster has a name twice; list each unit once.")
    return tuple(names)
