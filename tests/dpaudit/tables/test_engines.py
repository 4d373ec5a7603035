"""DuckDB as an engine: which rows count, beside plain Python, whatever they hold."""

from __future__ import annotations

import os
import random
import re
import tempfile
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from engine_tables import (
    COLUMNS,
    DATES,
    INTEGERS,
    MEASURES,
    NAMES,
    NUMBERS,
    ROWS,
    TEXTS,
    TRUTHS,
    carriers,
    counted,
    found_of,
    told,
    truth,
    written,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpaudit.base.errors import InputError
from dpaudit.tables.expressions import Expression
from dpaudit.tables.measures import Aggregate, Measure, Selection
from dpaudit.tables.release_file import read_release
from dpaudit.tables.schema import Column, Kind, Shape
from dpaudit.tables.synthetic import made_up
from dpaudit.workflow.releasing import release_table

duckdb = pytest.importorskip("duckdb", reason="the extra 'tables' is missing")

from dpaudit.tables.engines import duck  # noqa: E402
from dpaudit.tables.engines.sources import CsvFile, DuckDbFile, ParquetFile, _WellQuoted  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


once = settings(
    max_examples=examples(10, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class TestTruth:
    @once
    @given(rows=ROWS)
    def test_integers_are_those_of_plain_python(self, rows, folder):
        found = found_of(written(folder / "table.csv", rows))
        assert told(found) == truth(rows)
        for at, name in (("few", "few"), ("cells", "cells"), ("keys", "keys")):
            taken, kept = counted(rows, name)
            assert found.dropped.get(at, 0) == len(taken) - len(kept)

    @once
    @given(rows=ROWS)
    def test_what_became_of_the_rows(self, rows, folder):
        found = found_of(written(folder / "table.csv", rows))
        assert found.rows["rows"] == len(rows)
        assert found.rows["rows without a unit"] == sum(not row[0] for row in rows)
        every = [carriers(row) for row in rows]
        for place, name in enumerate(("age", 'co"st', "day")):
            beyond = [away[place] for _, away in every]
            outside = found.rows.get(f"values of {name} outside its range", 0)
            assert outside == sum(bool(each) for each in beyond)
            assert found.rows.get(f"values of {name} not as its type", 0) == beyond.count(None)
        cost = [(Fraction(row[2], 4), away[1]) for row, away in every if row[2] is not None]
        if cost:
            as_read, within = found.ranges['co"st'].means(Fraction(1, 4))
            assert within == float(sum(value for value, _ in cost) / len(cost))
            exact = sum(value + Fraction(beyond) for value, beyond in cost) / len(cost)
            assert as_read == pytest.approx(float(exact))

    def test_the_mean_as_read_of_the_largest_floats(self, tmp_path):
        (tmp_path / "t.csv").write_text('who,co"st\n' + "a,1.7e308\n" * 5)
        column = Column('co"st', COLUMNS[2].shape)
        source = CsvFile(tmp_path / "t.csv", quote="'")
        found = found_of(source, duck.Layout("who", (column,)), MEASURES[:1])
        assert found.ranges['co"st'].means(Fraction(1, 4)) == pytest.approx((1.7e308, 1.0))


class TestOrder:
    """Nothing follows from the place of a row, from threads, memory or the number of buckets."""

    @once
    @given(rows=ROWS, chance=st.randoms(use_true_random=False), buckets=st.integers(1, 5))
    def test_order_and_buckets(self, rows, chance, buckets, folder):
        first = told(found_of(written(folder / "table.csv", rows)))
        shuffled = list(rows)
        chance.shuffle(shuffled)
        source = written(folder / "other.csv", shuffled)
        with pytest.MonkeyPatch.context() as patch:
            size = (folder / "other.csv").stat().st_size
            patch.setattr(duck, "_BYTES_OF_BUCKET", size // buckets + 1)
            assert told(found_of(source)) == first

    @pytest.mark.parametrize("processors", [1, 7])
    def test_threads_of_many_rows(self, processors, tmp_path, monkeypatch):
        chance = random.Random(1)
        rows = [
            (f"u{chance.randrange(3000)}", *map(chance.choice, COLUMN_TEXTS)) for _ in range(30_000)
        ]
        first = told(found_of(written(tmp_path / "table.csv", rows)))
        assert first == truth(rows)
        monkeypatch.setattr(os, "cpu_count", lambda: processors)
        monkeypatch.setattr(duck, "_BYTES_OF_BUCKET", 300_000)
        rows.reverse()
        assert told(found_of(written(tmp_path / "table.csv", rows))) == first


COLUMN_TEXTS = [list(each) for each in (TEXTS, INTEGERS, NUMBERS, DATES, TRUTHS)]


class TestSources:
    @once
    @given(rows=ROWS)
    def test_parquet_and_duckdb_files(self, rows, folder):
        expected = told(found_of(written(folder / "table.csv", rows)))
        (folder / "t.duckdb").unlink(missing_ok=True)
        names = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" VARCHAR' for name in NAMES)
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.execute(f"CREATE TABLE visits ({names})")
            if rows:
                connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", rows)
            connection.execute(f"COPY visits TO '{folder / 't.parquet'}'")
        assert told(found_of(ParquetFile(folder / "t.parquet"))) == expected
        assert told(found_of(DuckDbFile(folder / "t.duckdb", "visits"))) == expected

    def test_times_are_those_of_utc_wherever_it_runs(self, tmp_path, monkeypatch):
        path = tmp_path / "t.parquet"
        moment = "TIMESTAMPTZ '1970-01-02 23:30:00+00'"
        duckdb.sql(f"COPY (SELECT 'a' AS who, {moment} AS day) TO '{path}'")
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        day = Measure("day", Selection(), Aggregate.SUM, "c0")
        layout = duck.Layout("who", (COLUMNS[3],))
        assert found_of(ParquetFile(path), layout, (day,)).integers["day"][0, 0] == 1


class TestStoredTables:
    """A view can make a row of other units' rows, which no bound of a unit would hold."""

    @pytest.fixture
    def database(self, tmp_path):
        path = tmp_path / 'vi"sits.duckdb'
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE Visits AS SELECT 'a' AS who, 'x' AS words, 5 AS age")
            connection.execute("CREATE VIEW alone AS SELECT who, words, age FROM visits")
            connection.execute("CREATE TABLE wards AS SELECT 'x' AS words, 7 AS beds")
            connection.execute("CREATE VIEW seen AS SELECT words, age AS beds FROM visits")
            connection.execute("CREATE SCHEMA old; CREATE TABLE old.visits AS FROM visits")
        return path

    @pytest.mark.parametrize("table", ["alone", "main.alone", "missing", "visits.csv", ""])
    def test_a_view_is_refused_and_what_to_do_is_told(self, table, database):
        with pytest.raises(
            InputError, match=r"not a stored table of the database; in place of a view"
        ):
            found_of(DuckDbFile(database, table), duck.Layout("who", COLUMNS[:2]), MEASURES[:1])

    def test_a_view_is_refused_as_a_public_table(self, database):
        with pytest.raises(InputError, match=r"'seen' is not a stored table"):
            self.beds(DuckDbFile(database, "visits"), DuckDbFile(database, "seen"))

    @pytest.mark.parametrize("table", ["visits", "Visits", "old.visits", "MAIN.VISITS"])
    def test_two_tables_of_one_file_and_of_two(self, table, database, tmp_path):
        private, public = DuckDbFile(database, table), DuckDbFile(database, "wards")
        assert self.beds(private, public) == 7
        other = database.rename(tmp_path / "other.duckdb")
        with duckdb.connect(str(database)) as connection:
            connection.execute("CREATE TABLE wards AS SELECT 'x' AS words, 9 AS beds")
        assert self.beds(DuckDbFile(other, table), public) == 9

    def test_a_collation_makes_no_row_two(self, tmp_path):
        private, public = tmp_path / "private.duckdb", tmp_path / "public.duckdb"
        with duckdb.connect(str(private)) as connection:
            connection.execute("CREATE TABLE t (who TEXT, words TEXT COLLATE NOCASE)")
            connection.execute("INSERT INTO t VALUES ('p', 'x'), ('q', 'é')")
        with duckdb.connect(str(public)) as connection:
            connection.execute("CREATE TABLE w (words TEXT, beds INTEGER)")
            connection.execute("INSERT INTO w VALUES ('x', 1), ('X', 3), ('é', 5)")
        assert self.beds(DuckDbFile(private, "t"), DuckDbFile(public, "w")) == 6

    def beds(self, private, public):
        beds = Column("beds", Shape(Kind.INTEGER, high=10))
        joined = duck.PublicTable(public, "words", "words", (beds,))
        layout = duck.Layout("who", COLUMNS[:1], public=joined)
        total = Measure("beds", Selection(), Aggregate.SUM, "c1")
        return found_of(private, layout, (total,)).integers["beds"][0, 0]


WORDS = duck.Layout("who", COLUMNS[:1], (Expression(Shape(Kind.TEXT), "c0"),))


class NoCharge:
    """A book that nothing may be charged to."""

    def begin(self, plan):
        raise AssertionError(plan)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; its first line must name the columns"),
        ("unit;x\n1;2\n", "it has unit;x; if ';' separates columns, set delimiter to it"),
        ("\n1,2\n", "has no header; its first line must name the columns"),
        ("unit,x,y,x\n1,2,2,2\n", "names columns 2 and 4 alike; its first line must"),
    ],
)
def test_a_header_that_does_not_fit_is_told(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        found_of(CsvFile(tmp_path / "t.csv"))


def count_of(folder, source):
    data = {"source": source, "unit": "who", "columns": {"words": {"type": "text"}}}
    privacy = {"relation": "add-remove", "claim": {"epsilon": 1.0}, "rows_per_unit": 2}
    queries = [{"name": "n", "count": True}]
    return read_release({"data": data, "privacy": privacy, "query": queries}, folder)


def write_parquet(path, kind, value, nested=False):
    """Three rows, of which the second has a value of its own; it may be none of its type."""
    arrow = pytest.importorskip("pyarrow")
    if kind == "text":
        second = b"x" if value < 10 else b"987\xff"
        texts = b"a" + second + b"b"
        places = np.cumsum([0, 1, len(second), 1]).astype(np.int32)
        buffers, own = [None, arrow.py_buffer(places), arrow.py_buffer(texts)], arrow.string()
    else:
        own = {
            "time": arrow.time64("us"),
            "time ns": arrow.time64("ns"),
            "time ms": arrow.time32("ms"),
            "timestamp": arrow.timestamp("ms"),
        }[kind]
        numbers = np.array([0, value, 5], dtype=np.int32 if "ms" in kind else np.int64)
        buffers = [None, arrow.py_buffer(numbers)]
    values = arrow.Array.from_buffers(own, 3, buffers)
    if nested:
        values = arrow.ListArray.from_arrays([0, 1, 2, 3], values)
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"who": ["u", "v", "w"], "words": values}), path)


