"""Whatever holds the rows is taken apart and put together again.

Which units are worth a move, and what rows can be given.
"""

import datetime as dt
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.rehearsal.columns import Columns, added, chosen, ends, without, zeroed


class Pay(NamedTuple):
    salary: Any
    team: str


class Parts(NamedTuple):
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Visit:
    user: str
    days: Any


@dataclass
class Doubled:
    amount: float

    def __post_init__(self):
        self.amount *= 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


STRUCTURED = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])

CONTAINERS = [
    [3, 1, 2],
    [0.5, 1.0, 2.0],
    (True, False, True),
    ["a", "b", "a"],
    [{"who": "ann", "x": 1.5}, {"who": "bob", "x": 2.5}],
    [("ann", 1), ("bob", 2)],
    {"ann": 1.0, "bob": 2.0},
    {"ann": [1, 2], "bob": []},
    np.arange(6.0).reshape(3, 2),
    STRUCTURED,
    (np.arange(4), np.ones((4, 2))),
    {"x": np.arange(3), "y": np.ones(3)},
    [np.zeros(2), np.ones(2)],
    [np.zeros(2), np.ones(3)],
    [np.zeros(2), np.ones(2, dtype="f4")],
    [1, 2.5, True, None],
    [10**30, -1, 2**63],
    [np.float64(1), np.int8(2)],
    [Level.LOW, Level.HIGH],
    [Pay(Decimal(1), "a"), Pay(None, "b"), Pay(Decimal(2), "b")],
    [Visit("a", [1, 2]), Visit("b", (3,)), Visit("a", {"x": 1})],
    [Doubled(1.0), Doubled(2.0)],
    [("a", [1]), ("b", []), ("c", [[2]])],
    [{"tags": ["x"], "at": (1, 2)}, {"tags": [], "at": (3,)}],
    [{1: "a", "1": "b"}, {1: "c", "1": "d"}],
    Parts(np.arange(3), np.ones(3)),
    STRUCTURED.view(np.recarray),
    np.array(["ann", "bob"]),
    np.array(["2024-01-02", "2024-05-01"], dtype="M8[D]"),
    {"age": [30, 40, 50], "vote": ["a", None, "b"]},
    {"x": np.arange(3), "y": [1.5, 2, None]},
    {"ann": {"key": 1}, "bob": {"key": 2}},
    defaultdict(list, {"ann": [1], "bob": [2, 3]}),
    OrderedDict(ann=1, bob=2),
    Counter("abca"),
]


def same(one, two):
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, list | tuple):
        return type(one) is type(two) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    return type(one) is type(two) and one == two


@pytest.mark.parametrize("data", CONTAINERS, ids=lambda data: f"{type(data).__name__}")
def test_a_container_survives(data):
    for unit in ("row", "user", "person"):
        table = Columns.of(data, unit)
        size = len(table)
        assert same(table.data, data)
        assert same(table.take(range(size)).data, data)
        if table.key is None:
            assert same(table.take([*range(size), 0]).take(range(size)).data, data)
        values = {name: each[0] for name, each in table.values().items()}
        assert same(table.changed([0], values).data, data)
        assert type(table.take([0]).data) is type(data)
        assert type(table.take([]).data) is type(data)


@pytest.mark.parametrize("data", [None, 3.0, "text", object(), [], {}, np.array(1.0), {1, 2}])
def test_what_has_no_rows_is_none(data):
    assert Columns.of(data) is None


def test_units_are_rows_or_what_a_column_says():
    rows = [{"user": "a", "x": 1}, {"user": "b", "x": 2}, {"user": "a", "x": 3}]
    assert [u.tolist() for u in Columns.of(rows, "user").units()] == [[0, 2], [1]]
    assert [u.tolist() for u in Columns.of(rows, "row").units()] == [[0], [1], [2]]
    assert list(Columns.of(rows, "user").values()) == ["x"]
    assert Columns.of({"ann": 1, "bob": 2}).unit == "key"


@given(
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=2)))
)
def test_any_mixture_of_values_keeps_its_types(values):
    for data in (values, [(each, 0) for each in values], [{"x": each} for each in values]):
        table = Columns.of(data)
        assert repr(table and table.data) == repr(data or None)


