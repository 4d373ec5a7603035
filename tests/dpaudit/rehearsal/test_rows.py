"""Which units are worth a move, and what rows can be given."""

import numpy as np

from dpaudit.rehearsal.columns import Columns, added, chosen, ends, variants, without, zeroed


def test_units_of_extreme_values_are_chosen_and_told_without_their_number():
    table = Columns.of([1.0, 9.0, -7.0, 3.0])
    found = {int(rows[0]): label for label, rows in chosen(table, np.random.default_rng(0))}
    assert found[1] == "the row with the largest size of value"
    assert found[2] == "the row with the smallest value of value"


def test_points_of_one_dimension_are_given_no_other_length():
    points = Columns.of([([1.0, 2.0], "a"), ([3.0, 4.0], "b"), ([5.0, 6.0], "a")])
    baskets = Columns.of([(["x"], 1), (["x", "y"], 2), ([], 3)])
    assert "a list of all elements" not in {what for what, _, _ in variants(points)}
    assert "a list of all elements" in {what for what, _, _ in variants(baskets)}


def test_rows_come_and_go():
    table = Columns.of({"user": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, "user")
    assert without(table, np.array([1])).data == {"user": ["a", "c"], "x": [1.0, 3.0]}
    (move,) = added(table, [0], {"x": 5.0}, "more")
    *_, name = move.data.data["user"]
    assert name not in "abc"
    assert move.data.data["x"] == [1.0, 2.0, 3.0, 5.0]
    assert zeroed(table) == {"x": 0.0}
    assert ends(table.numbers()) == ({"x": 1.0}, {"x": 3.0})
