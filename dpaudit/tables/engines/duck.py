"""DuckDB: rows are read once, cast by the schema, and worked off in buckets of whole units.

The rows lie in a scratch file of their own while they are worked off, as numbers of steps; the file
and its folder are removed, whatever happens. All rows of a unit are in one bucket, so that buckets
bound the memory, and can be computed anywhere: their whole numbers are added. Which rows of a unit
count follows from a keyed hash of the rows themselves; where a unit has no more than may count, no
hash is needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.tables.engines.sources import Source, identifier
from dpaudit.tables.expressions import Expression, quoted
from dpaudit.tables.measures import Aggregate, Measure, Measured, Selection, empty
from dpaudit.tables.schema import Column, Kind, Shape

_MEMORY = "600MB"
_ROWS_OF_BUCKET = 1_500_000
_MOST_BUCKETS = 256


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are read.

    Attributes:
        unit: column that says whose a row is.
        columns: declared ones, whose carriers are ``c0``, ``c1``, …
        derived: expressions over these, whose carriers are ``d0``, ``d1``, …
        public: a public table that is joined, if there is one.
    """

    unit: str
    columns: tuple[Column, ...]
    derived: tuple[Expression, ...] = ()
    public: PublicTable | None = None

    @property
    def joined(self) -> tuple[Column, ...]:
        """All columns that are read, those of the public table last."""
        return (*self.columns, *(self.public.columns if self.public else ()))

    @property
    def carriers(self) -> dict[str, Kind]:
        """What each carrier is, in a fixed order: of these the rows of a unit are told apart."""
        own = {f"c{n}": each.shape.kind for n, each in enumerate(self.joined)}
        return own | {f"d{n}": each.kind for n, each in enumerate(self.derived)}


@dataclass(frozen=True)
class PublicTable:
    """A public table, with one row for each value of a key.

    Attributes:
        source: where it is.
        key: its column that is equal to a column of the private table.
        on: that column of the private table.
        columns: what it adds.
    """

    source: Source
    key: str
    on: str
    columns: tuple[Column, ...]


def measured(
    source: Source, layout: Layout, measures: Sequence[Measure], secret: bytes
) -> Measured:
    """All measures of a table.

    Args:
        source: where the table is.
        layout: how it is read.
        measures: what is computed.
        secret: key of the hash that chooses among rows of a unit.

    Raises:
        InputError: if the table cannot be read as declared.
        UnsupportedError: if DuckDB is not installed.
    """
    with staged(source, layout) as (connection, buckets, rows):
        found = Measured(rows=rows)
        for bucket in range(buckets):
            found.add(measured_bucket(connection, layout, measures, secret, bucket))
    return found


