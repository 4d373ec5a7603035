"""A release file says what it means, or one sentence says what would be right."""

import copy
import os
import re
import shutil
from contextlib import closing

import pytest

from dpaudit.base.errors import InputError
from dpaudit.tables.engines.duck import connect, rows_of, staged
from dpaudit.tables.release_file import read_release, read_release_file, read_table

pytest.importorskip("sqlglot")

GOOD = {
    "data": {
        "source": "t.csv",
        "unit": "u",
        "columns": {
            "g": {"type": "text", "values": ["a", "b"]},
            "x": {"type": "integer", "range": [0, 9]},
            "y": {"type": "number", "range": [0, 1], "step": 0.1},
            "d": {"type": "date", "range": ["2020-01-01", "2021-01-01"]},
            "t": {"type": "text"},
        },
    },
    "privacy": {
        "relation": "add-remove",
        "claim": {"epsilon": 1.0, "delta": 1e-6},
        "rows_per_unit": 2,
    },
    "query": [{"name": "n", "count": True}],
}
FINE = {"type": "integer", "range": [0, 9]}
GONE = "the key is left out"  # a text, as processes must collect tests of the same names

FILES = [
    ("data", GONE, "data is missing; it must be a table"),
    ("privacy", GONE, "privacy is missing; it must be a table"),
    ("query", GONE, "has no [[query]]; for example"),
    ("query", {}, "it must be an array of tables"),
    ("query", [5], "query 1: it is 5; it must be a table"),
    ("extra", 1, "unknown key 'extra'; it must be one of data"),
    ("data.source", GONE, "source is missing; it must be a non-empty text"),
    ("data.source", "t.xls", "source is 't.xls'; it must end in .csv"),
    ("data.source", "postgresql://h/d", "table is missing; it must be a non-empty text"),
    ("data.table", "t", "table is given for 't.csv', which takes none"),
    ("data.delimiter", ";;", "delimiter is ';;'; it must be one"),
    ("data.quote", "", "quote is ''; it must be one"),
    ("data.unit", GONE, "unit is missing; it must be a non-empty text"),
    ("data.colums", {}, "unknown key 'colums'; did you mean 'columns'"),
    ("data.columns", [1], "data needs columns, as columns.age"),
    ("data.columns.G", {"type": "text"}, "column 'G' is declared twice; rename"),
    ("data.columns.U", {"type": "text"}, "'U' differs from the unit 'u' only by capital letters"),
    (
        "data.join",
        {"source": "p.csv", "on": "G", "columns": {"z": FINE}},
        "'G' only by capital",
    ),
    (
        "data.join",
        {"source": "p.csv", "on": "g", "key": "Z", "columns": {"z": FINE}},
        "join.key 'Z' only by capital letters",
    ),
    ("data.derived", 5, "derived is 5; it must be a table"),
    ("data.derived", {"z": 5}, "derived.z: expression is 5; it must be a text"),
    ("data.derived", {"x": "1"}, "derived.x: 'x' is a column already; give it another name"),
    ("data.join", 5, "join: join is 5; it must be a table"),
    ("data.join", {"source": "p.csv"}, "join: on is missing; it must be a non-empty text"),
    ("data.join", {"source": "p.csv", "on": "t"}, "join needs columns, as"),
    ("data.join", {"source": "p.csv", "on": "t", "columns": {"x": FINE}}, "declared twice"),
    ("privacy.relation", GONE, "privacy lacks the key 'relation', such as"),
    ("privacy.relation", "both", "relation is 'both'; it must be one of"),
    ("privacy.relation", "zero-out", "takes add-remove or replace-one"),
    ("privacy.claim", GONE, "privacy lacks the key 'claim', such as"),
    ("privacy.claim", {}, "claim states nothing; it must be a table like"),
    ("privacy.claim", {"epsilon": -1}, "epsilon is -1; it must be"),
    ("privacy.claim", {"eps": 1}, "unknown key 'eps'; did you mean 'epsilon'"),
    ("privacy.rows_per_unit", GONE, "rows_per_unit is missing"),
    ("privacy.rows_per_unit", 0, "rows_per_unit is 0; it must be an integer of at least 1"),
    ("privacy.rows_per_unit", 10**6, "at most 999999"),
    ("privacy.groups_per_unit", 2.5, "groups_per_unit is 2.5; it must be an integer"),
    ("privacy.noise", "normal", "noise is 'normal'; it must be one of laplace, gaussian"),
    ("privacy.trust", "nobody", "trust is 'nobody'; it must be one of"),
    ("privacy.trust", "local", "trust is 'local'; whoever releases a table sees its rows"),
]
COLUMNS = [
    (5, "columns.x: column is 5; it must be a table"),
    ({"type": "int"}, "columns.x: type is 'int'; did you mean 'integer'"),
    ({"type": "integer"}, "range is missing; it must have two ends"),
    ({"type": "integer", "range": [9, 0]}, "the first end must be below the second"),
    ({"type": "integer", "range": [0, 2**60]}, "take larger steps"),
    ({"type": "integer", "range": [True, 9]}, "range is True; it must be a finite number"),
    ({"type": "integer", "range": [0, float("inf")]}, "range is inf; it must be a finite number"),
    ({"type": "integer", "range": [0.5, 9]}, "range is 0.5; it must be a multiple of the step 1"),
    ({"type": "integer", "range": [0, 9], "step": 1}, "step is given for integer values"),
    ({"type": "integer", "range": [0, 9], "values": [1]}, "values and range are both given"),
    ({"type": "integer", "values": []}, "values must be a list of 1 to"),
    ({"type": "integer", "values": [2, 1, 1]}, "values has 1 twice; list each once"),
    ({"type": "integer", "values": [True]}, "values has True; they must be integers"),
    ({"type": "number", "range": [0, 1]}, "step is missing; it must be a finite number above 0"),
    ({"type": "number", "range": [0, 1], "step": 0.3}, "must be a multiple of the step 0.3"),
    ({"type": "number", "range": [0, 1], "values": [1]}, "values is given for a number"),
    ({"type": "date", "range": ["2020-13-01", "2021-01-01"]}, "must be a date, such as 2024-01-31"),
    ({"type": "text", "range": [0, 1]}, "range is given for text values"),
    ({"type": "text", "values": [1]}, "values has 1; they must be texts"),
    ({"type": "boolean", "values": [True]}, "which are false and true"),
    ({"type": "text", "rnage": 1}, "unknown key 'rnage'; did you mean 'range'"),
]
QUERIES = [
    ({}, "asks for nothing; it must have one of count"),
    ({"count": True, "sum": "x"}, "asks for count and sum; it must have one of"),
    ({"cuont": True, "by": "g"}, "unknown key 'cuont'; did you mean 'count'"),
    ({"by": "g"}, "asks for nothing; it must have one of count"),
    ({"count": 1}, "count is 1; it must be true"),
    ({"count": True, "wehre": "x"}, "unknown key 'wehre'; did you mean 'where'"),
    ({"count": True, "by": "w"}, "there is no column 'w'; it must be one of d, g"),
    ({"count": True, "by": 5}, "by is 5; it must be a table"),
    ({"count": True, "by": ["g", "G"]}, "by has a column twice; name each once"),
    ({"count": True, "by": "d"}, "give edges"),
    ({"count": True, "by": {"column": "x"}}, "edges is missing; they must be 2 to 10000"),
    ({"count": True, "by": {"column": "x", "edges": [3, 1]}}, "they must increase"),
    ({"count": True, "by": {"column": "x", "edges": [0, 1.5]}}, "a multiple of the step 1"),
    ({"count": True, "by": {"column": "g", "edges": [0, 1]}}, "numbers and dates have edges"),
    ({"count": True, "where": 5}, "expression is 5; it must be a text of SQL"),
    ({"count": True, "where": "x"}, "a condition must be true or false"),
    ({"count": True, "weight": float("nan")}, "weight is nan; it must be a finite number above 0"),
    ({"count": True, "weight": 1e-308}, "weight is 1e-308; it must be from 1e-06 to 1e6"),
    ({"count": True, "weight": 1e7}, "weight is 1e+07; it must be from 1e-06 to 1e6"),
    ({"count": True, "name": ""}, "name is ''; it must be a non-empty text"),
    ({"count": True, "name": "n" * 400}, "at most 300 characters"),
    ({"sum": "g"}, "sum is 'g', a text; it must be a number"),
    ({"median": "g"}, "median is 'g', a text; it must be a number: a column of type integer or"),
    ({"sum": "x * 10000000000000000"}, "it must be a number of at most 2^53"),
    ({"median": "x", "at": [0.5]}, "unknown key 'at'"),
    ({"quantiles": "x"}, "at is missing; it must be a list of shares"),
    ({"quantiles": "x", "at": [0]}, "at is 0; it must be a number in (0, 1)"),
    ({"quantiles": "x", "at": [0.0001]}, "shares must be from 0.001 to 0.999"),
    ({"quantiles": "x", "at": [0.5, 0.5]}, "name each share once"),
    ({"quantiles": "x", "at": [0.5], "candidates": 0}, "candidates is 0; it must be an integer"),
    ({"histogram": "t"}, "'t' is a column whose values are not listed; give values"),
    ({"histogram": "g", "by": "x"}, "unknown key 'by'"),
    ({"top": "g", "k": 3}, "k is 3; it must be an integer of at least 1 and at most 2"),
    ({"keys": []}, "keys is []; it must be columns"),
    ({"keys": "y"}, "use histogram with edges"),
]
CASES = [
    *FILES,
    *(("data.columns.x", value, said) for value, said in COLUMNS),
    *(("query", [value], said) for value, said in QUERIES),
]


