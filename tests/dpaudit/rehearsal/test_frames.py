"""Frames keep the types of their columns, whatever is changed in them.

Sequences become arrays that give back what they were made of.
A column says whose row it is by its name; by its values it only may.
"""

import datetime as dt
from decimal import Decimal
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.plan import AddRemove, ReplaceOne, ZeroOut
from dpaudit.rehearsal.columns import Columns, whose
from dpaudit.rehearsal.frames import (
    column,
    column_of,
    entries,
    hashable,
    labels_like,
    numeric,
    shared,
)
from dpaudit.rehearsal.neighbours import derive_neighbours, elsewhere

DAYS = [dt.datetime(2024, 1, 2), None, dt.datetime(2024, 5, 1)]


def pandas_frames():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    plain = pd.DataFrame({"user": ["a", "b", "a"], "x": [1.5, np.nan, 2.5], "n": [1, 2, 3]})
    typed = pd.DataFrame(
        {
            "user": pd.array(["a", None, "c"], dtype="string"),
            "small": pd.array([1, None, 255], dtype="UInt8"),
            "known": pd.array([True, None, False], dtype="boolean"),
            "answer": pd.Categorical(["no", None, "yes"], categories=["no", "yes", "both"]),
            "day": pd.to_datetime(DAYS),
            "zone": pd.to_datetime(DAYS, utc=True),
            "lists": [[1], None, [2, 3]],
            "f4": np.array([1, 2, np.nan], dtype="f4"),
            "u2": np.array([1, 2, 3], dtype="u2"),
        }
    )
    yield from (plain, typed, plain.set_index("user"), typed[1:], plain[["x"]].set_index("x"))


def polars_frames():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    yield pl.DataFrame({"user": ["a", "b", "a"], "x": [1.5, float("nan"), 2.5], "n": [1, 2, 3]})
    yield pl.DataFrame(
        [
            pl.Series("user", ["a", None, "c"]),
            pl.Series("small", [1, None, 255], dtype=pl.UInt8),
            pl.Series("known", [True, None, False]),
            pl.Series("answer", ["no", None, "yes"], dtype=pl.Enum(["no", "yes", "both"])),
            pl.Series("kind", ["no", None, "yes"], dtype=pl.Categorical),
            pl.Series("day", DAYS, dtype=pl.Datetime("ns", "UTC")),
            pl.Series("cents", [Decimal("1.50"), None, Decimal(2)], dtype=pl.Decimal(9, 2)),
            pl.Series("lists", [[1], None, [2, 3]]),
            pl.Series("pair", [[1, 2], None, [2, 3]], dtype=pl.Array(pl.Int8, 2)),
            pl.Series("of", [{"a": 1}, None, {"a": 2}]),
        ]
    )


def schema(frame):
    index = getattr(frame, "index", None)
    return [*zip(frame.columns, frame.dtypes, strict=True)], type(index), getattr(index, "name", "")


@pytest.mark.parametrize("frames", [pandas_frames, polars_frames])
@pytest.mark.parametrize("unit", ["row", "user"])
def test_every_neighbour_has_the_types_of_the_frame(frames, unit):
    for frame in frames():
        table = Columns.of(frame, unit)
        every = range(len(table))
        assert table.data.equals(frame)
        assert table.take([*every, 0]).take(every).data.equals(frame)
        for relation in (AddRemove(), ReplaceOne(), ZeroOut()):
            found = [
                *derive_neighbours(frame, relation, unit, np.random.default_rng(0), (0.5, 3.0)),
                *elsewhere(frame, relation, unit),
            ]
            assert len(found) > 4 or isinstance(relation, ZeroOut)
            for move in found:
                assert schema(move.data) == schema(frame), move.recipe


@pytest.mark.parametrize("frames", [pandas_frames, polars_frames])
def test_a_missing_entry_stays_missing_where_another_column_is_changed(frames):
    frame = list(frames())[1]
    table = Columns.of(frame)
    changed = table.changed([0], {"small": 7}).data
    assert changed["small"][0] == 7
    before, after = Columns.of(frame).arrays, Columns.of(changed).arrays
    for name in set(frame.columns) - {"f4", "u2"}:
        assert before[name][1] is after[name][1] is None


@pytest.mark.parametrize("frames", [pandas_frames, polars_frames])
def test_what_a_column_cannot_hold_is_left_out(frames):
    table = Columns.of(list(frames())[1])
    assert table.accepts("answer", "both")
    for name, value in (("answer", "??"), ("small", 256), ("small", 1.5), ("day", "yesterday")):
        assert not table.accepts(name, value)


