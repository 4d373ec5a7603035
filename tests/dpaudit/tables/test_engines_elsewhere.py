"""Tables of a real PostgreSQL server, and a cluster: the integers of the same table in a file."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import engine_tables as embedded
import pytest
from effort import examples
from hypothesis import given, settings

from dpaudit.base.errors import InputError

psycopg = pytest.importorskip("psycopg", reason="the extra 'postgres' is missing")

from dpaudit.tables.engines import cluster as clusters  # noqa: E402
from dpaudit.tables.engines import duck, sources  # noqa: E402
from dpaudit.tables.engines.postgres import PostgresTable  # noqa: E402
from dpaudit.tables.measures import Aggregate, Measure, Selection  # noqa: E402
from dpaudit.tables.schema import Kind  # noqa: E402


@contextmanager
def _elsewhere(*_):
    yield (Path("/nowhere/bucket=0"),)


once = settings(max_examples=examples(5, 100), deadline=None)


@pytest.fixture(scope="module")
def database(postgresql):
    url = postgresql.database()
    names = ", ".join('"' + name.replace('"', '""') + '" text' for name in embedded.NAMES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE visits ({names})")
    make_tables(url)
    return url


def make_tables(url):
    """Tables that are stored, and what only looks like one."""
    ages = "SELECT 'a' AS who, 5 AS age UNION ALL SELECT 'b', 7"
    parted = "(who text, age int) PARTITION BY LIST (who)"
    guard = "who = 'a' AND EXISTS (SELECT FROM parted WHERE who = 'b')"
    with psycopg.connect(url, autocommit=True) as connection:
        (schema,) = connection.execute("SELECT current_schema").fetchone()
        for statement in (
            f"CREATE TABLE parted {parted}",
            "CREATE TABLE part_a PARTITION OF parted FOR VALUES IN ('a')",
            "CREATE TABLE part_b PARTITION OF parted FOR VALUES IN ('b')",
            f"INSERT INTO parted {ages}",
            "CREATE TABLE old (who text, age int)",
            "CREATE TABLE older () INHERITS (old)",
            f"INSERT INTO older {ages}",
            "CREATE VIEW seen AS SELECT who, max(age) OVER () AS age FROM parted",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM seen",
            f"CREATE TABLE guarded AS {ages}",
            "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
            f"CREATE POLICY hides ON guarded USING ({guard})",
            "CREATE ROLE reader LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO reader",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
        ):
            connection.execute(statement)


def make_foreign_tables(url):
    """Tables that a program of the server makes, where it can."""
    with psycopg.connect(url, autocommit=True) as connection:
        known = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        if ("file_fdw",) not in known:
            pytest.skip("the server has no foreign tables")
        for statement in (
            "CREATE EXTENSION file_fdw",
            "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
            "CREATE FOREIGN TABLE far (who text, age int) SERVER files OPTIONS (program 'true')",
            'CREATE TABLE "parted afar" (who text, age int) PARTITION BY LIST (who)',
            'CREATE FOREIGN TABLE part_c PARTITION OF "parted afar" DEFAULT SERVER files '
            "OPTIONS (program 'true')",
        ):
            connection.execute(statement)


def sum_of_age(url, table, unit="who"):
    layout = duck.Layout(unit, (embedded.COLUMNS[1],))
    total = Measure("age", Selection(), Aggregate.SUM, "c0")
    return embedded.found_of(PostgresTable(url, table), layout, [total]).integers["age"][0, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


class TestPostgres:
    @once
    @given(rows=embedded.ROWS)
    def test_integers_of_the_same_table(self, rows, database, folder):
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("TRUNCATE visits")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s, %s, %s)", rows)
        expected = embedded.told(embedded.found_of(embedded.written(folder / "table.csv", rows)))
        assert embedded.told(embedded.found_of(PostgresTable(database, "visits"))) == expected

    def test_values_are_read_alike_whatever_a_role_has_set(self, database):
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ALTER ROLE CURRENT_USER SET DateStyle = 'SQL, DMY'")
            connection.execute("ALTER ROLE CURRENT_USER SET TimeZone = 'Asia/Tokyo'")
            connection.execute(
                "CREATE TABLE typed AS SELECT 1 AS who, '1970-01-03'::date AS day, "
                "'1970-01-03 23:30+00'::timestamptz AS moment, '-inf'::float8 AS age"
            )
        try:
            columns = (embedded.COLUMNS[3], duck.Column("moment", embedded.COLUMNS[3].shape))
            layout = duck.Layout("who", (*columns, embedded.COLUMNS[1]))
            sums = [Measure(f"c{n}", Selection(), Aggregate.SUM, f"c{n}") for n in range(3)]
            found = embedded.found_of(PostgresTable(database, "typed"), layout, sums)
        finally:
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute("ALTER ROLE CURRENT_USER RESET ALL")
        assert [int(found.integers[f"c{n}"][0, 0]) for n in range(3)] == [2, 2, 0]
        assert found.rows["values of age not as its type"] == 1

    @pytest.mark.parametrize("table", ["missing", "visits; DROP TABLE visits", "a.b.c.d"])
    def test_a_table_that_is_not_there(self, table, database):
        with pytest.raises(InputError, match="does not exist, lacks a declared column") as told:
            embedded.found_of(PostgresTable(database, table))
        assert told.value.__cause__ is None

    def test_parts_of_a_table_are_read_as_one(self, database):
        assert sum_of_age(database, "parted") == sum_of_age(database, "old") == 12

    def test_a_cast_that_somebody_wrote_is_refused(self, database):
        with psycopg.connect(database, autocommit=True) as connection:
            for statement in (
                "CREATE TYPE odd AS (age int)",
                "CREATE DOMAIN odder AS odd",
                "CREATE FUNCTION told(odd) RETURNS text LANGUAGE sql AS "
                "'SELECT max(age)::text FROM parted'",
                "CREATE CAST (odd AS text) WITH FUNCTION told(odd)",
                "CREATE TABLE cast_away (who text, age odd)",
                "CREATE TABLE cast_further (who text, age odder)",
            ):
                connection.execute(statement)
        for table in ("cast_away", "cast_further"):
            with pytest.raises(InputError, match="a cast may read other rows"):
                sum_of_age(database, table)

    def test_a_column_that_the_server_makes_is_refused(self, database):
        """What an expression makes can call a function that reads other rows."""
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE made (who text, age int GENERATED ALWAYS AS (7) STORED)"
            )
        for table, unit in (("made", "who"), ("parted", "ctid")):
            with pytest.raises(InputError, match="declare only stored columns"):
                sum_of_age(database, table, unit=unit)

    def test_a_text_without_a_form_in_utf_8_is_told(self, postgresql):
        with psycopg.connect(postgresql.url("postgres"), autocommit=True) as connection:
            connection.execute(
                "CREATE DATABASE latin ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
            )
        url = postgresql.url("latin")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(r"CREATE TABLE t AS SELECT E'\xe9'::text AS who, 1 AS age")
        with pytest.raises(InputError, match="'t' has a text that cannot be converted to UTF-8"):
            sum_of_age(url, "t")

    @pytest.mark.parametrize("table", ["seen", "kept"])
    def test_a_view_is_refused_and_what_to_do_is_told(self, table, database):
        with pytest.raises(InputError, match=r"is not a stored table of the database; in place of"):
            sum_of_age(database, table)

    def test_a_foreign_table_is_refused_and_a_table_of_which_one_is_a_part(self, database):
        make_foreign_tables(database)
        for table in ("far", "parted afar"):
            with pytest.raises(InputError, match=r"is not a stored table of the database"):
                sum_of_age(database, table)

    def test_a_policy_of_rows_may_hide_rows_for_what_others_hold(self, database):
        """Ann alone is seen while Bob is not there; who is above policies sees all of them."""
        assert sum_of_age(database, "guarded") == 12
        reader = database.replace("postgresql://postgres@", "postgresql://reader@")
        assert sum_of_age(reader, "parted") == 12
        with pytest.raises(
            InputError, match="a policy of the database hides it or some of its rows"
        ):
            sum_of_age(reader, "guarded")

    def test_a_public_table_of_the_same_server(self, database, monkeypatch):
        """Each has a copy of its own: of the larger one, more is read after the smaller one."""
        monkeypatch.setattr(sources, "_LONGEST_ROW", 2**14)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("CREATE TABLE wards AS SELECT 'x' AS words, '7' AS beds")
            connection.execute(
                "CREATE TABLE many AS SELECT n::text AS who, 'x' AS words, repeat('y', 99) AS long "
                "FROM generate_series(1, 50000) AS n"
            )
        beds = duck.Column("beds", duck.Shape(Kind.INTEGER, high=10))
        wards = duck.PublicTable(PostgresTable(database, "wards"), "words", "words", (beds,))
        long = duck.Column("long", duck.Shape(Kind.TEXT))
        layout = duck.Layout("who", (embedded.COLUMNS[0], long), public=wards)
        total = Measure("beds", Selection(), Aggregate.SUM, "c2")
        found = embedded.found_of(PostgresTable(database, "many"), layout, [total])
        assert found.integers["beds"][0, 0] == 350_000

    def test_a_server_that_is_away(self, tmp_path):
        url = f"postgresql://officer@/visits?host={tmp_path}"
        with pytest.raises(InputError, match="server is away") as told:
            embedded.found_of(PostgresTable(url, "visits"))
        assert "officer" not in str(told.value)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://officer:hunter2@localhost/visits",
            "postgresql://localhost/visits?user=officer&password=hunter2",
            "postgresql://officer:hunter2@[localhost/visits",
        ],
    )
    def test_a_password_is_refused_and_not_shown(self, url):
        with pytest.raises(InputError) as told:
            PostgresTable(url, "visits")
        assert "hunter2" not in str(told.value)

    def test_no_room_for_the_copy(self, database, monkeypatch, tmp_path):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pathlib.Path.open", full)
        with pytest.raises(InputError, match="too little room"):
            PostgresTable(database, "visits").relation(None, embedded.NAMES, tmp_path)


@pytest.fixture(scope="module")
def scheduler():
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is missing")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as made:
        yield made.scheduler_address


@pytest.mark.filterwarnings("ignore")
class TestCluster:
    @once
    @given(rows=embedded.ROWS)
    def test_integers_of_the_same_table(self, rows, scheduler, folder):
        source = embedded.written(folder / "table.csv", rows)
        expected = embedded.found_of(source)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(duck, "_BYTES_OF_BUCKET", 200)
            found = clusters.measured_on_cluster(
                source, embedded.LAYOUT, embedded.MEASURES, embedded.SECRET, scheduler
            )
        assert embedded.told(found) == embedded.told(expected)
        assert (found.rows, found.dropped) == (expected.rows, expected.dropped)

    def test_without_a_scheduler(self, tmp_path):
        source = embedded.written(tmp_path / "table.csv", [])
        with pytest.raises(InputError, match="no scheduler answers there"):
            clusters.measured_on_cluster(
                source,
                embedded.LAYOUT,
                embedded.MEASURES,
                embedded.SECRET,
                "nonsense://localhost:1",
            )

    def test_workers_that_do_not_see_the_folder(self, scheduler, tmp_path, monkeypatch):
        monkeypatch.setattr(clusters, "staged", _elsewhere)
        source = embedded.written(tmp_path / "table.csv", [])
        with pytest.raises(InputError, match="set TMPDIR to one that all machines share"):
            clusters.measured_on_cluster(
                source, embedded.LAYOUT, embedded.MEASURES, embedded.SECRET, scheduler
            )

    def test_what_fails_on_a_worker_tells_no_value_and_no_key(
        self, scheduler, tmp_path, monkeypatch, capfd
    ):
        def fails(*_, **__):
            raise RuntimeError("the row of Ann")

        monkeypatch.setattr(clusters, "measured_bucket", fails)
        source = embedded.written(tmp_path / "table.csv", [("a", *[None] * 5)])
        with pytest.raises(InputError, match=r"a worker failed \(RuntimeError\)") as told:
            clusters.measured_on_cluster(
                source, embedded.LAYOUT, embedded.MEASURES, embedded.SECRET, scheduler
            )
        shown = f"{told.value} {capfd.readouterr()}"
        assert "Ann" not in shown
        assert embedded.SECRET.hex() not in shown
        assert "key" not in repr(clusters._Task(embedded.LAYOUT, (), b"key"))
