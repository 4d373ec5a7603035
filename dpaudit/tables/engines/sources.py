"""Where rows are: CSV, Parquet and DuckDB files, read as texts by a declared schema.

Nothing is detected. A file that is no table as declared is refused whole, with a sentence that says
nothing of its rows: neighbouring data sets are neighbours of the table so read.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.file_content import Identity, identity_of
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import shown
from dpaudit.ledger.checks import DEBUG
from dpaudit.tables.expressions import quoted

_LONGEST_HEADER = 1_000_000
_LONGEST_ROW = 2**23
"""Longer rows may be refused, with the whole file."""
_LINE = ord("\n")
_MARKS = "\t" + "".join(map(chr, range(32, 127)))


class Relation(NamedTuple):
    """A table as DuckDB reads it.

    Attributes:
        sql: of the relation.
        size: about how many bytes it has, by which buckets are made.
        stored: the table that it is of, as DuckDB calls it, where it is one of a database.
    """

    sql: str
    size: int
    stored: str = ""


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
            if not isinstance(mark, str) or len(mark) != 1 or mark not in _MARKS:
                raise InputError(f"{name} is {shown(mark)}; it must be one character of ASCII.")
        if self.delimiter == self.quote:
            raise InputError(f"quote and delimiter are both {shown(self.quote)}; they must differ.")

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """A reader of the whole file, of the declared dialect."""
        csv_ = optional_import("tables", "pyarrow.csv", what="a table in CSV")
        string = optional_import("tables", "pyarrow", what="a table in CSV").string()
        names = self._header()
        _require(columns, names, self.path, self.delimiter)
        try:
            rows = csv_.open_csv(
                _WellQuoted(self.path, self.delimiter, self.quote),
                csv_.ReadOptions(
                    column_names=names, skip_rows_after_names=1, block_size=_LONGEST_ROW
                ),
                csv_.ParseOptions(
                    delimiter=self.delimiter, quote_char=self.quote, newlines_in_values=True
                ),
                csv_.ConvertOptions(
                    column_types=dict.fromkeys(names, string),
                    include_columns=columns,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except (OSError, ValueError):
            raise unreadable(self) from None
        name = f"csv_{len(connection.execute('SHOW TABLES').fetchall())}"
        connection.register(name, rows)
        return Relation(name, self.path.stat().st_size)

    def fault(self) -> str:
        """The first line that is none of a table as declared, and why; no value of it."""
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    with suppress(UnicodeError):
                        line.decode()
                        continue
                    return f"line {number} is not UTF-8 text; save the file as UTF-8"
            with self.path.open(encoding="utf-8-sig", newline="") as text:
                rows = csv.reader(text, delimiter=self.delimiter, quotechar=self.quote, strict=True)
                fields = len(next(rows))
                for row in filter(None, rows):
                    if len(row) != fields:
                        return f"line {rows.line_num} has {len(row)} fields, not {fields}"
        except csv.Error:
            return f"line {rows.line_num} has a wrong quote, or is too long"
        except OSError as error:
            return f"{error.strerror}"
        return "a quote is within a field without quotes, or is never closed"

    def _header(self) -> list[str]:
        _require_file(self.path)
        try:
            with self.path.open("rb") as file:
                line = file.readline(_LONGEST_HEADER).partition(b"\r")[0]
            text = line.decode("utf-8-sig").rstrip("\n")
        except (OSError, UnicodeError):
            raise unreadable(self) from None
        rows = list(csv.reader([text], delimiter=self.delimiter, quotechar=self.quote))
        names = rows[0] if rows else []
        if not names:
            what = "has no header" if self.path.stat().st_size else "is empty"
            raise InputError(
                f"source {shown(self.name)} {what}; its first line must name the columns."
            )
        first = {name: number for number, name in reversed([*enumerate(names, start=1)])}
        for number, name in enumerate(names, start=1):
            if first[name] < number:  # numbers: without a header, names are private values
                raise InputError(
                    f"source {shown(self.name)} names columns {first[name]} and {number} alike; "
                    "its first line must name each column once."
                )
        return names


class _WellQuoted(io.RawIOBase):
    """A file in which each quote opens a field, closes one, or is doubled within one.

    Readers of CSV are lenient in this: what follows an open quote is left out, or made one field.
    """

    def __init__(self, path: Path, delimiter: str, quote: str) -> None:
        self._file = path.open("rb")
        self._mark = ord(quote)
        self._beside = np.array([ord(delimiter), *b"\r\n", self._mark], dtype=np.uint8)
        self._quotes = 0
        self._last = _LINE  # as if a line had ended before the first
        if self._file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            self._file.seek(0)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        """The next bytes; the last line is ended, as it would not count where it is the header.

        Raises:
            ValueError: if a quote is wrong.
        """
        block = self._file.read(size)
        found = np.frombuffer(block, dtype=np.uint8)
        places = np.flatnonzero(found == self._mark)
        around = np.concatenate(([self._last], found, [_LINE]))
        opens = (self._quotes + np.arange(len(places))) % 2 == 0
        beside = np.where(opens, around[places], around[places + 2])
        if block and self._last == self._mark and self._quotes % 2 == 0:
            beside = np.append(beside, found[0])  # what follows the end of the block before
        self._quotes += len(places)
        if not np.isin(beside, self._beside).all() or (not block and self._quotes % 2):
            raise ValueError
        if block and len(block) < size and block[-1] not in b"\r\n":
            block += b"\n"
        if block:
            self._last = block[-1]
        return block


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
        file = quoted(glob.escape(str(self.path)))
        rows = f"read_parquet({file}, hive_partitioning = false)"
        return _texts(connection, rows, columns, self)


@dataclass(frozen=True)
class DuckDbFile(Record):
    """A table of a DuckDB file, which is only read; a view is refused.

    Attributes:
        path: of the file.
        table: its name there, with the schema where it is not ``main``.
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
        file = str(self.path.resolve())  # which may hold the public table too
        try:
            connection.execute(
                f"ATTACH IF NOT EXISTS {quoted(file)} AS {identifier(file)} (READ_ONLY)"
            )
        except duckdb.Error:
            raise unreadable(self) from None
        schema, _, table = self.table.rpartition(".")
        found = connection.execute(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE "
            "database_name = ? AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)",
            [file, schema or "main", table],
        ).fetchone()
        if found is None:
            raise no_table(self.table)
        stored = ".".join(map(identifier, found))
        return _texts(connection, stored, columns, self)._replace(stored=stored)