def changed(place, value):
    content = table = copy.deepcopy(GOOD)
    *path, last = place.split(".")
    for name in path:
        table = table[name]
    table[last] = value
    if value is GONE:
        del table[last]
    return content


@pytest.mark.parametrize(("place", "value", "said"), CASES, ids=lambda case: str(case)[:40])
def test_what_is_wrong_is_told_in_one_sentence_with_its_field_and_rule(place, value, said):
    read_release(GOOD)
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read_release(changed(place, value))
    assert "\n" not in str(raised.value)
    assert str(raised.value)[-1] in ".?"


def test_a_claim_that_no_noise_or_any_noise_certifies_is_told_before_data_are_read():
    keyless = changed("privacy.claim", {"epsilon": 1.0})
    keyless["query"] = [{"keys": "t"}]
    with pytest.raises(InputError, match="needs a δ; state one in the claim"):
        read_release(keyless).plan()
    with pytest.raises(
        InputError, match=r"no noise certifies .* claim a larger ε, or declare fewer"
    ):
        read_release(changed("privacy.claim", {"epsilon": 1e-12})).plan()


def test_dates_may_be_written_as_toml_has_them(tmp_path):
    (tmp_path / "r.toml").write_text(
        'data = { source = "t.csv", unit = "u", columns.d = { type = "date", '
        "range = [2020-01-01, 2021-01-01] } }\n"
        'privacy = { relation = "add-remove", claim.epsilon = 1.0, rows_per_unit = 2 }\n'
        '[[query]]\ncount = true\nby = { column = "d", edges = [2020-01-01, 2020-06-01] }\n'
    )
    release = read_release_file(tmp_path / "r.toml")
    assert [*release.queries[0].groups.labels()] == [("2020-01-01 to 2020-06-01",), ("other",)]
    assert len(release.record.declaration) == 64