@contextmanager
def staged(source: Source, layout: Layout) -> Iterator[tuple[Any, int, dict[str, int]]]:
    """A connection to the rows as carriers, the number of buckets, and what became of the rows.

    The table ``rows`` has ``u``, the unit, ``b``, its bucket, and the carriers.

    Raises:
        InputError: if the table cannot be read as declared, or there is no room for it.
    """
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:  # of mode 0700
        scratch = Path(folder)
        connection = connect(scratch / "rows.duckdb", scratch)
        try:
            relation = source.relation(connection, _columns_of(layout), scratch)
            table = _table_of(connection, layout, relation, scratch)
            run(connection, f"CREATE TABLE read AS {_read(layout, table)}", source.name)
            counts = _counts(connection, layout)
            buckets = -(-counts["rows"] // _ROWS_OF_BUCKET) or 1
            buckets = min(buckets, _MOST_BUCKETS)
            kept = "SELECT * EXCLUDE (cut, lost) FROM read WHERE u IS NOT NULL"
            run(connection, f"CREATE VIEW rows AS SELECT *, hash(u) % {buckets} AS b FROM ({kept})")
            yield connection, buckets, counts
        finally:
            connection.close()


def connect(path: Path | str, scratch: Path) -> Any:
    """A connection that reads what it is told alone, and loads nothing from a network."""
    duckdb = optional_import("tables", "duckdb", what="a release of a table")
    return duckdb.connect(
        str(path),
        config={
            "memory_limit": _MEMORY,
            "threads": str(min(os.cpu_count() or 1, 8)),
            "temp_directory": str(scratch),
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )


def run(connection: Any, sql: str, name: str = "") -> Any:
    """Run a statement; what the engine says of an error may hold a value, and is not told.

    Raises:
        InputError: in words of our own.
    """
    duckdb = optional_import("tables", "duckdb", what="a release of a table")
    try:
        return connection.execute(sql)
    except duckdb.Error as error:
        kind = type(error).__name__
        if kind in ("OutOfMemoryException", "IOException"):
            raise InputError(
                f"source {name or 'rows'} cannot be worked off: there is too little memory or room "
                "in the folder of temporary files; set TMPDIR to a larger one."
            ) from None
        if kind == "InterruptException":
            raise KeyboardInterrupt from None
        raise InputError(
            f"source {name or 'rows'} cannot be read as it is declared (dialect, encoding, or rows "
            "with another number of fields)."
        ) from None


# -- reading -------------------------------------------------------------------------------------


def _columns_of(layout: Layout) -> list[str]:
    names = [layout.unit, *(each.name for each in layout.columns)]
    if layout.public is not None:
        names.append(layout.public.on)
    return list(dict.fromkeys(names))


def _table_of(connection: Any, layout: Layout, relation: str, scratch: Path) -> str:
    """The private table with what the public one adds, in texts."""
    own = ", ".join(f"p.{identifier(each.name)} AS t{n}" for n, each in enumerate(layout.columns))
    unit = f"p.{identifier(layout.unit)} AS u"
    public = layout.public
    if public is None:
        return f"(SELECT {unit}, {own} FROM {relation} AS p)"
    names = list(dict.fromkeys([public.key, *(each.name for each in public.columns)]))
    added = public.source.relation(connection, names, scratch)
    run(connection, f"CREATE TEMP TABLE public AS SELECT * FROM {added}", public.source.name)
    key = identifier(public.key)
    twice = f"SELECT 1 FROM public WHERE {key} IS NOT NULL GROUP BY {key} HAVING count(*) > 1"
    if run(connection, f"{twice} LIMIT 1").fetchone():
        raise InputError(
            f"table {public.source.name} has a value of {public.key!r} in two rows; each must have "
            "one, so that a row stays one row."
        )
    more = ", ".join(
        f"q.{identifier(each.name)} AS t{len(layout.columns) + n}"
        for n, each in enumerate(public.columns)
    )
    on = f"p.{identifier(public.on)} = q.{key}"
    return f"(SELECT {unit}, {own}, {more} FROM {relation} AS p LEFT JOIN public AS q ON {on})"


def _read(layout: Layout, table: str) -> str:
    """Carriers, and which of them were cut or lost, as bits."""
    read, carried, cut, lost = [], [], ["0::HUGEINT"], ["0::HUGEINT"]
    for n, column in enumerate(layout.joined):
        shape = column.shape
        read.append(f"{_parsed(f't{n}', shape)} AS r{n}")
        carried.append(f"{_carrier(f'r{n}', shape)} AS c{n}")
        bit = f"{2**n}::HUGEINT"
        lost.append(f"CASE WHEN t{n} IS NOT NULL AND r{n} IS NULL THEN {bit} ELSE 0 END")
        if shape.kind.is_whole and shape.values is None:
            low, high = (_end(end, shape) for end in (shape.low, shape.high))
            cut.append(f"CASE WHEN r{n} < {low} OR r{n} > {high} THEN {bit} ELSE 0 END")
    raw = ", ".join(f"t{n}" for n in range(len(layout.joined)))
    parsed = f"SELECT CASE WHEN u = '' THEN NULL ELSE u END AS u, {raw}, {', '.join(read)}"
    bits = f"{' + '.join(cut)} AS cut, {' + '.join(lost)} AS lost"
    base = f"SELECT u, {', '.join(carried)}, {bits} FROM ({parsed} FROM {table})"
    if not layout.derived:
        return base
    derived = ", ".join(f"{each.sql} AS d{n}" for n, each in enumerate(layout.derived))
    return f"SELECT *, {derived} FROM ({base})"


def _parsed(text: str, shape: Shape) -> str:
    """A text as it is, a truth value, days, or a finite float; NULL where it is none."""
    if shape.kind is Kind.TEXT:
        return text
    if shape.kind is Kind.BOOLEAN:
        return f"TRY_CAST({text} AS BOOLEAN)"
    if shape.kind is Kind.DATE:
        day = f"TRY_CAST(TRY_CAST({text} AS TIMESTAMP) AS DATE)"
        return f"CASE WHEN isfinite({day}) THEN {day} - DATE '1970-01-01' END"
    number = f"TRY_CAST({text} AS DOUBLE)"
    finite = f"isfinite({number})"
    if shape.kind is Kind.INTEGER:
        finite += f" AND {number} = trunc({number})"
    return f"CASE WHEN {finite} THEN {number} END"


def _end(steps: int, shape: Shape) -> str:
    """An end of a range, in the unit of what was parsed."""
    if shape.kind is Kind.NUMBER:
        return repr(float(steps * shape.step)) + "::DOUBLE"
    return str(steps)


def _carrier(parsed: str, shape: Shape) -> str:
    """What is carried of what was parsed."""
    if not shape.kind.is_whole:
        return parsed
    if shape.values is not None:  # listed integers: another one is none of them
        listed = ", ".join(map(str, shape.values))
        return f"CAST(CASE WHEN {parsed} IN ({listed}) THEN {parsed} END AS BIGINT)"
    low, high = (_end(end, shape) for end in (shape.low, shape.high))
    within = f"least(greatest({parsed}, {low}), {high})"
    if shape.kind is Kind.NUMBER:
        up, down = shape.step.denominator, shape.step.numerator
        within = f"round({within} * {up} / {down})"
        within = f"least(greatest({within}, {shape.low}), {shape.high})"
    whole = f"CASE WHEN {parsed} IS NOT NULL THEN {within} END"  # least of a NULL is the other
    return f"CAST({whole} AS BIGINT)"


def _counts(connection: Any, layout: Layout) -> dict[str, int]:
    """What became of the rows, for the owner alone."""
    asked = {"rows": "count(*)", "rows without a unit": "count(*) FILTER (u IS NULL)"}
    for n, column in enumerate(layout.joined):
        for word, bits in (("outside its range", "cut"), ("not as its type", "lost")):
            bit = f"(({bits} // {2**n}::HUGEINT) % 2 = 1)"
            asked[f"values of {column.name} {word}"] = f"count(*) FILTER ({bit})"
    (found,) = run(connection, f"SELECT {', '.join(asked.values())} FROM read").fetchall()
    kept = ("rows", "rows without a unit")
    return {
        name: int(count) for name, count in zip(asked, found, strict=True) if count or name in kept
    }


# -- measuring -----------------------------------------------------------------------------------


def measured_bucket(
    connection: Any, layout: Layout, measures: Sequence[Measure], secret: bytes, bucket: int
) -> Measured:
    """The measures of the rows of one bucket, from the table ``rows``."""
    found = Measured()
    by_selection: dict[Selection, list[Measure]] = {}
    for measure in measures:
        by_selection.setdefault(measure.selection, []).append(measure)
    for selection, own in by_selection.items():
        _measure(connection, layout, selection, own, secret, bucket, found)
    return found


def _measure(
    connection: Any,
    layout: Layout,
    selection: Selection,
    measures: Sequence[Measure],
    secret: bytes,
    bucket: int,
    found: Measured,
) -> None:
    values = [f"{each.value} AS v{n}" for n, each in enumerate(measures) if each.value]
    columns = ["u", f"{selection.cell} AS g", *values]
    base = f"SELECT {', '.join(columns)}"
    where = f"FROM rows WHERE b = {bucket} AND ({selection.where})"
    kept = f"{base} {where}"
    if selection.rows is not None or selection.groups is not None:
        run(connection, f"CREATE OR REPLACE TEMP TABLE heavy AS {_heavy(selection, where)}")
        kept = _bounded(layout, selection, columns, where, secret)
    run(connection, f"CREATE OR REPLACE TEMP TABLE kept AS {kept}")
    for n, measure in enumerate(measures):
        _aggregate(connection, measure, f"v{n}", found)
    _compare(connection, selection, measures, f"({base} {where})", found)


def _compare(
    connection: Any, selection: Selection, measures: Sequence[Measure], base: str, found: Measured
) -> None:
    """What the bounds left out, for the owner alone."""
    (left,) = run(connection, "SELECT count(*) FROM kept").fetchone()
    summed = [n for n, each in enumerate(measures) if each.aggregate in _ADDED]
    wholes = {n: empty(measures[n]) for n in summed}
    every = 0
    sums = [_COUNTED[measures[n].aggregate](f"v{n}") for n in summed]
    cell = "g" if selection.cells else "0"
    sql = f"SELECT {', '.join([cell, 'count(*)', *sums])} FROM {base} GROUP BY ALL"
    for cell_number, rows, *numbers in run(connection, sql).fetchall():
        every += int(rows)
        for n, number in zip(summed, numbers, strict=True):
            wholes[n][int(cell_number), 0] = int(number)
    found.unbounded |= {measures[n].at: whole for n, whole in wholes.items()}
    if every > left:
        found.dropped |= {measure.at: every - int(left) for measure in measures}


def _heavy(selection: Selection, where: str) -> str:
    """The units that have more than may count."""
    more = []
    if selection.rows is not None:
        more.append(f"count(*) > {selection.rows}")
    if selection.groups is not None:
        more.append(f"count(DISTINCT {selection.cell}) > {selection.groups}")
    return f"SELECT u {where} GROUP BY u HAVING {' OR '.join(more)}"


def _bounded(
    layout: Layout, selection: Selection, columns: Sequence[str], where: str, secret: bytes
) -> str:
    """All rows of units that have few, and of each other unit the first in the order of hashes."""
    listed = ", ".join(columns)
    names = [each.rpartition(" AS ")[2] for each in columns]
    order = ", ".join(layout.carriers)
    hashed = _hash(layout, secret)
    light = f"SELECT {listed} {where} AND u NOT IN (SELECT u FROM heavy)"
    many = f"{where} AND u IN (SELECT u FROM heavy)"
    fields = ", ".join(f"{name} := {name}" for name in names if name != "u")
    if selection.groups is None:
        rows = f"SELECT {listed}, {hashed} AS h {many}"
        first = f"arg_min(struct_pack({fields}), h, {selection.rows})"
        picked = f"SELECT u, unnest({first}) AS s FROM ({rows}) GROUP BY u"
        chosen = (
            f"SELECT u, {', '.join(f's.{name}' for name in names if name != 'u')} FROM ({picked})"
        )
        return f"{light} UNION ALL {chosen}"
    rows = f"SELECT {listed}, {hashed} AS h, {order} {many}"
    first = f"SELECT *, min(h) OVER (PARTITION BY u, g) AS f FROM ({rows})"
    ranked = f"SELECT *, dense_rank() OVER (PARTITION BY u ORDER BY f, g) AS r FROM ({first})"
    within = f"SELECT * FROM ({ranked}) WHERE r <= {selection.groups}"
    chosen = f"SELECT {', '.join(names)} FROM ({within})"
    if selection.rows is not None:
        place = f"row_number() OVER (PARTITION BY u ORDER BY h, {order}) AS n"
        numbered = f"SELECT *, {place} FROM ({within})"
        chosen = f"SELECT {', '.join(names)} FROM ({numbered}) WHERE n <= {selection.rows}"
    return f"{light} UNION ALL {chosen}"


def _hash(layout: Layout, secret: bytes) -> str:
    """SHA-256 of the secret, the unit and the typed values of the row."""
    parts = [quoted(secret.hex()), "strlen(u)", "':'", "u"]
    for name, kind in layout.carriers.items():
        if kind is Kind.TEXT:
            parts.append(f"coalesce('t' || strlen({name}) || ':' || {name}, 'n')")
        else:
            tag = "b" if kind is Kind.BOOLEAN else "i"
            parts.append(f"coalesce('{tag}' || {name} || ';', 'n')")
    return f"sha256(concat({', '.join(parts)}))"


def _aggregate(connection: Any, measure: Measure, value: str, found: Measured) -> None:
    aggregate = measure.aggregate
    if aggregate is Aggregate.KEYS:
        rows = run(connection, "SELECT g, count(DISTINCT u) FROM kept GROUP BY g").fetchall()
        found.keys[measure.at] = {tuple(key): int(count) for key, count in rows}
        return
    counted = _COUNTED[aggregate](value)
    cells = f"g, {value}" if aggregate is Aggregate.BINS else "g, 0"
    sql = f"SELECT {cells}, {counted} FROM kept GROUP BY ALL"
    whole = empty(measure)
    for cell, bin_, number in run(connection, sql).fetchall():
        whole[int(cell), int(bin_)] = int(number)
    found.integers[measure.at] = whole


_COUNTED: dict[Aggregate, Callable[[str], str]] = {
    Aggregate.ROWS: lambda value: "count(*)",
    Aggregate.UNITS: lambda value: "count(DISTINCT u)",
    Aggregate.SUM: lambda value: f"coalesce(sum({value}), 0)",
    Aggregate.BINS: lambda value: "count(*)",
}

_ADDED = (Aggregate.ROWS, Aggregate.SUM)
