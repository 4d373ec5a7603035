"""The rows of a table as the custodian holds them, in DuckDB: read once, each with a place.

The place of a row follows from a keyed hash of its unit and values, so that nothing depends on
where it stood. Beside the real table there are two on which all is tried first: one without rows,
and one of rows that are made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import plain
from dpaudit.base.files import digest
from dpaudit.base.validate import shown
from dpaudit.plan import Plan
from dpaudit.sealed.encoders import Whole
from dpaudit.sealed.rows import Cells, Rows, Vectors
from dpaudit.sealed.table import KEYS, SYNTHETIC
from dpaudit.tables.engines.duck import Layout, connect, row_hash, rows_of, run, staged
from dpaudit.tables.engines.sources import Source
from dpaudit.tables.expressions import Expression
from dpaudit.tables.release_file import read_table
from dpaudit.tables.schema import Kind, Shape
from dpaudit.tables.synthetic import made_up

ALL_ROWS = "SELECT * FROM stored"
"""Every row that has a unit, in SQL."""


UNITS_TO_TRY, _ROWS_OF_UNIT = 10, 4
"""Made-up units, the first of a table, and how many rows each of them has on average."""


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
        given = toml_tables.table("table", record, KEYS)
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


def with_data(table: ReadTable, data: str, folder: Path, rng: np.random.Generator) -> ReadTable:
    """The table with other rows, of the same schema.

    Args:
        table: as it was declared.
        data: ``synthetic N``, for as many made-up rows.
        folder: for made-up rows.
        rng: of these.

    Raises:
        InputError: if data are named otherwise.
    """
    found = SYNTHETIC.fullmatch(data)
    if found is None or not int(found[1]):
        raise InputError(f"data is {shown(data)}; it must be a path, or 'synthetic N'.")
    return replace(table, source=made_up(table.layout, int(found[1]), rng, folder, table.roster))


class Store:
    """Rows in one connection.

    Args:
        connection: of DuckDB.
        folders: of buckets that :func:`~dpaudit.tables.engines.duck.staged` wrote.
        table: as it was declared.
        secret: key of the hash by which the rows of a unit are ordered.
    """

    def __init__(
        self, connection: Any, folders: Sequence[Path], table: ReadTable, secret: bytes
    ) -> None:
        import pyarrow as pa

        self._connection = connection
        layout = table.layout
        own = f"SELECT * FROM ({rows_of(folders, layout)}) WHERE u IS NOT NULL"
        named = f"SELECT DISTINCT u FROM ({own})"
        if table.roster:  # of whom some may have no rows; rows of others are of no unit
            named = "SELECT u FROM roster"
            connection.register("roster", pa.table({"u": pa.array(table.roster, pa.string())}))
        run(
            connection,
            "CREATE TABLE units AS SELECT u, row_number() OVER (ORDER BY u) - 1 AS code "
            f"FROM ({named})",
        )
        order = f"{row_hash(layout, secret)}, {', '.join(layout.carriers)}"
        run(
            connection,
            f"CREATE TABLE stored AS SELECT units.code, row_number() OVER (ORDER BY {order}) "
            f"AS place, {', '.join(layout.carriers)} FROM ({own}) JOIN units USING (u)",
        )

    def units(self) -> list[str]:
        """The names of all units, in the order of their codes."""
        return list(self._codes)

    def codes_of(self, names: Sequence[str]) -> list[int]:
        """The code of each of some units of the roster."""
        return [self._codes[name] for name in names]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return dict(self._run("SELECT u, code FROM units ORDER BY code").fetchall())

    def sample(self, table: str, codes: Sequence[int]) -> None:
        """Keep the codes of units that were drawn."""
        self._run(f"CREATE OR REPLACE TABLE {table} (code BIGINT)")
        if codes:
            listed = ", ".join(f"({code})" for code in codes)
            self._run(f"INSERT INTO {table} VALUES {listed}")

    def divide(self, sql: str) -> None:
        """Keep the rows with the key of their unit."""
        self._run(f"CREATE OR REPLACE TABLE divided AS {sql}")

    def values(self, vectors: Vectors) -> tuple[Whole, NDArray[Any]]:
        """The code of the unit of each row, and its number or array, in the order of places."""
        codes, whole = self._wholes(vectors)
        return codes, vectors.numbers(whole)

    def encodings(self, vectors: Vectors) -> tuple[Whole, Whole]:
        """As :meth:`values`, in whole numbers of the step, shape (n, entries)."""
        codes, whole = self._wholes(vectors)
        return codes, vectors.encodings(whole)

    def _wholes(self, vectors: Vectors) -> tuple[Whole, Whole]:
        codes, *entries = self._columns(vectors.rows, vectors.parts)
        whole = np.stack(entries, axis=1) if entries else np.empty((len(codes), 0), dtype=np.int64)
        return codes, whole

    def cells(self, cells: Cells) -> tuple[Whole, Whole]:
        """The code of the unit of each row, and the number of its cell."""
        groups = [f"({each.sql})::BIGINT" for each in cells.groups.columns]
        codes, *places = self._columns(cells.rows, groups)
        return codes, cells.numbers(places)

    def codes(self, rows: Rows) -> Whole:
        """The code of the unit of each row."""
        return self._columns(rows, [])[0]

    def keys(self, rows: Rows, column: Expression) -> tuple[Whole, list[Any]]:
        """The code of the unit of each row that has a value, and the value."""
        rows_sql = f"SELECT code, {column.sql} AS k, place FROM ({rows.sql})"
        found = self._run(f"SELECT code, k FROM ({rows_sql}) WHERE k IS NOT NULL ORDER BY place")
        pairs = found.fetchall()
        whole = column.kind is not Kind.TEXT
        codes = np.array([code for code, _ in pairs], dtype=np.int64)
        return codes, [int(key) if whole else str(key) for _, key in pairs]

    def records(self, rows: Rows) -> list[tuple[int, dict[str, list[Any]]]]:
        """The code of each unit that has rows, and these, by column."""
        names = list(rows.known)
        shapes = [rows.known[name].shape for name in names]
        listed = "".join(f", {rows.known[name].sql} AS x{n}" for n, name in enumerate(names))
        found = self._run(f"SELECT code{listed} FROM ({rows.sql}) ORDER BY code, place").fetchall()
        units = []
        for code, group in groupby(found, itemgetter(0)):
            _, *columns = zip(*group, strict=True)
            natural = [
                [_natural(each, shape) for each in column]
                for column, shape in zip(columns, shapes, strict=True)
            ]
            units.append((code, dict(zip(names, natural, strict=True))))
        return units

    def keep(self, table: str, codes: Sequence[int], values: Whole) -> None:
        """Keep an array of whole numbers for each of some units."""
        import pyarrow as pa

        columns = {"code": pa.array(codes, pa.int64()), "place": pa.array(codes, pa.int64())}
        columns |= {f"x{n}": pa.array(column) for n, column in enumerate(values.T)}
        self._connection.register("given", pa.table(columns))
        self._run(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM given")
        self._connection.unregister("given")

    def _columns(self, rows: Rows, parts: Sequence[str]) -> list[Whole]:
        names = ["code", *(f"x{n}" for n in range(len(parts)))]
        listed = "".join(f", {sql} AS x{n}" for n, sql in enumerate(parts))
        found = self._run(f"SELECT code{listed} FROM ({rows.sql}) ORDER BY place").fetchnumpy()
        return [np.ascontiguousarray(found[name], dtype=np.int64) for name in names]

    def _run(self, sql: str) -> Any:
        return run(self._connection, sql)


def _natural(steps: Any, shape: Shape) -> Any:
    """A value as a function sees it: a number, a text, a date as text, or None."""
    if steps is None or shape.kind in (Kind.TEXT, Kind.BOOLEAN):
        return steps
    if shape.kind is Kind.DATE or shape.step == 1:
        return shape.of_steps(int(steps))
    return int(steps) * shape.step.numerator / shape.step.denominator


def all_rows(table: ReadTable) -> Rows:
    """Every row that has a unit."""
    return Rows(ALL_ROWS, table.known)


def tables_to_try(table: ReadTable, plan: Plan, stack: ExitStack) -> tuple[Store, Store]:
    """The table without rows, and one of a few made-up rows: both follow from what is public.

    Args:
        table: as it was declared.
        plan: says how many units there are, where that is public.
        stack: closes both.
    """
    declared = [getattr(each.sampling, "population", UNITS_TO_TRY) for each in plan.invocations]
    rows = min(UNITS_TO_TRY, *declared) * _ROWS_OF_UNIT
    roster = sorted(table.roster)[:UNITS_TO_TRY]
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="dpaudit-")))
    source = made_up(table.layout, rows, np.random.default_rng(0), folder, roster)
    folders = stack.enter_context(staged(source, table.layout))
    connection = stack.enter_context(closing(connect(folders[0].parent)))

    def store(name: str, folders: Sequence[Path]) -> Store:
        own = stack.enter_context(closing(connection.cursor()))
        run(own, f"CREATE SCHEMA {name}")
        run(own, f"USE {name}")
        return Store(own, folders, table, b"made up")

    return store("none", folders[:1]), store("made_up", folders)


def opened(table: ReadTable, secret: bytes, stack: ExitStack) -> Store:
    """The rows.

    Args:
        table: as it was declared.
        secret: key of the order of rows.
        stack: closes them.

    Raises:
        InputError: if the table cannot be read as declared.
    """
    folders = stack.enter_context(staged(table.source, table.layout))
    connection = stack.enter_context(closing(connect(folders[0].parent)))
    return Store(connection, folders, table, secret)