# -- wrong intentions ------------------------------------------------------------------------------

WRONG = [
    # bounds that follow from the rows
    ({"type": "integer", "range": ["min(x)", "max(x)"]}, None, "known without the data"),
    (None, {"sum": "x", "where": "x < (SELECT max(x) FROM t)"}, "declare a public table to join"),
    (None, {"sum": "CASE WHEN x > max(x) THEN 0 ELSE x END"}, "bounds known without the data"),
    # rows that are counted once across people
    (None, {"count": True, "where": "row_number() OVER (PARTITION BY t) = 1"}, "sees one row"),
    (
        None,
        {"count": "DISTINCT t"},
        "it must be true (count counts rows, and count_units counts units)",
    ),
    # a window that ends at the latest date
    (None, {"count": True, "where": "d > max(d) - 30"}, "bounds known without the data"),
    (None, {"count": True, "where": "d > current_date - 30"}, "write the date as a constant"),
    # keys that follow from the rows
    (None, {"count": True, "by": "t"}, "release unlisted keys with a query that has keys"),
    ({"type": "integer", "values": "all"}, None, "a list of 1 to 100000 public values"),
    (
        {"type": "text", "values": "SELECT DISTINCT t"},
        None,
        "known without the data; to release values that",
    ),
    # a quotient
    (None, {"mean": "x / 10"}, "multiply by a constant such as 0.1"),
    # a median of everybody within an expression
    (None, {"count": True, "where": "x > median(x)"}, "declare a query"),
    (None, {"sum": "x - quantile_cont(x, 0.5)"}, "declare a query"),
]


