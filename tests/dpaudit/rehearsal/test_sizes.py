"""Neighbours among few rows."""

from dataclasses import dataclass

import numpy as np

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
from dpaudit.rehearsal.neighbours import few
from dpaudit.rehearsal.rehearse import rehearse

ROWS = np.random.default_rng(0).uniform(0, 100, 60).tolist()


def test_each_is_a_neighbour_of_its_base():
    found = [*few(Columns.of(ROWS), AddRemove())]
    assert {len(move.base) for move in found} == {2, 4}
    for move in found:
        assert abs(len(move.data) - len(move.base)) == 1, move.recipe


def test_units_come_and_go_as_a_whole():
    data = {"user": [row // 3 for row in range(30)], "x": ROWS[:30]}
    for move in few(Columns.of(data, "user"), AddRemove()):
        x, other = move.base.data["user"], move.data.data["user"]
        changed = [u for u in set(x) | set(other) if x.count(u) != other.count(u)]
        assert len(changed) == 1, move.recipe
        assert 0 in (x.count(changed[0]), other.count(changed[0]))


def test_a_public_number_of_rows_stays():
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
    found = rehearse(Wrong("winsorised"), ROWS * 7).findings
    assert "sensitivity-understated" in {finding.rule for finding in found}


def test_what_few_rows_show_of_the_result():
    found = rehearse(Wrong("fall-back"), ROWS * 7).findings
    assert [finding.rule for finding in found] == ["result-not-from-releases"]


def test_a_right_subject_is_silent():
    assert rehearse(Wrong(), ROWS * 7).findings == ()
