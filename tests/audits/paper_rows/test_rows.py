"""Every row has what measures it, and says what its numbers say."""

from __future__ import annotations

import inspect
import json
from itertools import groupby
from pathlib import Path

import pytest

from audits.paper_rows.checking import RESULTS
from audits.paper_rows.experiments import experiments
from audits.paper_rows.measured import Verdict
from audits.paper_rows.measures import code, measuring
from audits.paper_rows.recording import FOLDER, command_of
from audits.paper_rows.rows import PAPERS, TESTS, measure, measure_all, rows_of
from dpaudit.base.errors import InputError

ROOT = Path(__file__).parents[3]
ROWS = {row.id: row for row in rows_of()}
RECORDED = (
    "Z6", "Z13", "Z14", "Z17", "K8", "K11", "K12", "K16", "K26", "D3", "D11", "D12",
    "D18", "D21", "F8", "F9", "F11", "F13", "F17", "F19", "F20", "F21", "F23", "F26",
)  # fmt: skip
"""Rows that rest on records alone, which are read at once."""


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_has_what_measures_it_or_a_reason(row) -> None:
    assert bool(row.measure) != bool(row.impossible)
    assert row.place
    assert row.claim.endswith(".")
    if row.measure:
        inspect.signature(measuring(row.measure)).bind(None, **row.arguments)


def test_ids_count_the_rows_of_a_paper() -> None:
    letters = [list(group) for _, group in groupby(ROWS, key=lambda name: name[0])]
    assert [len(PAPERS[place].rows) for place in range(4)] == [len(each) for each in letters]
    for names in letters:
        assert names == [f"{names[0][0]}{number}" for number in range(1, len(names) + 1)]


def test_tests_and_pictures_that_rows_name_are_there() -> None:
    for row in ROWS.values():
        for node in row.arguments["nodes"] if row.measure == TESTS else ():
            file, _, name = node.partition("::")
            text = (ROOT / "tests" / "private_bo" / file).read_text(encoding="utf-8")
            assert f"def {name}(" in text or not name
    assert {name for paper in PAPERS for name in paper.pictures} <= set(experiments())


def test_the_results_have_every_row_and_at_most_nine_are_not_possible() -> None:
    found = json.loads((FOLDER / RESULTS).read_text(encoding="utf-8"))["rows"]
    assert set(found) == set(ROWS)
    verdicts = [Verdict(row["verdict"]) for row in found.values()]
    assert sum(verdict.decided for verdict in verdicts) >= 65
    assert verdicts.count(Verdict.NOT_POSSIBLE) <= 9


@pytest.mark.parametrize("name", RECORDED)
def test_a_verdict_follows_from_the_record(name: str) -> None:
    found = json.loads((FOLDER / RESULTS).read_text(encoding="utf-8"))["rows"][name]
    now = measure(ROWS[name]).to_dict()
    assert json.loads(json.dumps(now)) == found


def test_every_experiment_has_its_record_with_the_command_that_makes_it() -> None:
    for name, experiment in experiments().items():
        record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        assert record["command"] == command_of(name)
        assert set(experiment.cells) == set(record["cells"])
        assert set(experiment.spot) <= set(experiment.cells)


def test_without_a_record_a_row_is_not_run(tmp_path: Path) -> None:
    outcome = measure(ROWS["Z14"], tmp_path)
    assert outcome.measured.verdict is Verdict.NOT_RUN
    assert not outcome.measured.numbers


def test_without_its_data_a_row_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    row = next(row for row in ROWS.values() if row.arguments == {"data": "loans"})
    outcome = measure(row)
    assert outcome.measured.verdict is Verdict.NOT_RUN
    assert "DPAUDIT_DATA" in outcome.measured.because


def test_rows_come_in_their_order_with_tests_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rows_of(["K6", "Z2", "F25"])
    words = {f"tests/private_bo/{node}": {"test": "PASSED"} for node in asked[1].arguments["nodes"]}
    monkeypatch.setattr(code, "_known", words)
    outcomes = measure_all(asked)
    assert [outcome.row.id for outcome in outcomes] == ["Z2", "K6", "F25"]
    assert outcomes[1].measured.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("word", ["FAILED", "SKIPPED", "ERROR", None])
def test_one_test_that_does_not_pass_decides(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    words = {"a": "PASSED"} | ({"b": word} if word else {})
    known = {"tests/private_bo/x": words, "tests/private_bo/y": {"c": "PASSED"} if word else {}}
    monkeypatch.setattr(code, "_known", known)
    found = code.tests(None, ["x", "y"], future=False)
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert found.numbers[1].ours == 1


def test_another_row_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^row is 'Q1'; it must be one of Z1, .*\.$"):
        rows_of(["Q1"])