@pytest.mark.parametrize(("column", "query", "remedy"), WRONG)
def test_what_would_see_other_rows_cannot_be_said_and_the_refusal_says_what_to_do(
    column, query, remedy
):
    content = changed("query", [query]) if query else changed("data.columns.x", column)
    with pytest.raises(InputError, match=re.escape(remedy)):
        read_release(content)


def test_derived_columns_count_as_what_they_are_made_of():
    """Each of a chain is short; what an engine must read of the last one is not."""
    chain = {"b0": "x > 1"} | {f"b{n}": f"NOT NOT NOT NOT NOT NOT b{n - 1}" for n in range(1, 40)}
    doubled = {"e0": "x"} | {f"e{n}": f"e{n - 1} + e{n - 1}" for n in range(1, 30)}
    for derived in (chain, doubled):
        content = {**GOOD, "data": {**GOOD["data"], "derived": derived}}
        with pytest.raises(InputError, match="simplify"):
            read_release(content)


def test_the_private_table_is_not_joined_with_itself():
    join = {"source": "./t.csv", "key": "u", "on": "t", "columns": {"z": FINE}}
    with pytest.raises(InputError, match="must be public"):
        read_release({**GOOD, "data": {**GOOD["data"], "join": join}})


@pytest.mark.parametrize("kind", [os.symlink, os.link])
def test_a_file_that_is_exchanged_for_the_private_table_is_not_joined(tmp_path, kind):
    """Each row could read the rows of others, and one of them would move all."""
    (tmp_path / "t.csv").write_text("u,t,z\nann,ann,1\n")
    (tmp_path / "p.csv").write_text("u,z\nbob,2\n")
    own = {"u": {"type": "text"}, "t": {"type": "text"}}
    join = {"source": "p.csv", "key": "u", "on": "t", "columns": {"z": FINE}}
    data = {"source": "t.csv", "unit": "u", "columns": own, "join": join}
    source, layout, _ = read_table(data, tmp_path)
    with staged(source, layout) as buckets:
        assert len(buckets) == 2
    (tmp_path / "p.csv").unlink()
    kind(tmp_path / "t.csv", tmp_path / "p.csv")
    with pytest.raises(InputError, match="must be public"), staged(source, layout):
        pass


