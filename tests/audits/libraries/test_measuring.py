"""Rows from end to end, by the commands that the page prints."""

import json

import pytest

from audits.libraries.measuring import answer, kept, load, measure, measured
from audits.libraries.rows import all_rows
from audits.libraries.verdicts import Judged, Standing
from dpaudit.base.errors import InputError

BY_NAME = {row.name: row for row in all_rows()}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def test_a_right_row_is_certified():
    found = measured(BY_NAME["home-made: running counts"])
    judged = Judged(BY_NAME["home-made: running counts"], found)
    assert judged.standing is Standing.CERTIFIED
    assert (judged.false, judged.error, judged.over) == (False, "", "as claimed")
    assert found["version"]


def test_a_wrong_row_is_refuted_and_shown():
    row = BY_NAME["home-made: twenty thresholds for one"]
    judged = Judged(row, measured(row))
    assert judged.standing is Standing.REFUTED
    assert "neighbours move a value further than its sensitivity" in judged.evidence
    assert float(judged.attacked["epsilon_lower"]) > 1


def test_what_cannot_run_is_said_and_the_rest_stands(tmp_path, monkeypatch):
    row = BY_NAME["home-made: sum"]
    monkeypatch.setattr("audits.libraries.measuring.python", lambda _: _raised())
    told = []
    results = tmp_path / "found.json"
    kept(results, "another", {"seconds": 1.0})
    assert measure([row], results, workers=1, told=told.append) == 1
    assert load(results)[row.name]["error"] == "it is not there."
    assert "another" in load(results)
    assert "not run: it is not there." in told[-1]


def _raised():
    raise InputError("it is not there.")


def test_a_command_that_prints_no_json_is_an_error_with_its_last_line():
    with pytest.raises(InputError, match="printed no answer: boom"):
        answer(["sh", "-c", "echo boom >&2"])
    with pytest.raises(InputError, match=r"more than 0\.01 s"):
        answer(["sleep", "5"], longest=0.01)


def test_results_that_are_no_table_are_refused(tmp_path):
    file = tmp_path / "found.json"
    file.write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(InputError, match="no table"):
        load(file)
