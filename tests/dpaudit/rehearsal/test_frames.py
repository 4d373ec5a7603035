"""Frames keep the types of their columns, whatever is changed in them."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from dpaudit.plan import AddRemove, ReplaceOne, ZeroOut
from dpaudit.rehearsal.columns import Columns
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
