"""Nothing of a row is guessed, nothing is told but results, and the owner is told what was cut."""

import json
import random
import traceback

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.tables.release_file import read_release
from dpaudit.workflow.releasing import release_table

pytest.importorskip("duckdb")

COLUMNS = {
    "ward": {"type": "text", "values": ["A", "B"]},
    "cost": {"type": "number", "range": [0, 100], "step": 0.5},
    "town": {"type": "text"},
}
WORD = "Zwingenberg"
"""A private value that nothing but the owner's files may hold."""


def release_of(folder, rows, queries, **privacy):
    (folder / "t.csv").write_text("who,ward,cost,town\n" + rows, encoding="utf-8")
    facts = {"relation": "add-remove", "claim": {"epsilon": 1.0, "delta": 1e-6}, "rows_per_unit": 2}
    content = {
        "data": {"source": "t.csv", "unit": "who", "columns": COLUMNS},
        "privacy": {**facts, **privacy},
        "query": queries,
    }
    return read_release(content, folder)


def integers(release, at, seed=0):
    return release.load(np.random.default_rng(seed)).integers[at].ravel().tolist()


def test_nan_and_infinity_are_null_and_make_no_sum_nan(tmp_path):
    """Elsewhere a NaN makes a key's sum NaN (PipelineDP, diffprivlib)."""
    rows = "a,A,NaN,x\nb,A,3,x\nc,A,inf,x\nd,A,-inf,x\ne,A,1e999,x\nf,B,nan,x\n"
    release = release_of(tmp_path, rows, [{"name": "s", "sum": "cost", "by": "ward"}])
    assert integers(release, "s") == [6, 0, 0]


def test_what_is_no_number_is_null_and_told_to_the_owner_and_is_not_the_upper_bound(tmp_path):
    """Elsewhere "abc" in a number silently becomes the upper bound (SmartNoise)."""
    rows = "a,A,abc,x\nb,A,3,x\nc,A,999,x\nd,A,-4,x\ne,,1,x\nf,A,,x\n,A,7,x\n"
    queries = [{"name": "s", "sum": "cost"}, {"name": "m", "mean": "cost", "by": "ward"}]
    release = release_of(tmp_path, rows, queries)
    assert integers(release, "s") == [6 + 200 + 0 + 2]
    assert integers(release, "m: count") == [3, 0, 1]
    owner = release.for_owner(release.load())
    assert owner["rows"] == {
        "rows": 7,
        "rows without a unit": 1,
        "values of cost outside its range": 2,
        "values of cost not as its type": 1,
    }
    assert "no longer public" in owner["note"]


def test_the_owner_is_told_how_many_values_are_not_in_a_list(tmp_path):
    """They are counted under *other*, where nobody sees a typing error."""
    rows = "a,A,1,x\nb,a,1,x\nc,B ,1,x\nd,,1,x\ne,B,1,x\n"
    release = release_of(tmp_path, rows, [{"name": "n", "count": True, "by": "ward"}])
    owner = release.for_owner(release.load())
    assert owner["rows"]["values of ward not in its list"] == 2
    assert integers(release, "n") == [1, 1, 3]


def test_the_owner_is_told_what_the_bounds_cut_and_what_bias_follows(tmp_path):
    """None of seven other tools says what its bounds cut."""
    rows = "a,A,100,x\n" * 8 + "b,A,20,x\nb,B,20,x\nc,A,10,x\nd,other,1,x\n"
    queries = [{"name": "m", "mean": "cost"}, {"name": "n", "count": True, "by": "ward"}]
    release = release_of(tmp_path, rows, queries)
    owner = release.for_owner(release.load())
    assert owner["rows that the bounds left out"] == {"m: sum": 6, "m: count": 6, "n": 6}
    (mean,), cells = owner["queries"]["m"], owner["queries"]["n"]
    assert mean["with bounds"] == pytest.approx(251 / 6)
    assert mean["without bounds on rows and groups"] == pytest.approx(851 / 12)
    assert [each["cell"] for each in cells] == [["A"], ["B"], ["other"]]
    assert [each["with bounds"] for each in cells] == [4, 1, 1]
    assert [each["without bounds on rows and groups"] for each in cells] == [10, 1, 1]


def test_bounds_come_after_joins_derived_columns_and_where_in_whatever_order_they_are_said(
    tmp_path,
):
    """Of ten rows of a unit two are of the north: both count under a bound of two, always.

    Elsewhere the order of clauses changes what is bounded without a word (Tumult).
    """
    (tmp_path / "p.csv").write_text("name,side\nx,north\ny,south\n")
    rows = "a,A,5,x\na,A,6,x\n" + "a,A,1,y\n" * 8
    release_of(tmp_path, rows, [{"count": True}])
    join = {"source": "p.csv", "key": "name", "on": "town"}
    side = {"side": {"type": "text", "values": ["north", "south"]}}
    data = {
        "source": "t.csv",
        "unit": "who",
        "columns": COLUMNS,
        "derived": {"twice": "cost * 2"},
        "join": {**join, "columns": side},
    }
    privacy = {"relation": "add-remove", "claim": {"epsilon": 1.0}, "rows_per_unit": 2}
    query = {"name": "s", "sum": "twice", "where": "side = 'north' AND twice > 4", "by": "ward"}
    found = set()
    for seed in range(6):
        rng = random.Random(seed)
        tables = {"data": shuffled(data, rng), "privacy": shuffled(privacy, rng)}
        content = shuffled({**tables, "query": [shuffled(query, rng)]}, rng)
        found.add(tuple(integers(read_release(content, tmp_path), "s", seed)))
    assert found == {(44, 0, 0)}