def files_of(path: Path) -> tuple[Path, Path]:
    """A file, and the log of a database: rows that DuckDB has yet to put there."""
    real = path.resolve()
    return real, real.with_name(f"{real.name}.wal")


def identities(source: Source) -> frozenset[Identity]:
    """Which files a source is, whatever their names."""
    path, found = getattr(source, "path", None), set()
    for each in () if path is None else files_of(path):
        with suppress(OSError):
            found.add(identity_of(each.stat()))
    return frozenset(found)


def require_public(public: Source, private: Source) -> None:
    """Refuse the private table where a public one is joined: its rows are other units' too.

    Raises:
        InputError: if both are one file of a table, or may be one table of a database.
    """
    if _may_be_one(public, private):
        raise _private()


def require_other(public: Relation, private: Relation) -> None:
    """Refuse one table of a database under two names: DuckDB says which of them are alike.

    Raises:
        InputError: if they are one.
    """
    if public.stored and public.stored == private.stored:
        raise _private()


def _private() -> InputError:
    return InputError(
        "join has the source of the private table; a joined table must be public, "
        "because every row may read all of it."
    )


def public_copy(public: Source, private: Source, scratch: Path) -> Source:
    """The public table as it is now: a file is opened once, and what was opened is copied.

    Whoever can write in its folder could else put the private table in its place after it was
    compared with it.

    Raises:
        InputError: as :func:`require_public`, of the file that was opened; or if it cannot be read.
    """
    require_public(public, private)
    if not isinstance(public, CsvFile | ParquetFile | DuckDbFile):
        return public
    _require_file(public.path)
    own, copied = identities(private), scratch / "public" / public.path.name
    try:
        copied.parent.mkdir()
        for each, place in zip(files_of(public.path), files_of(copied), strict=True):
            if each.exists():
                with each.open("rb") as file, place.open("wb") as copy:
                    if identity_of(os.fstat(file.fileno())) in own:  # another table of it, or it
                        assert isinstance(private, CsvFile | ParquetFile | DuckDbFile)
                        beside = replace(public, path=private.path)
                        require_public(beside, private)
                        return beside
                    shutil.copyfileobj(file, copy)
    except OSError as error:
        raise InputError(
            f"source {files.shown(public.path)} cannot be copied to the folder of temporary files: "
            f"{error.strerror}."
        ) from None
    return replace(public, path=copied)


