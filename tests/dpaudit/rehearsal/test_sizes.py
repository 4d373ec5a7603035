"""Neighbours among few rows, at sizes that the code names, and in between others."""

from dataclasses import dataclass

import numpy as np
import pytest

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
from dpaudit.rehearsal.columns import Columns
from dpaudit.rehearsal.neighbours import derive_neighbours, few, inserted, of_sizes
from dpaudit.rehearsal.rehearse import rehearse

ROWS = np.random.default_rng(0).uniform(0, 100, 60).tolist()


def test_each_is_a_neighbour_of_its_base():
    table = Columns.of(ROWS)
    found = [*few(table, AddRemove()), *of_sizes(table, AddRemove(), (1.0, 9.0, 150.0))]
    sizes = {len(move.base) for move in found}
    assert {2, 4, 5, 9, 10, 75, 76, 150, 151} <= sizes
    for move in found:
        assert abs(len(move.data) - len(move.base)) == 1, move.recipe


def test_units_come_and_go_as_a_whole():
    data = {"user": [row // 3 for row in range(30)], "x": ROWS[:30]}
    table = Columns.of(data, "user")
    for move in [*few(table, AddRemove()), *of_sizes(table, AddRemove(), (20.0, 50.0))]:
        x, other = move.base.data["user"], move.data.data["user"]
        changed = [u for u in set(x) | set(other) if x.count(u) != other.count(u)]
        assert len(changed) == 1, move.recipe
        assert 0 in (x.count(changed[0]), other.count(changed[0]))


def test_a_base_of_one_unit_is_left_out_and_larger_ones_are_not():
    table = Columns.of({"user": [row // 3 for row in range(30)], "x": ROWS[:30]}, "user")
    found = [move.recipe for move in of_sizes(table, AddRemove(), (2.0, 20.0))]
    assert not any("of 2 rows" in recipe for recipe in found)
    assert any("of 20 rows" in recipe for recipe in found)


def test_a_row_comes_between_two_others():
    data = [5.0, 1.0, 2.0, 9.0]
    table = Columns.of(data)
    moves = {move.recipe: move.data.data for move in inserted(table, AddRemove())}
    near = derive_neighbours(data, AddRemove(), "row", np.random.default_rng(0))
    tried = {move.recipe for move in near}
    assert moves.keys() <= tried
    assert sorted(moves.values()) == [[5.0, 1.0, 2.0, 1.0, 9.0], [5.0, 1.0, 9.0, 2.0, 9.0]]


@pytest.mark.parametrize("make", [inserted, lambda t, r: of_sizes(t, r, (9.0,))])
def test_a_public_number_of_rows_stays(make):
    assert list(make(Columns.of(ROWS), ReplaceOne())) == []
    for move in few(Columns.of(ROWS), ReplaceOne()):
        assert len(move.data) == len(ROWS)
        assert sum(a != b for a, b in zip(move.base.data, move.data.data, strict=True)) <= 1


@dataclass(frozen=True)
class Wrong(Subject):
    """A number that is moved by 100 at most, or is it?"""

    what: str = ""

    def plan(self):
        about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Laplace(100.0), 100.0, *about, at="it"))

    def load(self, source, rng):
        return ROWS * 7

    def value(self, rows):
        rows = np.clip(np.nan_to_num(rows), 0, 100)
        match self.what:
            case "differences":
                return float(np.abs(np.diff(rows)).sum())
            case "first rows":
                return float((rows[:1000] - rows[1000:].sum()).sum())
            case "rounded number":
                return 150.0 * round(len(rows) / 50)
            case "winsorised":
                top = np.quantile(rows, 0.9) if len(rows) else 0.0
                return float(len(rows) * top)
        return float(rows.sum())

    def run(self, data, ledger, rng):
        total = ledger.release(Laplace(100.0), self.value(np.asarray(data, float)), at="it")
        if self.what == "fall-back" and total < 0:
            total = float(len(data))
        return RunResult({"total": float(total)})


@pytest.mark.parametrize("what", ["differences", "first rows", "rounded number", "winsorised"])
def test_what_other_sizes_show(what):
    found = rehearse(Wrong(what), ROWS * 7).findings
    assert "sensitivity-understated" in {finding.rule for finding in found}


def test_what_few_rows_show_of_the_result():
    found = rehearse(Wrong("fall-back"), ROWS * 7).findings
    assert [finding.rule for finding in found] == ["result-not-from-releases"]


def test_a_right_subject_is_silent():
    assert rehearse(Wrong(), ROWS * 7).findings == ()
