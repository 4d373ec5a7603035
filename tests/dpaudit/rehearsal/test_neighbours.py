"""Derived neighbours are neighbours, and show what mistakes need.

Neighbours among few rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.plan import MetricBall, ZeroOut
from dpaudit.rehearsal.columns import NEW, Columns
from dpaudit.rehearsal.neighbours import derive_neighbours, elsewhere, few
from dpaudit.rehearsal.rehearse import rehearse

ROWS = [0.5, 3.0, -2.0, 1.0]


def pairs(data, relation, unit="row", seed=0):
    found = list(derive_neighbours(data, relation, unit, np.random.default_rng(seed)))
    return [(data if move.base is None else move.base, move) for move in found]


def lost(one, two):
    """How many entries of one list are not in the other, as often."""
    rest = list(two)
    return sum(1 for each in one if not (each in rest and (rest.remove(each) or True)))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.integers(0, 3))
def test_one_row_is_there_or_not(rows, seed):
    for x, move in pairs(rows, AddRemove(), seed=seed):
        assert abs(len(x) - len(move.data)) == 1
        assert lost(*sorted([x, move.data], key=len)) == 0


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.integers(0, 3))
def test_one_row_is_replaced_or_zeroed(rows, seed):
    for relation in (ReplaceOne(), ZeroOut()):
        for x, move in pairs(rows, relation, seed=seed):
            differ = [a != b for a, b in zip(x, move.data, strict=True)]
            assert sum(differ) <= 1
            if isinstance(relation, ZeroOut) and any(differ):
                assert move.data[differ.index(True)] == 0


@given(st.integers(1, 4), st.floats(0.1, 10))
def test_one_row_moves_within_the_ball(columns, radius):
    data = np.arange(3.0 * columns).reshape(3, columns)
    for x, move in pairs(data, MetricBall(radius)):
        moved = np.linalg.norm(x - move.data, axis=1)
        assert np.count_nonzero(moved) == 1
        assert moved.max() <= radius * (1 + 1e-9)


def test_extremes_are_flagged_and_the_data_s_own_are_not():
    moves = [move for _, move in pairs(ROWS, ReplaceOne())]
    for move in moves:
        assert move.extreme or set(ROWS) >= set(move.data), move.recipe
    assert any(np.isnan(move.data).any() for move in moves)
    assert any(np.max(move.data) > 1e3 for move in moves)
    assert any(np.min(move.data) < -1e3 for move in moves)


def test_recipes_hold_no_value_and_no_place_that_depends_on_one():
    data = [{"user": f"u{n}", "age": 17.125 + n} for n in range(6)]
    for relation in (AddRemove(), ReplaceOne(), ZeroOut()):
        for seed in range(20):
            for _, move in pairs(data, relation, "user", seed):
                assert "17.125" not in move.recipe
                assert "u5" not in move.recipe
                if move.recipe.startswith(("the row with", "the unit with")):
                    assert not any(part.isdigit() for part in move.recipe.split())


def test_a_unit_s_rows_move_together():
    data = [{"user": who, "x": 1.0} for who in ("a", "b", "b", "b", "c")]
    sizes = set()
    for x, move in pairs(data, AddRemove(), "user"):
        who = {row["user"] for row in x} ^ {row["user"] for row in move.data}
        assert len(who) == 1, move.recipe
        sizes.add(abs(len(x) - len(move.data)))
    assert {1, 3} <= sizes
    assert max(sizes) >= 25, "a heavy unit is tried"


def by_user(data):
    """What each user's rows hold, of a list, a mapping of columns or one of records."""
    if isinstance(data, dict) and "user" in data:
        rows = zip(*(data[name] for name in ("user", "x", "n")), strict=True)
    else:
        rows = [
            tuple(each.values()) for each in (data.values() if isinstance(data, dict) else data)
        ]
    found = {}
    for who, *rest in rows:
        found.setdefault(who, []).append(str(rest))
    return {who: sorted(each) for who, each in found.items()}


CUSTOMERS = [{"user": f"c{n % 4}", "x": float(n), "n": n} for n in range(12)]


@pytest.mark.parametrize(
    "data",
    [
        CUSTOMERS,
        {name: np.array([row[name] for row in CUSTOMERS]) for name in CUSTOMERS[0]},
        {name: [row[name] for row in CUSTOMERS] for name in CUSTOMERS[0]},
        {f"order {n}": row for n, row in enumerate(CUSTOMERS)},
    ],
    ids=["records", "arrays", "lists", "mapping"],
)
@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne(), ZeroOut()], ids=str)
def test_no_neighbour_differs_in_more_than_one_unit(data, relation):
    found = list(derive_neighbours(data, relation, "user", np.random.default_rng(0), (0.5, 3.0)))
    assert len(found) > 5
    for move in found:
        x, other = by_user(data if move.base is None else move.base), by_user(move.data)
        differ = [who for who in {*x, *other} if x.get(who) != other.get(who)]
        assert len(differ) <= 1, move.recipe
        if isinstance(relation, AddRemove):
            assert len({*x} ^ {*other}) == len(differ) == 1, move.recipe
        else:
            assert {*x} == {*other}