def _may_be_one(source: Source, other: Source) -> bool:
    """Whether two sources may be one table, which has many names in a database and its address."""
    one, two = (getattr(each, "path", None) for each in (source, other))
    if (one is None) != (two is None):
        return False
    (schema, _, name), (its_schema, _, its_name) = _names(source), _names(other)
    if one is None or two is None:
        return name == its_name and (schema == its_schema or not (schema and its_schema))
    same = files_of(one) == files_of(two) or bool(identities(source) & identities(other))
    if same and isinstance(source, DuckDbFile) and isinstance(other, DuckDbFile):
        mine, its = (schema or "main", name), (its_schema or "main", its_name)
        return [*map(str.lower, mine)] == [*map(str.lower, its)]
    return same


def _names(source: Source) -> tuple[str, str, str]:
    """The schema of a table of a database, if it is named, a dot, and the table's own name."""
    schema, dot, name = getattr(source, "table", "").rpartition(".")
    return schema, dot, name


def identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _texts(
    connection: Any, relation: str, columns: Sequence[str], source: ParquetFile | DuckDbFile
) -> Relation:
    path = source.path
    duckdb = optional_import("tables", "duckdb", what="a release of a table")
    try:
        known = connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
        (rows,) = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
    except duckdb.Error:
        raise unreadable(source) from None
    _require(columns, [each[0] for each in known], path)
    cast = ", ".join(f"TRY_CAST({identifier(e)} AS VARCHAR) AS {identifier(e)}" for e in columns)
    size = max(8 * len(columns) * int(rows), path.stat().st_size if path.suffix != ".duckdb" else 0)
    return Relation(f"(SELECT {cast} FROM {relation})", size)


def _require(columns: Sequence[str], known: Sequence[str], path: Path, delimiter: str = "") -> None:
    other = {mark for mark in ",;|\t" if delimiter and len(known) == 1 and mark in known[0]}
    for name in columns:
        if name not in known:
            listed = ", ".join(f"{each:.40}" for each in known[:20])
            hint = f"; if {min(other)!r} separates columns, set delimiter to it." if other else "."
            raise InputError(
                f"source {shown(path.name)} has no column {shown(name)}; it has {listed}{hint}"
            )


def _require_file(path: Path) -> None:
    with suppress(OSError):  # of a name that is too long for one
        if path.is_file():
            return
    raise InputError(f"source {files.shown(path)} does not exist, or is not a file.")


def unreadable(source: Source | None) -> InputError:
    """That rows are no table as declared; which of them, only where its owner asks for it."""
    named = "rows" if source is None else shown(source.name)
    said = f"source {named} cannot be read as it is declared"
    if not isinstance(source, CsvFile):
        return InputError(f"{said} (format, encoding, or impossible dates and times).")
    if os.environ.get(DEBUG):
        return InputError(f"{said}: {source.fault()}.")
    return InputError(
        f"{said} (dialect, text that is not UTF-8, or rows with another number of fields than the "
        f"header); the line is private, and {DEBUG}=1 names it."
    )


def no_table(name: str) -> InputError:
    """That a database has no stored table of that name.

    A view can make each row of all rows, by windows, joins or duplicates that are left out; what is
    enforced of units would then be false. In a table it is assumed that it does not.
    """
    return InputError(
        f"table {shown(name)} is not a stored table of the database; in place of a view, "
        "create one whose rows hold data of their own unit alone, with CREATE TABLE … AS."
    )