ROW = b"a,x,5,0.5,1970-01-03,true\n"
HEADER = b'who,words,age,"co""st",day,well\n'


class TestFiles:
    """A file is a table as declared, or refused whole in one sentence that tells nothing of it."""

    @pytest.mark.parametrize(
        "line",
        [
            b"secret,x\n",
            b"secret,x,5,0.5,1970-01-03,true,more\n",
            b"secret,x,5,0.5,1970-01-03,true,\n",
            b'secret,"x"y,5,0.5,1970-01-03,true\n',
            b'secret,"x,5,0.5,1970-01-03,true\n',
            b'secret,x"y,5,0.5,1970-01-03,true\nsecret,"x,5,0.5,1970-01-03,true\n',
            b'secret, "x",5,0.5,1970-01-03,true\n',
            b'secret,"x\\"",5,0.5,1970-01-03,true\n',
            b"secret,\xff,5,0.5,1970-01-03,true\n",
            b"secret,\xed\xa0\x80,5,0.5,1970-01-03,true\n",
            b"secret,x\r5,5,0.5,1970-01-03,true\n",
            pytest.param(b"secret," + b"x" * 17_000_000 + b",,,,\n", id="long"),
        ],
    )
    def test_what_is_no_table_is_refused_whole(self, line, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(HEADER + ROW * 3 + line + ROW * 3)
        with pytest.raises(InputError, match=r"cannot be read as it is declared \(dialect") as told:
            found_of(CsvFile(path))
        assert str(told.value).startswith("source 't.csv' cannot")
        assert "secret" not in str(told.value)
        assert told.value.__cause__ is None

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            (b"secret,x\n", "line 5 has 2 fields, not 6"),
            (b'"secret\n",x,5,0.5,1970-01-03,true,more\n', "line 6 has 7 fields, not 6"),
            (b"secret,\xe9,5,0.5,1970-01-03,true\n", "line 5 is not UTF-8 text; save the file as"),
            (b'secret,"x"y,5,0.5,1970-01-03,true\n', "line 5 has a wrong quote, or is too long"),
            (b'secret,x"y,5,0.5,1970-01-03,true\n', "a quote is within a field without quotes"),
        ],
    )
    def test_its_owner_is_told_the_line_on_demand(self, line, fault, tmp_path, monkeypatch):
        path = tmp_path / "t.csv"
        path.write_bytes(HEADER + ROW * 3 + line + ROW * 3)
        with pytest.raises(InputError, match="the line is private, and DPAUDIT_DEBUG=1 names it"):
            found_of(CsvFile(path))
        monkeypatch.setenv("DPAUDIT_DEBUG", "1")
        with pytest.raises(InputError, match=f"as it is declared: {fault}") as told:
            found_of(CsvFile(path))
        assert "secret" not in str(told.value)

    @pytest.mark.parametrize(
        "words",
        [b"\x00", b'"a\x00b"', b'"\n"', b'"' + b"\nx,y" * 1_500_000 + b'"', b"x" * 6_000_000],
        ids=["NUL", "NUL within", "line", "many lines", "long"],
    )
    def test_whatever_a_text_holds(self, words, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(HEADER + ROW * 2 + ROW.replace(b"x", words) + ROW * 2)
        found = found_of(CsvFile(path))
        assert found.integers["rows"][0, 0] == 5
        assert sum(found.keys["keys"].values()) == 2

    @pytest.mark.parametrize("nested", [False, True], ids=["", "in a list"])
    @pytest.mark.parametrize("kind", ["text", "time", "time ns", "time ms", "timestamp"])
    def test_parquet_that_is_ill_formed_is_refused_whole_before_anything_is_charged(
        self, kind, nested, tmp_path
    ):
        """Texts that are no UTF-8, times beyond a day, moments beyond those that there are."""
        secret = 987_654_321 if kind == "time ms" else 987_654_321_987_654_321
        write_parquet(tmp_path / "good.parquet", kind, 7, nested)
        write_parquet(tmp_path / "bad.parquet", kind, secret, nested)
        assert count_of(tmp_path, "good.parquet").load().integers["n"].ravel().tolist() == [3]
        with pytest.raises(InputError, match="impossible dates and times") as told:
            release_table(count_of(tmp_path, "bad.parquet"), tmp_path / "out", charging=NoCharge())
        assert told.value.__cause__ is None
        assert "987" not in str(told.value)
        assert str(secret) not in "".join(traceback.format_exception(told.value))
        assert not list((tmp_path / "out").glob("*"))

    def test_a_folder_and_a_file_are_read_as_they_are_called(self, tmp_path):
        """A name is no pattern of names, and no column."""
        folder = tmp_path / "words=z"
        folder.mkdir()
        for name, word in (("t[1].parquet", "x"), ("t1.parquet", "y")):
            duckdb.sql(f"COPY (SELECT 'a' AS who, '{word}' AS words) TO '{folder / name}'")
        found = found_of(ParquetFile(folder / "t[1].parquet"), WORDS, MEASURES[-1:])
        assert found.keys["keys"] == {("x",): 1}

    @given(data=st.data())
    @settings(max_examples=examples(30, 1000), deadline=None)
    def test_quotes_are_right_wherever_blocks_end(self, data):
        text = data.draw(st.text('",\r\na', max_size=20).map(str.encode))
        strict = rb'(?:(?:[^",\r\n]*|"(?:[^"]|"")*")(?:[,\r\n]|\Z))*'
        ends = data.draw(st.lists(st.integers(1, 4), min_size=25, max_size=25))
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            try:
                read = b"".join(map(_WellQuoted(Path(file.name), ",", '"').read, ends))
            except ValueError:
                read = None
        right = re.fullmatch(strict, text) is not None
        assert (read is not None) == right
        assert read in (None, text, text + b"\n")

    def test_an_empty_text_is_no_missing_one(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(b'who,words\na,\na,""\n,x\n"",x\n')
        layout = duck.Layout("who", COLUMNS[:1])
        missing = Measure("missing", Selection("c0 IS NULL"), Aggregate.ROWS)
        blank = Measure("blank", Selection("c0 = ''"), Aggregate.ROWS)
        found = found_of(CsvFile(path), layout, (missing, blank))
        assert [int(found.integers[at][0, 0]) for at in ("missing", "blank")] == [1, 1]
        assert found.rows == {"rows": 4, "rows without a unit": 2}

    def test_nothing_is_left_behind_and_nothing_is_printed(self, tmp_path, monkeypatch, capfd):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
        (tmp_path / "scratch").mkdir()
        found_of(written(tmp_path / "t.csv", [("a", *[None] * 5)]))
        assert not list((tmp_path / "scratch").iterdir())
        assert capfd.readouterr() == ("", "")

    def test_no_room(self, tmp_path, monkeypatch):
        monkeypatch.setattr(duck, "_MEMORY", "1MB")
        rows = [(f"u{n}", "x" * 1000, *[None] * 4) for n in range(3000)]
        with pytest.raises(InputError, match="too little memory or room"):
            found_of(written(tmp_path / "t.csv", rows))


@once
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=2,
        max_size=3,
        unique_by=str.casefold,
    )
)
@example(names=["who", "age\n(years)"])
@example(names=["\ufeffwho", '"'])
def test_made_up_rows_have_columns_of_any_name(names, folder):
    """A sealed run is tried on them, whatever the source is."""
    unit, *others = names
    layout = duck.Layout(
        unit, tuple(Column(name, Shape(Kind.INTEGER, low=0, high=9)) for name in others)
    )
    source = made_up(layout, 40, np.random.default_rng(0), folder)
    assert found_of(source, layout, MEASURES[:1]).rows["rows"] == 40
