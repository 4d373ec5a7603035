"""What is measured on entries, and when a row is as expected."""

import json
import math
from dataclasses import replace

import pytest
from scipy.stats import binom

from audits.catalogue.entry import Entry
from audits.catalogue.measuring import Audit, Row, audit_entry, run_catalogue
from dpaudit import AuditPair, Claim, InputError, Laplace, RandomizedResponse
from dpaudit.auditing.subjects.exact import audit_exact

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


@pytest.mark.processes
def test_processes_give_the_same_table():
    entries = [WRONG, EXACT]
    one, two = (run_catalogue(entries, seeds=2, processes=number) for number in (1, 2))
    assert [replace(each, seconds=0.0) for each in one] == [
        replace(each, seconds=0.0) for each in two
    ]


def test_answers_of_any_kind_are_drawn_one_by_one():
    told = replace(WRONG, release=None, answer=lambda data, rng: f"{data} {rng.integers(9)}")
    record = audit_entry(told, 0)
    assert record.refuted
    assert "numbers in output" in record.event


def test_bounds_above_the_truth_are_counted():
    bounds = (0.5, 1.0, 1.0 + 1e-12, 1.1)
    made = Row.of(SOUND, [Audit(False, 400, bound, 0.1) for bound in bounds])
    assert (made.above, made.audits, made.runs) == (1, 4, 400)


def test_a_row_is_strict_json():
    endless = replace(WRONG, true_epsilon=math.inf)
    record = json.loads(json.dumps(row(endless, 1, 1).to_dict(), allow_nan=False))
    assert record["true_epsilon"] == "infinity"
    assert record["as_expected"] is True