def test_guessed_names_are_of_units_with_one_row():
    rows = [(f"all different {n}", n % 3) for n in range(6)]
    for x, move in pairs(rows, AddRemove(), "person"):
        assert abs(len(x) - len(move.data)) == 1, move.recipe


class Positive(NamedTuple):
    amount: float


@dataclass
class Checked:
    amount: float

    def __post_init__(self):
        if not 0 <= self.amount <= 10:
            raise ValueError


def test_what_a_class_refuses_is_no_neighbour():
    moves = [move for _, move in pairs([Checked(1.0), Checked(9.0)], ReplaceOne())]
    assert {each.amount for move in moves for each in move.data} <= {1.0, 9.0}
    assert any(move.recipe.endswith("smallest values") for move in moves)
    named = [move.data for _, move in pairs([Positive(1.0), Positive(2.0)], ReplaceOne())]
    assert all(type(each) is Positive for data in named for each in data)


def test_missing_numbers_are_no_less_numbers():
    moves = [move for _, move in pairs([3, None, 5], ReplaceOne())]
    assert any(max(each or 0 for each in move.data) > 1000 for move in moves)
    assert all(type(each) in (int, type(None)) for move in moves for each in move.data)


def test_text_gets_a_category_that_is_not_there():
    moves = [move for _, move in pairs(["a", "b"], AddRemove())]
    assert any(NEW in move.data for move in moves)


def test_data_further_away_are_reached_by_neighbours_of_known_values():
    (one,) = elsewhere(ROWS, AddRemove(), "row")
    assert one.data == ROWS[:1]
    for relation in (ReplaceOne(), ZeroOut(), MetricBall(1.0)):
        assert list(elsewhere(ROWS, relation, "row")) == []


@pytest.mark.parametrize("data", [None, 3.0, [], object()])
def test_nothing_is_derived_from_what_has_no_rows(data):
    assert pairs(data, AddRemove()) == []


FEW_ROWS = np.random.default_rng(0).uniform(0, 100, 60).tolist()


def test_each_is_a_neighbour_of_its_base():
    found = [*few(Columns.of(FEW_ROWS), AddRemove())]
    assert {len(move.base) for move in found} == {2, 4}
    for move in found:
        assert abs(len(move.data) - len(move.base)) == 1, move.recipe


def test_units_come_and_go_as_a_whole():
    data = {"user": [row // 3 for row in range(30)], "x": FEW_ROWS[:30]}
    for move in few(Columns.of(data, "user"), AddRemove()):
        x, other = move.base.data["user"], move.data.data["user"]
        changed = [u for u in set(x) | set(other) if x.count(u) != other.count(u)]
        assert len(changed) == 1, move.recipe
        assert 0 in (x.count(changed[0]), other.count(changed[0]))


def test_a_public_number_of_rows_stays():
    for move in few(Columns.of(FEW_ROWS), ReplaceOne()):
        assert len(move.data) == len(FEW_ROWS)
        assert sum(a != b for a, b in zip(move.base.data, move.data.data, strict=True)) <= 1


@dataclass(frozen=True)
class Wrong(Subject):
    """A number that is moved by 100 at most, or is it?"""

    what: str = ""

    def plan(self):
        about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Laplace(100.0), 100.0, *about, at="it"))

    def load(self, source, rng):
        return FEW_ROWS * 7

    def value(self, rows):
        rows = np.clip(np.nan_to_num(rows), 0, 100)
        match self.what:
            case "winsorised":
                top = np.quantile(rows, 0.9) if len(rows) else 0.0
                return float(len(rows) * top)
        return float(rows.sum())

    def run(self, data, ledger, rng):
        total = ledger.release(Laplace(100.0), self.value(np.asarray(data, float)), at="it")
        if self.what == "fall-back" and total < 0:
            total = float(len(data))
        return RunResult({"total": float(total)})


def test_what_few_rows_show_of_a_value():
    found = rehearse(Wrong("winsorised"), FEW_ROWS * 7).findings
    assert "sensitivity-understated" in {finding.rule for finding in found}


def test_what_few_rows_show_of_the_result():
    found = rehearse(Wrong("fall-back"), FEW_ROWS * 7).findings
    assert [finding.rule for finding in found] == ["result-not-from-releases"]


def test_a_right_subject_is_silent():
    assert rehearse(Wrong(), FEW_ROWS * 7).findings == ()
