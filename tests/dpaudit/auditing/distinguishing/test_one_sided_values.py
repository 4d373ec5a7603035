"""Values that one side alone holds."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.one_sided_values import HeldValues
from dpaudit.auditing.distinguishing.output_facts import forms
from dpaudit.auditing.distinguishing.output_features import Vocabulary
from dpaudit.project import AuditPair

RECORDS = AuditPair([31.25, 47.5, "anna", 63.4142], [31.25, 47.5, "bernd", 13.4])


def flags(pair, *outputs):
    known = forms(["any", "thing"])
    vocabulary = Vocabulary.of(known, known, HeldValues.of(pair))
    return vocabulary.shows(vocabulary(outputs)).tolist()


@pytest.mark.parametrize(
    "output",
    [
        *(63.4142, np.float32(63.4142), 63.41, 63, "it was 63.4142!", "63.414 EUR", {"of anna": 1}),
        *([1.0, [63.4142]], {"note": ValueError("no anna")}, {"63.4142": 2}),
        np.array([[9, 63.4142]]),
    ],
    ids=repr,
)
def test_a_value_is_found_however_it_is_shown(output):
    mirrored = AuditPair(RECORDS.x_prime, RECORDS.x)
    assert flags(RECORDS, output, "bernd") == [1, -1]
    assert flags(mirrored, output, "bernd") == [-1, 1]


@pytest.mark.parametrize("output", [31.25, 47, "annabel", 63.4143, 60, 1.0, "anna and bernd", {}])
def test_what_both_hold_or_neither_is_no_value_of_one_side(output):
    assert flags(RECORDS, output) == [0]


def test_the_answer_without_noise_is_such_a_value():
    pair = AuditPair({"age": [1.5, 2.0, 4.0]}, {"age": [1.5, 2.0]})
    assert flags(pair, 7.5, 1.75, 1.5) == [1, -1, 0]


def test_values_of_a_frame_are_read():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame({"age": [31.25, age], "name": "anna"}) for age in (47.5, 48.5)]
    assert flags(AuditPair(*frames), "47.5", 48.5, 31.25, "anna") == [1, -1, 0, 0]


def test_the_value_that_differs_is_found_among_many():
    many = [each + 0.5 for each in range(20_000)]
    assert flags(AuditPair([*many, 71234.75], many), 71234.75, 0.5) == [1, 0]
    records = [[{"age": 31}, {"age": age}] for age in (47, 48)]
    assert flags(AuditPair(*records), {"n": 47}, [48], 31) == [1, -1, 0]


def test_equal_values_on_both_sides_give_no_event():
    held = HeldValues.of(AuditPair([0, 1, 1], [0, 0, 1]))
    assert [event.lower for event in HeldValues.of(AuditPair([5], [])).events] == [0.5]
    assert len(HeldValues.of(AuditPair([5], [6])).events) == 2
    # sums and means differ: 2 and 2/3 of x, 1/3 of x'
    assert held(np.array([2.0, 1 / 3, 1.0])).tolist() == [1, -1, 0]
    assert HeldValues.of(AuditPair([True], [False])).events == []


def pilot(*leaked):
    x = np.random.default_rng(0).normal(size=500)
    x[: len(leaked)] = leaked
    return x, np.random.default_rng(1).normal(size=500)


def test_what_a_pilot_repeats_on_one_side_alone_tells_of_it():
    empty = HeldValues.of(AuditPair([], []))
    held = empty.with_repeats(*pilot(7.5, 7.5, 7.5))
    assert held(np.array([7.5, 0.5])).tolist() == [1, 0]
    held = empty.with_repeats(*pilot(7.5, 7.5, 7.5)[::-1])
    assert held(np.array([[7.5, 0.5], [0.0, 0.5]])).tolist() == [-1, 0]
    assert empty.with_repeats(*pilot(7.5, 7.5)) == empty
    counts = np.random.default_rng(0).integers(0, 5, 500).astype(float)
    assert empty.with_repeats(counts, counts + 9) == empty


def test_the_event_is_that_value_even_where_noise_is_far_out_too():
    def release(data, size, rng):
        noisy = data + rng.laplace(size=size)
        return np.where(rng.random(size) < 2e-3, 1000.0 * data + 500, noisy)

    for seed in range(3):
        record = audit_release(release, AuditPair(1.0, 2.0), epsilon=1.0, runs=40_000, seed=seed)
        assert record.refuted
        assert record.event.startswith("output holds a value that only x") or "00" in record.event


@pytest.mark.parametrize("leak", [lambda data: 7.0 * data, lambda data: data])
def test_a_leak_in_one_run_of_a_thousand_is_found(leak):
    """As found in 9 of 10 audits of 10⁵ runs; the miss is a pilot that shows too few."""

    def release(data, size, rng):
        noisy = data + rng.laplace(size=size)
        return np.where(rng.random(size) < 1e-3, leak(data), noisy)

    found = [
        audit_release(release, AuditPair(1.0, 0.0), epsilon=1.0, runs=100_000, seed=seed)
        for seed in range(3)
    ]
    assert sum(each.refuted for each in found) >= 2


def test_no_pilot_needs_to_show_a_raw_record():
    """In one field of a record, in one of 250 runs: 36 to be expected in 9 000, none needed."""

    def release(data, rng):
        fields = {"total": sum(data) + rng.laplace(scale=100), "other": rng.normal()}
        return fields | ({"other": data[-1]} if rng.random() < 1 / 250 else {})

    pair = AuditPair([31.25, 47.5, 63.5], [31.25, 47.5, 13.75])
    found = audit_release(BlackBox(release), pair, epsilon=1.0, runs=10_000, seed=4)
    assert found.refuted
    held = found.details["held by x"], found.details["held by x'"]
    assert all(each["counts"]["hits"] > 20 > each["counts"]["other_hits"] == 0 for each in held)