def shuffled(table, rng):
    return dict(rng.sample([*table.items()], len(table)))


def test_no_place_in_a_file_decides_which_rows_count(tmp_path):
    rows = [f"a,A,{n},x\n" for n in range(50)] + [f"b,B,{n},x\n" for n in range(50)]
    queries = [{"name": "s", "sum": "cost", "by": "ward"}]
    first = integers(release_of(tmp_path, "".join(rows), queries), "s")
    random.Random(1).shuffle(rows)
    release = release_of(tmp_path, "".join(rows), queries)
    assert integers(release, "s") == first
    assert len({tuple(integers(release, "s", seed)) for seed in range(9)}) > 1


@pytest.mark.parametrize(
    "broken",
    [
        f"a,A,1,{WORD}\na,A,1\n",
        f"a,A,1,{WORD},{WORD}\n",
        f'a,A,1,"{WORD}\n',
        f'a,A,1,"{WORD}"x\n',
        f"a,A,1,{WORD}\udcff\n",
    ],
)
def test_no_error_quotes_a_private_value(tmp_path, broken):
    """Elsewhere an error quotes a private value (OpenDP)."""
    release = release_of(tmp_path, "", [{"count": True}])
    with (tmp_path / "t.csv").open("ab") as file:
        file.write(broken.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match="cannot be read as it is declared") as raised:
        release.load()
    assert WORD not in "".join(traceback.format_exception(raised.value))


FILE = """
[data]
source = "t.csv"
unit = "who"
columns.town = { type = "text" }
columns.cost = { type = "number", range = [0, 100], step = 0.5 }
[privacy]
relation = "add-remove"
claim = { epsilon = 1.0, delta = 1e-6 }
rows_per_unit = 1
[[query]]
name = "k"
keys = "town"
[[query]]
name = "q"
median = "cost"
[[query]]
name = "m"
mean = "cost"
"""


def test_nothing_that_is_written_holds_a_rare_key_a_unit_or_how_many_there_are(tmp_path):
    rows = "".join(f"unit{n},A,5,frequent\n" for n in range(3000)) + f"unitx,B,5,{WORD}\n"
    release_of(tmp_path, rows, [{"count": True}])
    (tmp_path / "r.toml").write_text(FILE)
    _, files = release_table(tmp_path / "r.toml", tmp_path / "out", witness=False)
    written = {path.name: path.read_bytes() for path in files if path.name != "owner.json"}
    assert not [name for name, content in written.items() if WORD.encode() in content]
    assert not [name for name, content in written.items() if b"unit1" in content]
    assert not [name for name in written if name == "owner.json"]
    results = {each["query"]: each["rows"] for each in json.loads(written["results.json"])}
    assert [row["cell"] for row in results["k"]] == [["frequent"]]
    assert [row["value"] for row in results["q"]] == [5.0]
    assert 4 < results["m"][0]["value"] < 6


def test_keys_are_told_as_the_table_writes_them(tmp_path):
    (tmp_path / "t.csv").write_text("who,day,ill,n\n" + "a,2020-05-06,true,7\nb,2020-05-06,1,7\n")
    columns = {
        "day": {"type": "date", "range": ["2019-01-01", "2021-01-01"]},
        "ill": {"type": "boolean"},
        "n": {"type": "integer", "range": [0, 9]},
    }
    data = {"source": "t.csv", "unit": "who", "columns": columns}
    privacy = {
        "relation": "add-remove",
        "claim": {"epsilon": 1.0, "delta": 1e-6},
        "rows_per_unit": 1,
    }
    query = [{"name": "k", "keys": ["day", "ill", "n"]}]
    release = read_release({"data": data, "privacy": privacy, "query": query}, tmp_path)
    assert release.load().keys["k"] == {("2020-05-06", "true", "7"): 2}


def test_each_of_many_values_is_a_group_of_its_own(tmp_path):
    """More values than are compared one by one: texts, integers, and integers that are derived."""
    texts = [f"it's {n}" for n in range(60)]
    numbers = [n * n - 7 for n in range(60)]
    rows = "".join(f"u{n},{t},{i}\n" for n, (t, i) in enumerate(zip(texts, numbers, strict=True)))
    (tmp_path / "t.csv").write_text(f"who,text,n\n{rows}x,strange,999\ny,,\n")
    data = {
        "source": "t.csv",
        "unit": "who",
        "columns": {
            "text": {"type": "text", "values": texts},
            "n": {"type": "integer", "values": numbers},
        },
        "derived": {"filled": "COALESCE(n, 1180591620717411303424)", "low": "LOWER(text)"},
    }
    privacy = {"relation": "add-remove", "claim": {"epsilon": 1.0}, "rows_per_unit": 1}
    by = ["text", "n", "filled", "low"]
    queries = [{"name": name, "count": True, "by": name} for name in by]
    release = read_release({"data": data, "privacy": privacy, "query": queries}, tmp_path)
    assert integers(release, "text") == integers(release, "n") == [1] * 60 + [2]
    assert integers(release, "filled") == [1] * 60 + [2, 0]
    assert integers(release, "low") == [1] * 60 + [2]
