"""Which units are worth a move, and what rows can be given."""

import numpy as np

from dpaudit.rehearsal.columns import Columns, added, chosen, ends, without, zeroed


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
