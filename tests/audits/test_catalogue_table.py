"""The table of the catalogue: how entries are measured, counted, and shown."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from audits.catalogue import ENTRIES
from audits.catalogue.__main__ import main, markdown
from audits.catalogue.entry import Entry, FloatEntry
from audits.catalogue.measuring import (
    FloatRow,
    Rate,
    Row,
    Summary,
    audit_entry,
    run_catalogue,
    run_floats,
)
from dpaudit import AuditPair, Claim, DiscreteLaplace, InputError, Laplace, RandomizedResponse
from dpaudit.auditing.subjects.exact import audit_exact

# -- what is measured on entries, and when a row is as expected ------------------------------------


SOUND = Entry("sound", True, Claim(1.0), 0.0, 1.0, 1.0, 400, Laplace(1.0).release_many)
WRONG = Entry("wrong", False, Claim(1.0), 0.0, 1.0, 4.0, 4000, Laplace(0.25).release_many)
EXACT = Entry(
    "exact",
    True,
    Claim(1.0),
    0,
    1,
    1.0,
    exact=lambda: audit_exact(
        RandomizedResponse.calibrated(epsilon=1.0), AuditPair(0, 1), epsilon=1.0
    ),
)


def row(entry, refuted, audits):
    return Row(entry, refuted, audits, 100, 0.1, 0.5)


def test_wrong_entries_are_to_be_refuted_in_95_percent_of_audits():
    assert row(WRONG, 3, 3).as_expected
    assert not row(WRONG, 2, 3).as_expected
    assert row(WRONG, 57, 60).as_expected
    assert not row(WRONG, 56, 60).as_expected


def test_right_entries_may_be_refuted_at_the_error_rate():
    most = int(binom.isf(1e-6, 20, 0.05))
    assert row(SOUND, most, 20).as_expected
    assert not row(SOUND, most + 1, 20).as_expected
    assert row(SOUND, 1, 1).as_expected


def test_a_wrong_entry_stops_at_its_refutation_and_a_right_one_does_not():
    assert audit_entry(WRONG, 0).runs < 2000
    assert audit_entry(SOUND, 0).runs == 400
    assert audit_entry(SOUND, 0, runs=300).runs == 300
    assert audit_entry(replace(WRONG, rare=True), 0, runs=1000).runs == 1000


def test_a_table_counts_every_audit():
    told = []
    rows = run_catalogue([SOUND, WRONG, EXACT], seed=1, seeds=2, progress=told.append)
    assert [each.audits for each in rows] == [2, 2, 1]
    assert told == list(rows)
    assert all(each.as_expected for each in rows)
    assert rows[1].verdict == "refuted 2 of 2"
    assert rows[2].verdict == "not refuted"
    assert rows[2].runs == 0
    with pytest.raises(InputError, match="seeds is 0"):
        run_catalogue([SOUND], seeds=0)


def test_right_entries_may_have_audits_of_their_own():
    sound, wrong = run_catalogue([SOUND, WRONG], seeds=1, right_seeds=3, right_runs=50)
    assert (sound.audits, sound.runs) == (3, 50)
    assert wrong.audits == 1
    assert wrong.runs > 50


def test_a_table_goes_on_with_the_rows_that_are_recorded(tmp_path):
    results, told = tmp_path / "found.json", []
    first = run_catalogue([SOUND], results=results)
    again = run_catalogue([SOUND, WRONG], results=results, progress=told.append)
    assert again[0] == first[0]  # not measured again: its seconds are the same
    assert told == list(again)
    other = run_catalogue([SOUND], seed=1, results=results)
    assert other[0].seconds != first[0].seconds
    longer = run_catalogue([replace(SOUND, runs=500)], seed=1, results=results)
    assert longer[0].runs == 500
    with pytest.raises(InputError, match="runs is 0"):
        run_catalogue([SOUND], runs=0)


def test_answers_of_any_kind_are_drawn_one_by_one():
    told = replace(WRONG, release=None, answer=lambda data, rng: f"{data} {rng.integers(9)}")
    record = audit_entry(told, 0)
    assert record.refuted
    assert "numbers in output" in record.event


def test_bounds_above_the_truth_are_counted():
    bounds = (0.5, 1.0, 1.0 + 1e-12, 1.1)
    audits = [SimpleNamespace(refuted=False, runs=400, epsilon_lower=bound) for bound in bounds]
    made = Row.of(SOUND, audits, [0.1])
    assert (made.above, made.audits, made.runs) == (1, 4, 400)


# -- samplers that leak through their bits, and ones that do not -----------------------------------


LEAKS = FloatEntry("numpy", True, Claim(1.0), 1000, Laplace(1.0).release_many)
SILENT = FloatEntry("discrete", False, Claim(1.0), 1000, DiscreteLaplace(1.0).release_many)


def test_a_finding_is_expected_where_there_is_a_leak_and_nowhere_else():
    rows = run_floats([LEAKS, SILENT], seed=1)
    assert all(row.as_expected for row in rows)
    assert rows[0].rules == ("float-lsb",)
    assert rows[1].rules == ()
    unexpected = run_floats([FloatEntry("?", False, Claim(1.0), 1000, LEAKS.release)], seed=1)
    assert not unexpected[0].as_expected


def test_draws_are_at_most_the_budget_and_at_most_what_is_wanted():
    silent = FloatEntry("silent", False, Claim(1.0), 300, lambda x, n, rng: np.zeros(n))
    assert [row.draws for row in run_floats([silent])] == [300]
    assert [row.draws for row in run_floats([silent], draws=200)] == [200]


# -- what a table says, against counts by hand -----------------------------


def entry(name, right, true, **more):
    return Entry(name, right, Claim(1.0), 0, 1, true, 100, lambda d, n, rng: rng.random(n), **more)


ROWS = [
    Row(entry("found", False, 2.0), 60, 60, 50, 0.1, 1.5, 1),
    Row(entry("missed", False, math.inf), 56, 60, 50, 0.1, 1.5, 0),
    Row(entry("far", False, 4.0, limit=True), 58, 60, 50, 0.1, 1.5, 2),
    Row(entry("sound", True, 1.0), 3, 91, 100, 0.1, 0.9, 3),
]


def test_rows_are_counted_by_what_is_true_of_them():
    summary = Summary.of(ROWS)
    assert summary.found == Rate(174, 180)
    assert summary.missed == ("missed",)
    assert summary.false_alarms == Rate(3, 91)
    assert summary.above == Rate(6, 211)  # not where the true ε is infinite
    assert summary.above_own == Rate(4, 151)  # nor where it is a limit
    record = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert record["above_truth"]["hits"] == 6


def test_three_sentences_say_so():
    found, alarms, above = Summary.of(ROWS).lines
    assert found.endswith("rows found in less than 95%: missed")
    assert alarms.startswith("false alarms: 3 of 91 (3.30 %; 0.69 to 9.33 % at 95% confidence)")
    assert "above the true ε: 6 of 211" in above
    assert Summary.of([]).lines[1].startswith("false alarms: 0 of 0 of audits")


# -- the page of a table ---------------------------------------------------------------------------


BOUNDS = next(each for each in ENTRIES if "max(|lower|" in each.name)
INDEX = next(each for each in ENTRIES if each.name == "noisy max index")
FLIP = next(each for each in ENTRIES if each.exact is not None and each.right)
COIN = FloatRow(FloatEntry("coin", False, Claim(1.0), 10, lambda d, n, rng: d), (), 10, 0.1)


def test_every_row_is_a_line_of_its_table():
    rows = [Row(BOUNDS, 59, 60, 80, 0.1, 1.5), Row(INDEX, 4, 91, 1000, 0.1, 0.5)]
    page = markdown([*rows, Row(FLIP, 0, 1, 0, 0.1, 2.0)], [COIN], "make it")
    assert "`make it` makes this page." in page
    name = r"sensitivity max(\|lower\|, \|lower\|)"  # a bar would end the cell
    assert f"| {name} | (1, 0) | ∞ | 1000 | 80 | 59 of 60 | 1.5 |" in page
    assert "| noisy max index | (1, 0) | ≤ 1 | 10000 | 1000 | 4 of 91 | 0.5 |" in page
    assert "| permute-and-flip | (2, 0) | 2 | exact | exact | 0 of 1 | 2 |" in page
    assert "| coin | none | 10 |" in page
    assert "unexpected" not in page
    assert max(map(len, page.split("\n## ")[0].splitlines()[4:])) <= 400


def test_what_is_not_as_it_should_be_is_marked():
    page = markdown([Row(replace(BOUNDS, name="late"), 5, 60, 80, 0.1, 1.5)], [], "x")
    assert "| late **(unexpected)** |" in page
    assert "rows found in less than 95%: late." in page
    assert "## Right" not in page


# -- the command that prints the catalogue ---------------------------------------------------------


def test_the_command_prints_a_line_a_row_and_writes_table_and_page(tmp_path, capsys):
    path, page = tmp_path / "table.json", tmp_path / "page.md"
    asked = "--only exception --right-seeds 2 --right-runs 300"
    assert main([*asked.split(), "--json", str(path), "--markdown", str(page)]) == 0
    *lines, found, alarms, above = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "exception at a record that is no number, seldom sampled",
        "exception with the odds of ε = 2",
        "exception by randomised response",
    ]
    assert found.startswith("found: 2 of 2 (100.00 %;")
    assert found.endswith("less than 95%: none")
    assert alarms.startswith("false alarms: 0 of 2 (0.00 %;")
    assert above.startswith("lower bound above the true ε: 0 of 3 (0.00 %;")
    table = json.loads(path.read_text())
    assert [row["refuted"] for row in table["rows"]] == [1, 1, 0]
    assert table["rows"][0]["true_epsilon"] == "infinity"
    assert table["found"]["hits"] == table["found"]["trials"] == 2
    assert (table["rows_missed"], table["as_expected"]) == ([], True)
    command = "--right-seeds 2 --right-runs 300 --only exception"
    assert f"`python -m audits.catalogue {command} --markdown {page}`" in page.read_text()
    assert "| exception with the odds of ε = 2 | (1, 0) | 2 | 3000 | " in page.read_text()


def test_wrong_input_is_one_sentence(capsys):
    assert main(["--seeds", "0", "--only", "half"]) == 3
    assert "seeds is 0" in capsys.readouterr().err
