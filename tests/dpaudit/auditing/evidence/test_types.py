"""Events, counts and bounds as values."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpaudit.auditing.evidence.types import (
    Direction,
    Event,
    PairCounts,
    as_scores,
    confidence_failure,
    json_number,
)
from dpaudit.base.errors import InputError

TINY = math.ulp(0.0)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event(lower=1.37), "score ≥ 1.37 (x to x')"),
        (Event(upper=2, direction=Direction.BACKWARD), "score ≤ 2 (x' to x)"),
        (Event(lower=1, upper=2), "1 ≤ score ≤ 2 (x to x')"),
        (Event(lower=1, upper=2, complement=True), "score < 1 or score > 2 (x to x')"),
        (Event(lower=1, complement=True), "score < 1 (x to x')"),
        (Event(lower=3, upper=3), "score = 3 (x to x')"),
        (Event(), "any score (x to x')"),
        (Event(lower=TINY), "score > 0 (x to x')"),
        (Event(lower=TINY, complement=True), "score ≤ 0 (x to x')"),
        (Event(upper=-TINY), "score < 0 (x to x')"),
        (Event(upper=-TINY, complement=True), "score ≥ 0 (x to x')"),
        (Event(lower=math.nextafter(1, 2)), "score > 1 (x to x')"),
        (Event(lower=math.nextafter(1, 2), complement=True), "score ≤ 1 (x to x')"),
        (Event(lower=0, upper=math.nextafter(1, 0)), "0 ≤ score < 1 (x to x')"),
        (
            Event(lower=TINY, upper=math.nextafter(1, 0), complement=True),
            "score ≤ 0 or score ≥ 1 (x to x')",
        ),
    ],
)
def test_events_describe_and_serialise_themselves(event, words):
    assert event.describe() == words
    record = json.loads(json.dumps(event.to_dict(), allow_nan=False))
    assert [float(record[end]) for end in ("lower", "upper")] == [event.lower, event.upper]
    assert (record["complement"], record["direction"]) == (event.complement, event.direction)


def test_events_count_in_their_direction():
    event = Event(lower=0.5, direction=Direction.BACKWARD)
    counts = event.count([0.0, 1.0, 0.0], [1.0, 1.0])
    assert (counts.hits, counts.runs, counts.other_hits, counts.other_runs) == (2, 2, 1, 3)


def test_an_event_is_an_interval_or_its_complement():
    scores = [-np.inf, 0.0, 1.0, 2.0, np.inf]
    for complement in (False, True):
        event = Event(lower=0.0, upper=1.0, complement=complement)
        assert (event.indicator(scores) == (np.array([0, 1, 1, 0, 0]) != complement)).all()


def test_counts_are_a_record():
    counts = PairCounts(np.int64(3), 5, 0, 7)
    assert PairCounts.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Event(lower=2, upper=1), "lower must not exceed upper"),
        (lambda: Event(lower=math.nan), "lower must not exceed upper"),
        (lambda: Event(direction="sideways"), "direction is 'sideways'"),
        (lambda: PairCounts(3, 2, 0, 2), "hits is 3; it must be at most the 2 runs"),
        (lambda: PairCounts(1, 2, 3, 2), "other_hits is 3"),
        (lambda: PairCounts(0, 0, 0, 1), "runs is 0"),
        (lambda: PairCounts(0.5, 1, 0, 1), "hits is 0.5"),
        (lambda: as_scores(scores=[[1.0]]), "scores has type float64 and shape"),
        (lambda: as_scores(scores=[1.0, math.nan]), "scores contains NaN"),
        (lambda: confidence_failure(0.0), "confidence is 0.0"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_numbers_as_strict_json():
    assert [json_number(each) for each in (1.5, math.inf, -math.inf)] == [1.5, "inf", "-inf"]
    assert as_scores(scores=[True, False]).tolist() == [1.0, 0.0]
