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
from dpaudit.tables.engines import duck  # noqa: E402
from dpaudit.tables.engines.postgres import PostgresTable  # noqa: E402
from dpaudit.tables.measures import Aggregate, Measure, Selection  # noqa: E402


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
    return url


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
                "CREATE VIEW typed AS SELECT 1 AS who, '1970-01-03'::date AS day, "
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