def test_a_joined_file_is_exchanged_too_late_once_it_is_opened(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("u,t,z\nann,ann,1\n")
    (tmp_path / "p.csv").write_text("u,z\nann,2\n")
    join = {"source": "p.csv", "key": "u", "on": "t", "columns": {"z": FINE}}
    data = {"source": "t.csv", "unit": "u", "columns": {"t": {"type": "text"}}, "join": join}
    source, layout, _ = read_table(data, tmp_path)
    copied = shutil.copyfileobj

    def exchanged(*given):
        (tmp_path / "p.csv").unlink()
        (tmp_path / "p.csv").symlink_to("t.csv")
        copied(*given)

    monkeypatch.setattr(shutil, "copyfileobj", exchanged)
    with staged(source, layout) as buckets, closing(connect(tmp_path)) as connection:
        rows = connection.execute(f"SELECT c1 FROM ({rows_of(buckets, layout)})").fetchall()
    assert rows == [(2,)]


def test_a_joined_file_that_lacks_a_column_is_named_as_its_author_does(tmp_path):
    (tmp_path / "t.csv").write_text("u,t\nann,ann\n")
    (tmp_path / "p.csv").write_text("u,y\nann,2\n")
    join = {"source": "p.csv", "key": "u", "on": "t", "columns": {"z": FINE}}
    data = {"source": "t.csv", "unit": "u", "columns": {"t": {"type": "text"}}, "join": join}
    source, layout, _ = read_table(data, tmp_path)
    wanted = "^source 'p.csv' has no column 'z'; it has u, y.$"
    with pytest.raises(InputError, match=wanted), staged(source, layout):
        pass


DATABASE = "postgresql://host/db"


@pytest.mark.parametrize(
    ("source", "table", "other", "its", "refused"),
    [
        (DATABASE, "t", DATABASE, "public.t", True),
        (DATABASE, "public.t", DATABASE + "?application_name=x", "public.t", True),
        (DATABASE, "a.t", DATABASE, "b.t", False),
        (DATABASE, "t", DATABASE, "wards", False),
        ("t.duckdb", "t", "./t.duckdb", "main.T", True),
        ("t.duckdb", "t", "t.duckdb", "wards", False),
        ("t.duckdb", "t", "other.duckdb", "t", False),
    ],
)
def test_tables_of_one_database_are_joined_and_a_table_not_with_itself(
    source, table, other, its, refused
):
    join = {"source": other, "table": its, "key": "u", "on": "t", "columns": {"z": FINE}}
    data = {**GOOD["data"], "source": source, "table": table, "join": join}
    if not refused:
        read_release({**GOOD, "data": data})
        return
    with pytest.raises(InputError, match="must be public"):
        read_release({**GOOD, "data": data})


@pytest.mark.parametrize(
    ("table", "its"), [("ΟΔΟΣ", "οδοσ"), ("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i")]
)
def test_a_table_is_not_joined_with_itself_where_duckdb_alone_takes_two_names_for_one(
    table, its, tmp_path
):
    """Python makes other small letters of some than DuckDB does."""
    duckdb = pytest.importorskip("duckdb", reason="the extra 'tables' is missing")
    with closing(duckdb.connect(str(tmp_path / "t.duckdb"))) as database:
        database.execute(f"CREATE TABLE \"{table}\" AS SELECT 'a' AS u, 'a' AS t, 1 AS z")
        database.execute("CREATE TABLE wards AS SELECT 'a' AS u, 1 AS z")
    join = {"source": "t.duckdb", "key": "u", "on": "t", "columns": {"z": FINE}}
    data = {"source": "t.duckdb", "table": table, "unit": "u", "columns": {"t": {"type": "text"}}}
    source, layout, _ = read_table(data | {"join": join | {"table": "wards"}}, tmp_path)
    with staged(source, layout):
        pass
    source, layout, _ = read_table(data | {"join": join | {"table": its}}, tmp_path)
    with pytest.raises(InputError, match="must be public"), staged(source, layout):
        pass


def test_a_value_that_is_called_as_all_else_makes_no_group():
    columns = {**GOOD["data"]["columns"], "g": {"type": "text", "values": ["a", "other"]}}
    content = {
        **GOOD,
        "data": {**GOOD["data"], "columns": columns},
        "query": [{"count": True, "by": "g"}],
    }
    with pytest.raises(InputError, match="leave this value out"):
        read_release(content)
