"""Whatever holds the rows is taken apart and put together again."""

import numpy as np
import pytest

from dpaudit.auditing.rehearsal.columns import Columns

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
    table = Columns.of(data)
    assert same(table.data, data)
    first = table.take([0])
    assert len(first) == 1
    assert type(first.data) is type(data)


@pytest.mark.parametrize("data", [None, 3.0, "text", object(), [], {}, np.array(1.0), {1, 2}])
def test_what_has_no_rows_is_none(data):
    assert Columns.of(data) is None


def test_units_are_rows_or_what_a_column_says():
    rows = [{"user": "a", "x": 1}, {"user": "b", "x": 2}, {"user": "a", "x": 3}]
    assert [u.tolist() for u in Columns.of(rows, "user").units()] == [[0, 2], [1]]
    assert [u.tolist() for u in Columns.of(rows, "row").units()] == [[0], [1], [2]]
    assert list(Columns.of(rows, "user").values()) == ["x"]
    assert Columns.of({"ann": 1, "bob": 2}).unit == "key"


def test_a_change_leaves_the_original_alone():
    data = np.zeros(3)
    table = Columns.of(data)
    assert table.changed([1], {"value": 5.0}).data.tolist() == [0, 5, 0]
    assert data.tolist() == [0, 0, 0]


def test_frames_survive():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"user": ["a", "b"], "x": [1.5, 2.5], "n": [1, 2]})
    table = Columns.of(frame, "user")
    assert table.data.equals(frame)
    assert table.unit == "user"
    series = pandas.Series([1.0, 2.0], name="x")
    assert Columns.of(series).data.equals(series)


def test_tensors_survive():
    torch = pytest.importorskip("torch", reason="the extra 'opacus' is not installed")
    pair = torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    again = Columns.of(pair).take([0, 2]).data
    assert again[1][0] == 2
    assert torch.equal(Columns.of(torch.ones(2)).data, torch.ones(2))
