"""What a table says, against tables of intervals and counts by hand."""

import json
import math

import pytest

from audits.catalogue.entry import Entry
from audits.catalogue.measuring import Row
from audits.catalogue.summary import Rate, Summary
from dpaudit import Claim


def entry(name, right, true, **more):
    return Entry(name, right, Claim(1.0), 0, 1, true, 100, lambda d, n, rng: rng.random(n), **more)


ROWS = [
    Row(entry("found", False, 2.0), 60, 60, 50, 0.1, 1.5, 1),
    Row(entry("missed", False, math.inf), 56, 60, 50, 0.1, 1.5, 0),
    Row(entry("far", False, 4.0, limit=True), 58, 60, 50, 0.1, 1.5, 2),
    Row(entry("sound", True, 1.0), 3, 91, 100, 0.1, 0.9, 3),
]


def test_the_interval_is_clopper_and_pearsons():
    # Newcombe (1998), Table I: 81 of 263, 15 of 148, 0 of 20 and 29 of 29.
    printed = {(81, 263): (0.2527, 0.3676), (15, 148): (0.0578, 0.1617), (0, 20): (0.0, 0.1684),
               (29, 29): (0.8806, 1.0)}  # fmt: skip
    for counts, interval in printed.items():
        assert Rate(*counts).interval == pytest.approx(interval, abs=6e-5)
    assert Rate(0, 0).interval == (0.0, 1.0)


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