def test_texts_name_units_only_where_a_unit_is_not_a_row():
    rows = [{"text": f"all different {n}", "stars": n % 3} for n in range(6)]
    for unit in ("row", "record", "stars"):
        assert Columns.of(rows, unit).key is None
    guessed = Columns.of(rows, "person")
    assert guessed.unit == guessed.key == "text"


def test_a_mapping_of_lists_is_a_table_or_lists_of_units():
    few = {"a": list(range(9)), "b": list(range(9))}
    assert len(Columns.of(few)) == 9
    many = {f"user {n}": [0.0] * 30 for n in range(21)}
    assert Columns.of(many).unit == "key"
    assert Columns.of({**many, "user": ["x"] * 30}, "user").unit == "user"
    for lists in (
        {"a": [1], "b": [2]},
        {"a": [(1, 2)] * 3},
        {7: [1, 2, 3]},
        {"a": [1, 2], "b": []},
    ):
        assert Columns.of(lists).unit == "key"


def test_names_of_rows_stay_those_of_rows_where_units_have_several():
    orders = {7: {"user": "a", "x": 1}, 8: {"user": "b", "x": 2}, 9: {"user": "a", "x": 3}}
    table = Columns.of(orders, "user")
    assert [each.tolist() for each in table.units()] == [[0, 2], [1]]
    assert list(table.values()) == ["x"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["user 1", "user 2"]),
        np.array(["a", "0"]),
        np.array(["2024-01-02", "2101-01-01"], dtype="M8[D]"),
        np.array([127, -128], dtype="i1"),
        np.array([0.5, np.inf]),
        np.array(["a new unit", None], dtype=object),
        np.array([dt.date(2024, 2, 29), dt.date(2101, 1, 1)], dtype=object),
        np.array([3, None], dtype=object),
    ],
    ids=str,
)
def test_a_new_name_is_another_one_of_the_same_type(labels):
    table = Columns.of({"user": labels, "x": np.arange(2)}, "user")
    found = table.unused("user", 3)
    stored = [table.changed([0], {"user": each}).arrays["user"][0] for each in found]
    assert len({*np.array([*stored, *labels], dtype=labels.dtype).tolist()}) == 5
    assert {type(each) for each in stored} <= {type(each) for each in labels}


def test_what_no_name_can_be_made_up_for_has_none():
    assert Columns.of([(Level.LOW, 1), (Level.HIGH, 2)]).unused("0") == []


def test_a_change_leaves_the_original_alone():
    data = np.zeros(3)
    table = Columns.of(data)
    assert table.changed([1], {"value": 5.0}).data.tolist() == [0, 5, 0]
    assert data.tolist() == [0, 0, 0]


def test_tensors_survive():
    torch = pytest.importorskip("torch", reason="the extra 'opacus' is not installed")
    pair = torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    again = Columns.of(pair).take([0, 2]).data
    assert again[1][0] == 2
    assert torch.equal(Columns.of(torch.ones(2)).data, torch.ones(2))


def test_the_rarest_values_are_found_where_many_share_one():
    words = ["a", "a", "a", "b", "a", "b", "c", "a"]
    rows = [(word, float(place)) for place, word in enumerate(words)]
    assert dict(Columns.of(rows).rare()) == {"rare value 0 of 0": 6, "rare value 1 of 0": 3}
    assert next(Columns.of(words).rare()) == ("rare value 0 of value", 6)
    assert list(Columns.of([1.5, 2.5, 2.5, 2.5]).rare()) == []
    assert list(Columns.of(["a", "b", "c", "a"]).rare()) == []


def test_units_of_extreme_values_are_chosen_and_told_without_their_number():
    table = Columns.of([1.0, 9.0, -7.0, 3.0])
    found = {int(rows[0]): label for label, rows in chosen(table, np.random.default_rng(0))}
    assert found[1] == "the row with the largest size of value"
    assert found[2] == "the row with the smallest value of value"


def test_rows_come_and_go():
    table = Columns.of({"user": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, "user")
    assert without(table, np.array([1])).data == {"user": ["a", "c"], "x": [1.0, 3.0]}
    (move,) = added(table, [0], {"x": 5.0}, "more")
    *_, name = move.data.data["user"]
    assert name not in "abc"
    assert move.data.data["x"] == [1.0, 2.0, 3.0, 5.0]
    assert zeroed(table) == {"x": 0.0}
    assert ends(table.numbers()) == ({"x": 1.0}, {"x": 3.0})
