"""DuckDB: rows are read once, cast by the schema, and worked off in buckets of whole units.

The buckets are Parquet files in a folder that is removed, whatever happens; their rows hold numbers
of steps. All rows of a unit are in one bucket, so that buckets bound the memory, and can be worked
off anywhere: their whole numbers are added. Which rows of a unit count follows from a keyed hash of
the rows themselves; where a unit has no more than may count, no hash is needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.tables.engines.sources import (
    Relation,
    Source,
    identifier,
    public_copy,
    require_other,
    unreadable,
)
from dpaudit.tables.expressions import Expression, quoted
from dpaudit.tables.measures import (
    BEYOND,
    Aggregate,
    Measure,
    Measured,
    Range,
    Selection,
    empty,
    nothing,
)
from dpaudit.tables.schema import Column, Kind, Shape

_MEMORY = "600MB"
_BYTES_OF_BUCKET = 24_000_000
_MOST_BUCKETS = 256
_ROWS_BETWEEN_WRITES = 20_000
"""Of each bucket, which waits in memory: there are a hundred buckets of a hundred million rows."""
_DIGITS = 12
"""Of the hash by which rows are ordered: as many as are compared fastest; columns decide ties."""


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

    @property
    def source_columns(self) -> tuple[str, ...]:
        """Those that the source must have, each once."""
        names = [self.unit, *(each.name for each in self.columns)]
        return tuple(dict.fromkeys([*names, self.public.on] if self.public else names))


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
    found = nothing(measures)
    with staged(source, layout) as buckets:
        for bucket in buckets:
            found.add(measured_bucket(bucket, layout, measures, secret))
    return found


@contextmanager
def staged(source: Source, layout: Layout) -> Iterator[tuple[Path, ...]]:
    """The folders of the buckets, the first without a row; they are removed afterwards.

    Raises:
        InputError: if the table cannot be read as declared, or there is no room for it.
    """
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:  # of mode 0700
        scratch = Path(folder)
        with closing(connect(scratch)) as connection:
            own = source.relation(connection, layout.source_columns, scratch)
            buckets = min(own.size // _BYTES_OF_BUCKET + 1, _MOST_BUCKETS)
            table = _table_of(connection, layout, source, own, scratch)
            _write_none(connection, layout, scratch / "none")
            bucket = f"coalesce(hash(u) % {buckets}, 0) AS bucket"
            run(
                connection,
                f"COPY (SELECT *, {bucket} FROM ({_read(layout, table)})) "
                f"TO {quoted(str(scratch / 'buckets'))} (FORMAT parquet, PARTITION_BY (bucket))",
                source,
            )
        yield (scratch / "none", *sorted((scratch / "buckets").glob("bucket=*")))


def _write_none(connection: Any, layout: Layout, folder: Path) -> None:
    """A bucket without a row: what an engine refuses of a query, it refuses of every table."""
    texts = ", ".join(f"NULL::VARCHAR AS t{n}" for n in range(len(layout.joined)))
    table = f"(SELECT NULL::VARCHAR AS u, {texts} WHERE false)"
    folder.mkdir()
    to = quoted(str(folder / "rows.parquet"))
    run(connection, f"COPY ({_read(layout, table)}) TO {to} (FORMAT parquet)")


def connect(scratch: Path, threads: int | None = None) -> Any:
    """A connection that reads what it is told alone, and loads nothing from a network."""
    duckdb = optional_import("tables", "duckdb", what="a release of a table")
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": _MEMORY,
            "threads": str(threads or min(os.cpu_count() or 1, 8)),
            "temp_directory": str(scratch),
            "preserve_insertion_order": "false",
            "partitioned_write_flush_threshold": str(_ROWS_BETWEEN_WRITES),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    connection.execute("SET enable_progress_bar = false")
    with suppress(duckdb.Error):  # a build without time zones has UTC
        connection.execute("SET TimeZone = 'UTC'")
    return connection


def run(connection: Any, sql: str, source: Source | None = None) -> Any:
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
                f"source {'rows' if source is None else source.name} cannot be processed: there "
                "is too little memory or room in the folder of temporary files; set TMPDIR to a "
                "larger one."
            ) from None
        if kind == "InterruptException":
            raise KeyboardInterrupt from None
        raise unreadable(source) from None


# -- reading -------------------------------------------------------------------------------------


def _table_of(
    connection: Any, layout: Layout, private: Source, relation: Relation, scratch: Path
) -> str:
    """The private table with what the public one adds, in texts."""
    own = ", ".join(f"p.{identifier(each.name)} AS t{n}" for n, each in enumerate(layout.columns))
    unit = f"p.{identifier(layout.unit)} AS u"
    public = layout.public
    if public is None:
        return f"(SELECT {unit}, {own} FROM {relation.sql} AS p)"
    names = list(dict.fromkeys([public.key, *(each.name for each in public.columns)]))
    joined = public_copy(public.source, private, scratch)
    added = joined.relation(connection, names, scratch)
    require_other(added, relation)
    run(connection, f"CREATE TEMP TABLE public AS SELECT * FROM {added.sql}", joined)
    # Bytes are compared: a collation of a file may hold two texts alike.
    key = f"encode({identifier(public.key)})"
    twice = f"SELECT 1 FROM public WHERE {key} IS NOT NULL GROUP BY {key} HAVING count(*) > 1"
    if run(connection, f"{twice} LIMIT 1").fetchone():
        raise InputError(
            f"table {public.source.name} has the same {public.key!r} in two rows; each must "
            "occur once, so that a join does not multiply rows."
        )
    more = ", ".join(
        f"q.{identifier(each.name)} AS t{len(layout.columns) + n}"
        for n, each in enumerate(public.columns)
    )
    on = f"encode(p.{identifier(public.on)}) = encode(q.{identifier(public.key)})"
    both = f"{relation.sql} AS p LEFT JOIN public AS q ON {on}"
    return f"(SELECT {unit}, {own}, {more} FROM {both})"


def _read(layout: Layout, table: str) -> str:
    """The unit, carriers, and how far each value lay outside its range.

    ``e0``, ``e1``, … are 0 of a value within its range, and NULL of one that is none of its type.
    """
    read, carried = [], []
    for n, column in enumerate(layout.joined):
        shape = column.shape
        read.append(f"{_parsed(f't{n}', shape)} AS r{n}")
        carried.append(f"{_carrier(f'r{n}', shape)} AS c{n}")
        if shape.kind is not Kind.TEXT:
            carried.append(f"{_beyond(f'r{n}', f't{n}', shape)} AS e{n}")
    raw = ", ".join(f"t{n}" for n in range(len(layout.joined)))
    parsed = f"SELECT CASE WHEN u = '' THEN NULL ELSE u END AS u, {raw}, {', '.join(read)}"
    return f"SELECT u, {', '.join(carried)} FROM ({parsed} FROM {table})"


def _parsed(text: str, shape: Shape) -> str:
    """A text as it is, a truth value, days, or a finite float; NULL where it is none."""
    if shape.kind is Kind.TEXT:
        return text
    if shape.kind is Kind.BOOLEAN:
        return f"TRY_CAST({text} AS BOOLEAN)"
    if shape.kind is Kind.DATE:
        day = f"TRY_CAST({text} AS DATE)"
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


def _beyond(parsed: str, text: str, shape: Shape) -> str:
    """How far a value lies outside its range, in its own unit; 1 of one that is not listed."""
    outside = ""
    if shape.kind.is_whole and shape.values is not None:
        outside = f"WHEN {parsed} NOT IN ({', '.join(map(str, shape.values))}) THEN 1 "
    elif shape.kind.is_whole:
        low, high = (_end(end, shape) for end in (shape.low, shape.high))
        outside = (
            f"WHEN {parsed} < {low} THEN {parsed} - {low} "
            f"WHEN {parsed} > {high} THEN {parsed} - {high} "
        )
    missing = f"WHEN {text} IS NULL THEN 0 WHEN {parsed} IS NULL THEN NULL"
    return f"CAST(CASE {missing} {outside}ELSE 0 END AS DOUBLE)"


# -- measuring -----------------------------------------------------------------------------------


def measured_bucket(
    bucket: Path,
    layout: Layout,
    measures: Sequence[Measure],
    secret: bytes,
    threads: int | None = None,
) -> Measured:
    """The measures of the rows of one bucket.

    Args:
        bucket: its folder.
        layout: of the rows.
        measures: what is computed.
        secret: key of the hash that chooses among rows of a unit.
        threads: of DuckDB; as many as there are processors without it.

    Raises:
        InputError: if there is no room to work it off.
    """
    found = Measured()
    with (
        tempfile.TemporaryDirectory(prefix="dpaudit-") as folder,
        closing(connect(Path(folder), threads)) as connection,
    ):
        run(connection, f"CREATE VIEW read AS {rows_of([bucket], layout)}")
        _account(connection, layout, found)
        chosen = _Choice(layout, tuple(measures), secret)
        run(connection, f"CREATE TEMP TABLE chosen AS {chosen.sql}")
        for number, selection in enumerate(chosen.selections):
            own = [each for each in measures if each.selection == selection]
            _aggregate(connection, chosen, number, own, found)
    return found


def _account(connection: Any, layout: Layout, found: Measured) -> None:
    """What became of the rows, for the owner alone."""
    asked = {"rows": "count(*)", "rows without a unit": "count(*) - count(u)"}
    for n, column in enumerate(layout.joined):
        shape = column.shape
        unlisted = f"values of {column.name} not in its list"
        if shape.kind is Kind.TEXT:
            if shape.values is not None:
                listed = ", ".join(map(quoted, shape.values))
                asked[unlisted] = f"count(*) FILTER (c{n} NOT IN ({listed}))"
            continue
        beyond = shape.kind.is_whole and shape.values is not None
        outside = unlisted if beyond else f"values of {column.name} outside its range"
        asked[outside] = f"count(*) FILTER (e{n} <> 0)"
        asked[f"values of {column.name} not as its type"] = f"count(*) - count(e{n})"
    numbers = {
        n: column.name
        for n, column in enumerate(layout.joined)
        if column.shape.kind in (Kind.INTEGER, Kind.NUMBER) and column.shape.values is None
    }
    sums = [f"count(c{n}), sum(c{n}), sum(e{n} * {BEYOND!r})" for n in numbers]
    row = run(connection, f"SELECT {', '.join([*asked.values(), *sums])} FROM read").fetchone()
    counts = dict(zip(asked, map(int, row), strict=False))
    found.rows = {name: n for name, n in counts.items() if n or name.startswith("rows")}
    ranges = iter(row[len(asked) :])
    for name in numbers.values():
        values, steps, beyond = next(ranges), next(ranges), next(ranges)
        found.ranges[name] = Range(int(values), int(steps or 0), float(beyond or 0))


@dataclass(frozen=True)
class _Choice:
    """SQL of a table with all rows that some selection takes, each evaluated once.

    ``w0``, ``w1``, … say whether a row is taken by a selection, ``k0``, ``k1``, … whether it counts
    there as well, ``x0``, ``x1``, … are the cells and values of all measures.
    """

    layout: Layout
    measures: tuple[Measure, ...]
    secret: bytes

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        return tuple(dict.fromkeys(each.selection for each in self.measures))

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        cells = [each.cell for each in self.selections]
        return tuple(dict.fromkeys([*cells, *(each.value for each in self.measures if each.value)]))

    def named(self, expression: str) -> str:
        """The column of an expression."""
        return f"x{self.expressions.index(expression)}"

    @property
    def sql(self) -> str:
        """Rows of units that have few count all; of the others, the first by their hashes."""
        wheres = [
            f"coalesce({each.where}, false) AS w{n}" for n, each in enumerate(self.selections)
        ]
        taken = " OR ".join(f"w{n}" for n in range(len(wheres)))
        rows = (
            f"SELECT * FROM (SELECT *, {', '.join(wheres)} FROM read WHERE u IS NOT NULL) "
            f"WHERE {taken}"
        )
        more = [
            f"count(*) FILTER (w{n}) > {min(_bounds(each))}"
            for n, each in enumerate(self.selections)
            if _bounds(each)
        ]
        if not more:
            return self._counted(rows, bounded=False)
        heavy = f"SELECT u FROM rows GROUP BY u HAVING {' OR '.join(more)}"
        few = "SELECT * FROM rows ANTI JOIN heavy USING (u)"
        hashed = row_hash(self.layout, self.secret)
        many = f"SELECT *, {hashed} AS h FROM rows SEMI JOIN heavy USING (u)"
        return (
            f"WITH rows AS MATERIALIZED ({rows}), heavy AS MATERIALIZED ({heavy}) "
            f"{self._counted(few, bounded=False)} UNION ALL "
            f"{self._counted(self._ranked(many), bounded=True)}"
        )

    def _counted(self, rows: str, *, bounded: bool) -> str:
        columns = ["u"]
        columns += [f"{each} AS x{n}" for n, each in enumerate(self.expressions)]
        for n, each in enumerate(self.selections):
            within = [f"w{n}"]
            if bounded and each.groups is not None:
                within.append(f"r{n} <= {each.groups}")
            if bounded and each.rows is not None:
                within.append(f"n{n} <= {each.rows}")
            columns += [f"w{n}", f"{' AND '.join(within)} AS k{n}"]
        return f"SELECT {', '.join(columns)} FROM ({rows})"

    def _ranked(self, rows: str) -> str:
        """With the place of a row among those of its unit, and of its cell among its cells.

        Cells are in the order of their first rows, and rows of other cells do not count.
        """
        firsts, places, numbers = [], [], []
        order = f"PARTITION BY u ORDER BY h, {', '.join(self.layout.carriers)}"
        for n, each in enumerate(self.selections):
            counts = f"w{n}"
            if each.groups is not None:
                cell = each.cell
                firsts.append(f"min(h) OVER (PARTITION BY u, w{n}, {cell}) AS f{n}")
                places.append(
                    f"dense_rank() OVER (PARTITION BY u, w{n} ORDER BY f{n}, {cell}) AS r{n}"
                )
                counts += f" AND r{n} <= {each.groups}"
            if each.rows is not None:
                running = f"OVER ({order} ROWS UNBOUNDED PRECEDING)"
                numbers.append(f"count(*) FILTER ({counts}) {running} AS n{n}")
        for added in (firsts, places, numbers):
            if added:
                rows = f"SELECT *, {', '.join(added)} FROM ({rows})"
        return rows


def rows_of(buckets: Sequence[Path], layout: Layout) -> str:
    """The rows of some buckets with their derived columns, in SQL."""
    files = ", ".join(quoted(str(each / "*.parquet")) for each in buckets)
    derived = "".join(f", {each.sql} AS d{n}" for n, each in enumerate(layout.derived))
    return f"SELECT *{derived} FROM read_parquet([{files}], hive_partitioning = false)"


def row_hash(layout: Layout, secret: bytes) -> str:
    """SHA-256 of a secret, the unit and the typed values of a row, in SQL."""
    parts = [quoted(secret.hex()), "strlen(u)", "':'", "u"]
    for name, kind in layout.carriers.items():
        if kind is Kind.TEXT:
            parts.append(f"coalesce('t' || strlen({name}) || ':' || {name}, 'n')")
        else:
            tag = "b" if kind is Kind.BOOLEAN else "i"
            parts.append(f"coalesce('{tag}' || {name} || ';', 'n')")
    return f"left(sha256(concat({', '.join(parts)})), {_DIGITS})"


def _bounds(selection: Selection) -> list[int]:
    return [each for each in (selection.rows, selection.groups) if each is not None]


def _aggregate(
    connection: Any, choice: _Choice, number: int, measures: Sequence[Measure], found: Measured
) -> None:
    """The measures of one selection, and what its bounds left out."""
    cell = choice.named(choice.selections[number].cell)
    kept, taken = (f"FILTER ({mark}{number})" for mark in "kw")
    left = f"SELECT count(*) {taken} - count(*) {kept} FROM chosen"
    (dropped,) = run(connection, left).fetchone()
    if dropped:
        found.dropped |= {each.at: int(dropped) for each in measures}
    asked: list[tuple[NDArray[Any], str]] = []
    for measure in measures:
        value = choice.named(measure.value) if measure.value else "0"
        if measure.aggregate is Aggregate.KEYS:
            sql = f"SELECT {cell}, count(DISTINCT u) FROM chosen WHERE k{number} GROUP BY {cell}"
            rows = run(connection, sql).fetchall()
            found.keys[measure.at] = {tuple(key): int(count) for key, count in rows}
            continue
        whole = found.integers[measure.at] = empty(measure)
        if measure.aggregate is Aggregate.BINS:
            sql = f"SELECT {cell}, {value}, count(*) FROM chosen WHERE k{number} GROUP BY ALL"
            for place, bin_number, count in run(connection, sql).fetchall():
                whole[int(place), int(bin_number)] = int(count)
            continue
        counted = _COUNTED[measure.aggregate].format(value)
        asked.append((whole, f"{counted} {kept}"))
        if measure.aggregate is not Aggregate.UNITS:
            found.unbounded[measure.at] = empty(measure)
            asked.append((found.unbounded[measure.at], f"{counted} {taken}"))
    if not asked:
        return
    sql = f"SELECT {', '.join([cell, *(each for _, each in asked)])} FROM chosen GROUP BY ALL"
    for place, *numbers in run(connection, sql).fetchall():
        for (whole, _), each in zip(asked, numbers, strict=True):
            whole[int(place), 0] = int(each or 0)


_COUNTED = {
    Aggregate.ROWS: "count(*)",
    Aggregate.UNITS: "count(DISTINCT u)",
    Aggregate.SUM: "sum({})",
}
