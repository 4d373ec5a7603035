"""Slices of the benchmarks of audits, so that they keep running."""

import json

import numpy as np
import pytest

from dpaudit.auditing import BlackBox, audit_release
from tests.benchmarks import everyday_functions, false_alarms, rare_values


def test_false_alarms_go_on_where_they_ended(tmp_path, capsys, monkeypatch):
    where = ["false_alarms", "--runs", "300", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [*where, "--audits", "2"])
    false_alarms.main()
    path = tmp_path / "300.jsonl"
    first = path.read_text()
    path.write_text(first + '{"audit": 2, "na')  # a line that was cut off
    monkeypatch.setattr("sys.argv", [*where, "--audits", "3"])
    false_alarms.main()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.read_text().startswith(first)
    assert [line["audit"] for line in lines] == [0, 1, 2]
    assert len({line["seed"] for line in lines}) == 3
    assert "of 3 at 300 runs" in capsys.readouterr().out


@pytest.mark.parametrize("row", [rare_values.ROWS[0], rare_values.ROWS[-1]])
def test_rare_values_are_shown_as_often_as_is_said(row):
    rng, data = np.random.default_rng(0), rare_values.X
    shown = sum("63.41" in str(row(data, rng)) for _ in range(20_000))
    assert shown == pytest.approx(20_000 * row.rate, abs=6 * (20_000 * row.rate) ** 0.5)


def test_twenty_everyday_functions_are_wrong_and_twenty_right():
    cases = everyday_functions.CASES
    assert [sum(each.wrong is wrong for each in cases) for wrong in (True, False)] == [20, 20]
    (first,) = (each for each in cases if each.function.__name__ == "half_the_noise")
    found = audit_release(BlackBox(first.function), first.pair, epsilon=1.0, runs=2000, seed=0)
    assert found.refuted