def test_series_survive():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for series in (pd.Series([1.0, 2.0], name="x"), pd.Series([1, None], dtype="Int64")):
        table = Columns.of(series)
        assert table.data.equals(series)
        assert table.data.name == series.name
        assert table.changed([0], {"value": 2}).data.dtype == series.dtype


def test_columns_of_one_name_are_of_no_known_kind():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for names in (["x", "x"], [1, "1"]):
        assert Columns.of(pd.DataFrame([[1, 2], [3, 4]], columns=names)) is None


class Level(IntEnum):
    LOW = 1


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())))
def test_entries_keep_their_types(values):
    assert repr(entries(column(values))) == repr(values)


def test_numbers_are_known_among_what_is_missing():
    assert numeric(column([3, None, 5])).tolist() == [3, 3, 5]
    for values in ([None], [True, None], [Level.LOW, 2], ["a"], [np.nan], []):
        assert numeric(column(values)) is None


@pytest.mark.parametrize("label", [np.int8(3), [1], {"a": 1}, float("nan"), np.float64("nan")])
def test_every_label_can_be_a_key(label):
    assert hashable(label) == hashable(label)
    assert {hashable(label): 1}


def test_labels_are_of_the_type_of_others():
    assert next(iter(labels_like(column([3, None])))) == 4
    assert "a new unit" in labels_like(column(["a"]))
    assert list(labels_like(column([(1, 2)]))) == []


IDS = np.array([3, 1, 3, 2])
TEXTS = np.array(["c", "a", "c", "b"], dtype=object)
AMOUNTS = np.array([0.5, 1.5, 2.5, 0.5])


NAMES = ["customer", "Customer", "CUSTOMER_ID", "customerId", "customer no", "cust_key"]


@pytest.mark.parametrize("name", [*NAMES, "CustName", "customers_id", "anon_customer_id"])
@pytest.mark.parametrize("ids", [IDS, TEXTS, IDS.astype(float)])
def test_names_are_matched_loosely(name, ids):
    assert column_of({"amount": AMOUNTS, name: ids}, "customer") == name
    assert column_of({"amount": AMOUNTS, name: ids}, "customers_id") == name


@pytest.mark.parametrize(
    "name", ["customers", "customer_age", "cu_id", "order_id", "custom", "id", "no", "_", "7"]
)
def test_other_names_are_not(name):
    assert column_of({"amount": AMOUNTS, name: IDS}, "customer") is None


def test_what_is_no_label_is_nobody_s_name():
    for each in (AMOUNTS, IDS > 1, np.array([[1, 2]] * 4), np.array([None, None], dtype=object)):
        assert column_of({"customer_id": each}, "customer") is None
    assert column_of({"customer": AMOUNTS}, "customer") == "customer"


def test_the_nearest_name_wins():
    columns = dict.fromkeys(("anon_user_id", "use_no", "user_id", "User"), IDS)
    while columns:
        found = column_of(columns, "user")
        assert found == max(columns, key=["use_no", "anon_user_id", "user_id", "User"].index)
        del columns[found]


def test_labels_that_repeat_a_little_may_say_whose_rows_they_are():
    assert shared({"when": AMOUNTS, "email": TEXTS}) == "email"
    assert shared({"value": np.column_stack([AMOUNTS, IDS])}) == "value 1"
    assert shared({"email": TEXTS}) == ""
    assert shared({"when": AMOUNTS, "email": np.arange(4)}) == ""
    many = np.repeat([1, 2], 50)
    assert shared({"when": np.arange(100.0), "class": many}) == ""


def test_a_table_is_read_by_units_of_a_similar_name():
    rows = [{"Cust_No": int(each), "amount": 1.0} for each in IDS]
    table = Columns.of(rows, "customer")
    assert table.unit == "Cust_No"
    assert [each.tolist() for each in table.units()] == [[0, 2], [1], [3]]
    assert whose(rows, "customer") == ""
    assert Columns.of(rows, "row").unit is None
    once = Columns.of([{"Cust_No": n, "amount": 1.0} for n in range(4)], "customer")
    assert once.unit == once.key == "Cust_No"  # nothing says that one may have several rows


def test_rows_may_share_an_owner_unless_a_unit_has_no_more_than_one():
    rows = [(text, 1.5) for text in TEXTS]
    assert whose(rows, "customer") == "0"
    assert whose(rows, "row") == whose(rows, "response") == ""
    assert whose([{"order": f"o{n}", "email": e} for n, e in enumerate(TEXTS)], "user") == "email"
    assert whose({f"u{n}": {"a": 1.5, "zip": e} for n, e in enumerate(TEXTS)}, "user") == ""
    assert whose(object(), "user") == ""
