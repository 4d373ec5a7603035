"""Where rows are: CSV, Parquet and DuckDB files, read as texts by a declared schema.

Nothing is detected. A file that is no table as declared is refused whole, with a sentence that says
nothing of its rows: neighbouring data sets are neighbours of the table so read.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import shown
from dpaudit.tables.expressions import quoted

_LONGEST_HEADER = 1_000_000
_LONGEST_ROW = 2**24


class Relation(NamedTuple):
    """A table as DuckDB reads it.

    Attributes:
        sql: of the relation.
        size: about how many bytes it has, by which buckets are made.
    """

    sql: str
    size: int


class Source(Protocol):
    """A table that can be read once, as texts."""

    @property
    def name(self) -> str:
        """What certificates call it: without a path, a password or a host."""

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """These columns, all of them as texts.

        Args:
            connection: to DuckDB.
            columns: as the source calls them.
            scratch: a folder that is removed afterwards, for what must be copied first.

        Raises:
            InputError: if it cannot be read, or lacks a column.
        """


@dataclass(frozen=True)
class CsvFile(Record):
    """A CSV file with a header, in UTF-8.

    Attributes:
        path: of the file.
        delimiter: between fields.
        quote: around fields; doubled within them. An empty field without quotes is NULL.
    """

    path: Path = field(default=Path())
    delimiter: str = ","
    quote: str = '"'

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            mark = getattr(self, name)
            if not isinstance(mark, str) or len(mark) != 1 or mark in "\r\n":
                raise InputError(f"{name} is {shown(mark)}; it must be one character.")

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """A reader of the whole file, of the declared dialect."""
        header = self._header()
        _require(columns, header, self.path)
        listed = ", ".join(f"{quoted(each)}: 'VARCHAR'" for each in header)
        return Relation(
            f"read_csv({quoted(str(self.path))}, columns = {{{listed}}}, header = true, "
            f"auto_detect = false, delim = {quoted(self.delimiter)}, quote = {quoted(self.quote)}, "
            f"escape = {quoted(self.quote)}, nullstr = '', allow_quoted_nulls = false, "
            "strict_mode = true, ignore_errors = false, encoding = 'utf-8', "
            f"null_padding = false, max_line_size = {_LONGEST_ROW}, "
            "parallel = false)",  # which guesses where rows begin, wrongly within quotes
            self.path.stat().st_size,
        )

    def _header(self) -> list[str]:
        _require_file(self.path)
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                text = file.readline(_LONGEST_HEADER)
        except (OSError, UnicodeError):
            raise _unreadable(self.path) from None
        rows = list(csv.reader([text], delimiter=self.delimiter, quotechar=self.quote))
        names = rows[0] if rows else []
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"source {files.shown(self.path)} has no header, or names a column twice."
            )
        return names


@dataclass(frozen=True)
class ParquetFile(Record):
    """A Parquet file.

    Attributes:
        path: of the file.
    """

    path: Path = field(default=Path())

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """The declared columns as texts."""
        _require_file(self.path)
        return _texts(connection, f"read_parquet({quoted(str(self.path))})", columns, self.path)


@dataclass(frozen=True)
class DuckDbFile(Record):
    """A table of a DuckDB file, which is only read.

    Attributes:
        path: of the file.
        table: its name there.
    """

    path: Path = field(default=Path())
    table: str = ""

    @property
    def name(self) -> str:
        """The name of the file and of the table."""
        return f"{self.path.name}:{self.table}"

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """The declared columns as texts."""
        _require_file(self.path)
        duckdb = optional_import("tables", "duckdb", what="a release of a table")
        try:
            connection.execute(f"ATTACH {quoted(str(self.path))} AS source (READ_ONLY)")
        except duckdb.Error:
            raise _unreadable(self.path) from None
        name = ".".join(identifier(each) for each in ("source", *self.table.split(".")))
        return _texts(connection, name, columns, self.path)


def identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _texts(connection: Any, relation: str, columns: Sequence[str], path: Path) -> Relation:
    duckdb = optional_import("tables", "duckdb", what="a release of a table")
    try:
        known = connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
        (rows,) = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
    except duckdb.Error:
        raise _unreadable(path) from None
    _require(columns, [each[0] for each in known], path)
    cast = ", ".join(f"CAST({identifier(e)} AS VARCHAR) AS {identifier(e)}" for e in columns)
    size = max(8 * len(columns) * int(rows), path.stat().st_size if path.suffix != ".duckdb" else 0)
    return Relation(f"(SELECT {cast} FROM {relation})", size)


def _require(columns: Sequence[str], known: Sequence[str], path: Path) -> None:
    for name in columns:
        if name not in known:
            listed = ", ".join(f"{each:.40}" for each in known[:20])
            raise InputError(
                f"source {files.shown(path)} has no column {shown(name)}; it has {listed}."
            )


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"source {files.shown(path)} does not exist, or is no file.")


def _unreadable(path: Path) -> InputError:
    return InputError(f"source {files.shown(path)} cannot be read as it is declared.")
