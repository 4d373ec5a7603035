"""Random releases find the same whole numbers of a table wherever it lies, and whoever counts."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from functools import partial

import pytest
from effort import examples
from random_releases import COLUMNS, PUBLIC, neighbour_of, random_release
from unit_moves import largest_move

from dpaudit.tables.engines import duck
from dpaudit.tables.engines.cluster import measured_on_cluster
from dpaudit.tables.engines.postgres import PostgresTable
from dpaudit.tables.engines.sources import CsvFile, DuckDbFile, ParquetFile

duckdb = pytest.importorskip("duckdb", reason="the extra 'tables' is missing")
SECRET = bytes(range(32))
NAMES = {"table": ["who", *COLUMNS], "public": ["name", *PUBLIC]}

TYPES = {"day": "DATE", "sick": "BOOLEAN", "people": "BIGINT"}
TYPES |= dict.fromkeys(["age", "code", "cost", "huge"], "DOUBLE")


def rows_of(folder, name):
    """The rows of a CSV file, of which an empty field is NULL."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [[text or None for text in row] for row in csv.reader(file)][1:]


def in_duckdb(folder, connection):
    """Both tables in an open database, all of texts."""
    for name, columns in NAMES.items():
        listed = ", ".join(f"{each} VARCHAR" for each in columns)
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({listed})')
        marks = ", ".join("?" * len(columns))
        rows = rows_of(folder, name)
        if rows:
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)


def typed_tables(folder):
    """Both of their own types: a text that is of none is NULL beforehand."""
    with duckdb.connect(str(folder / "typed.duckdb")) as connection:
        in_duckdb(folder, connection)
        for name, columns in NAMES.items():
            for each in TYPES.keys() & set(columns):
                kind = f"{TYPES[each]} USING TRY_CAST({each} AS {TYPES[each]})"
                connection.execute(f'ALTER TABLE "{name}" ALTER {each} TYPE {kind}')
    return {name: DuckDbFile(folder / "typed.duckdb", name) for name in NAMES}


def csv_files(folder):
    return {name: CsvFile(folder / f"{name}.csv") for name in NAMES}


def parquet_files(folder):
    with duckdb.connect() as connection:
        in_duckdb(folder, connection)
        for name in NAMES:
            to = folder / f"{name}.parquet"
            connection.execute(f"COPY \"{name}\" TO '{to}' (ROW_GROUP_SIZE 2048)")
    return {name: ParquetFile(folder / f"{name}.parquet") for name in NAMES}


def duckdb_tables(folder):
    with duckdb.connect(str(folder / "both.duckdb")) as connection:
        in_duckdb(folder, connection)
    return {name: DuckDbFile(folder / "both.duckdb", name) for name in NAMES}


def postgres_tables(url, folder):
    """The private one in partitions, whose rows come in another order."""
    psycopg = pytest.importorskip("psycopg", reason="the extra 'postgres' is missing")
    with psycopg.connect(url, autocommit=True) as connection:
        for name, columns in NAMES.items():
            listed = ", ".join(f"{each} text" for each in columns)
            parts = f"PARTITION BY HASH ({columns[0]})"
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')
            connection.execute(f'CREATE TABLE "{name}" ({listed}) {parts}')
            for n in range(3):
                one = f"FOR VALUES WITH (MODULUS 3, REMAINDER {n})"
                connection.execute(f'CREATE TABLE "{name}{n}" PARTITION OF "{name}" {one}')
            with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as to:
                for row in rows_of(folder, name):
                    to.write_row(row)
    return {name: PostgresTable(url, name) for name in NAMES}


@pytest.fixture(scope="module")
def scheduler():
    """Of a cluster whose workers are processes of their own."""
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is missing")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made.scheduler_address


@pytest.fixture(scope="module")
def engines(postgresql, scheduler):
    """By name, where the tables of a folder lie, and what computes their whole numbers."""
    in_postgres = partial(postgres_tables, postgresql.database())
    on_cluster = partial(measured_on_cluster, address=scheduler)
    return {
        "CSV": (csv_files, duck.measured),
        "Parquet": (parquet_files, duck.measured),
        "DuckDB": (duckdb_tables, duck.measured),
        "DuckDB of types": (typed_tables, duck.measured),
        "PostgreSQL": (in_postgres, duck.measured),
        "cluster": (csv_files, on_cluster),
        "cluster with PostgreSQL": (in_postgres, on_cluster),
    }


def found_by(engine, release, folder):
    sources, measure = engine
    lie = sources(folder)
    public = replace(release.layout.public, source=lie["public"])
    layout = replace(release.layout, public=public)
    return measure(lie["table"], layout, release.measures, SECRET)


def facts(found):
    """All that is whole of what was found, the owner's part included."""
    arrays = {"integers": found.integers, "unbounded": found.unbounded}
    return {
        **{name: {at: v.tolist() for at, v in own.items()} for name, own in arrays.items()},
        "keys": found.keys,
        "rows": found.rows,
        "dropped": found.dropped,
        "ranges": {name: (each.values, each.steps) for name, each in found.ranges.items()},
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(3))
def test_engines_find_equal_integers_which_a_unit_moves_no_further_than_declared(
    block, engines, tmp_path, monkeypatch
):
    monkeypatch.setattr(duck, "_BYTES_OF_BUCKET", 3000)  # so that several workers have units
    for seed in range(examples(1, 70)):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        rng = random.Random(seed)
        made = random_release(50_000 + 1000 * block + seed, folder, largest=rng.choice([3, 60]))
        whole = {name: found_by(each, made.release, folder) for name, each in engines.items()}
        made.write(neighbour_of(made, rng))
        rest = {name: found_by(each, made.release, folder) for name, each in engines.items()}
        for name in engines:
            for found in (whole, rest):
                one, other = facts(found[name]), facts(found["CSV"])
                if name == "DuckDB of types":
                    del one["rows"], other["rows"]
                assert one == other, (name, made.content)
            moves = largest_move(made.release, (whole[name], rest[name]))
            assert all(share <= 1 for share in moves.values()), (name, moves, made.content)
