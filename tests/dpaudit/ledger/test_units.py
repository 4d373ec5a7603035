"""Two units are never one, and one is never two."""

import json
from collections import UserList, deque
from contextlib import suppress
from enum import StrEnum

import numpy as np
import pytest
from effort import examples
from examples import gaussian_invocation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Gaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.ledger import read_journal
from dpaudit.ledger.units import Units, distinct_names, name_of, names_of
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
whole = st.integers() | st.sampled_from([2**53, 2**53 + 1, 2**63, 2**64, -1, 0, 1])
names = st.lists(texts, max_size=12) | st.lists(whole, max_size=12)
STREAM = ContinualGaussian(sigma=1.0, factorization=BinaryTree(16), participations=1)


class Alike(str):
    """Equal to nothing, and with the hash of everything."""

    __slots__ = ()

    def __eq__(self, other):
        return False

    def __hash__(self):
        return 0


class Colour(StrEnum):
    RED = "red"


class Thing:
    pass


class Pair:
    """Two labels, which numpy takes for an array of one type."""

    def __init__(self, *labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return self.labels[place]


NO_NAMES = [7, True, None, 1.0, b"ann", "", "\ud800", Alike("ann"), Colour.RED, Thing(), ["ann"]]
CONFUSED = [
    [1, "1"],
    [1, 1.0],
    [2**53, 2**53 + 1.0],
    [2**63, 1.0],
    ["a", None],
    ["a", float("nan")],
    (True, 1),
    [True, False],
    [None, None],
    [0.1, 0.1],
    [b"a", b"a\0"],
    [("a", 1), ("a", 2)],
    [["a"], ["b", "c"]],
    [{1}, {2}],
    [Thing(), Thing()],
    [Alike("a"), Alike("a")],
    [Colour.RED, Colour.RED],
    np.array([True, False]),
    np.array([1.0, np.nan]),
    np.array(["a", None], dtype=object),
    np.array([1, "1"], dtype=object),
    np.array([1, np.timedelta64(1)], dtype=object),
    np.array(["NaT", "2020-01-01"], dtype="datetime64[D]"),
    np.array([[1, 2]]),
    deque([1, "1"]),
    UserList([True, 1]),
    Pair(1, "1"),
    "ab",
    b"ab",
]


@settings(max_examples=examples(200, 2000), deadline=None)
@given(labels=names)
@example(labels=["a", "a\0", "\0"])
@example(labels=["A", "a", "\u00e1", "a\u0301"])
@example(labels=[2**63, 2**63 + 1, -1])
def test_equal_labels_are_one_unit_and_all_others_are_two(labels):
    codes = Units.of(labels, len(labels)).codes
    for place, label in enumerate(labels):
        for other, code in zip(labels, codes, strict=True):
            assert (code == codes[place]) == (label == other)
    known, places = distinct_names(labels)
    assert [known[place] for place in places] == labels
    assert list(map(type, known)) == [type(labels[0])] * len(known) if labels else known == []


@settings(max_examples=examples(30, 300), deadline=None)
@given(labels=st.lists(texts, min_size=1, max_size=8, unique=True))
@example(labels=["a", "a\0", "\n", '"', "1", "True", "null", "\u2028", "\u00e9", "e\u0301"])
def test_names_are_the_same_in_the_journal_and_back(labels, tmp_path_factory):
    journal = tmp_path_factory.mktemp("units") / "ledger.jsonl"
    uses = (
        gaussian_invocation(total=len(labels), at="each"),
        gaussian_invocation(mechanism=STREAM, at="sums"),
    )
    with Ledger(Plan.of(*uses), rng=np.random.default_rng(0), journal=journal) as ledger:
        ledger.release_each(uses[0].mechanism, [0.0] * len(labels), units=labels, at="each")
        sums = ledger.stream(STREAM, (), at="sums")
        for label in labels:
            sums.add(0.0, unit=label)
    content = read_journal(journal)
    content.account()
    assert [entry.unit for entry in content.entries if entry.at == "each"] == labels
    assert [entry.unit for entry in content.entries if entry.step is not None] == labels


@pytest.mark.parametrize("unit", NO_NAMES, ids=lambda unit: type(unit).__name__)
def test_what_is_no_name_is_refused_by_all_that_writes_names(unit, tmp_path):
    journal, own = tmp_path / "ledger.jsonl", Gaussian(4.0)
    uses = (
        gaussian_invocation(mechanism=own, count=8, at="each"),
        gaussian_invocation(mechanism=STREAM, at="sums"),
    )
    ledger = Ledger(Plan.of(*uses), rng=np.random.default_rng(0), journal=journal)
    sums = ledger.stream(STREAM, (), at="sums")
    calls = [
        lambda: name_of(unit),
        lambda: ledger.release_each(own, [0.0], units=[unit], at="each"),
        lambda: ledger.sample([unit], at="each"),
    ]
    if unit is not None:  # who touches everybody
        calls += [
            lambda: ledger.release(own, 0.0, unit=unit, at="each"),
            lambda: ledger.stream(STREAM, (), unit=unit, at="sums"),
            lambda: sums.add(0.0, unit=unit),
        ]
    for call in calls:
        with pytest.raises(InputError, match=r"^unit (is a|has half)"):
            call()
    assert (len(ledger), sums.taken) == (1, 0)
    ledger.close()
    assert len(read_journal(journal).entries) == 1


def test_a_text_of_numpy_is_that_text():
    assert names_of([np.str_("ann"), *np.array(["bob"])]) == ["ann", "bob"]
    assert {type(each) for each in names_of(np.array(["bob"]))} == {str}
    assert Units.of([np.str_("ann"), "ann"], 2).codes.tolist() == [0, 0]
    assert Units.of(np.array([7, np.int64(7)], dtype=object), 2).codes.tolist() == [0, 0]


@pytest.mark.parametrize("labels", CONFUSED, ids=map(str, range(len(CONFUSED))))
def test_labels_that_may_be_confused_are_refused_by_every_query(labels):
    """Merged people change places when one of them leaves, which is more than declared."""
    noise = DiscreteLaplace(1.0)
    used = Invocation.bounded(
        noise, Contribution(1.0, 1), PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL, at="n"
    )
    ledger = Ledger(Plan.of(used), rng=np.random.default_rng(0))
    for call in (
        lambda: Units.of(labels, len(labels)),
        lambda: Units.alone(labels),
        lambda: distinct_names(labels),
        lambda: ledger.sum([1] * len(labels), units=labels),
        lambda: ledger.count(units=labels),
        lambda: ledger.histogram(["a"] * len(labels), ["a"], units=labels),
    ):
        with pytest.raises(InputError, match=r"units has labels of type|units is a"):
            call()
    assert len(ledger) == 0


def test_units_are_labels_or_codes():
    assert Units.of(deque(["a", "a\0", "a"]), 3).codes.tolist() == [0, 1, 0]
    assert Units.of(["b", "a", "b"], 3).codes.tolist() == [0, 1, 0]
    assert Units.of(np.array([2, 0, 2]), 3).codes.tolist() == [2, 0, 2]
    assert Units.of(np.array([10**12, -5]), 2).codes.tolist() == [1, 0]
    assert Units.of(range(3), 3).codes.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="one entry a row, 3"):
        Units.of(["a"], 3)


def test_a_histogram_keeps_units_apart_that_numpy_takes_for_one():
    used = Invocation.bounded(
        DiscreteLaplace(1e-3),
        Contribution(1.0, 1),
        PrivacyUnit("person"),
        AddRemove(),
        TrustModel.CENTRAL,
    )
    with Ledger(Plan.of(used), rng=np.random.default_rng(0)) as ledger:
        counts = ledger.histogram([("x", 1)] * 3, [("x", 1), ("y", 1)], units=["a", "a\0", "a"])
    assert counts.tolist() == [2, 0]


def test_a_unit_takes_part_in_a_stream_as_often_as_declared(tmp_path):
    journal = tmp_path / "ledger.jsonl"
    plan = Plan.of(gaussian_invocation(mechanism=STREAM, at="sums"))
    ledger = Ledger(plan, rng=np.random.default_rng(0), journal=journal)
    sums, taken = ledger.stream(STREAM, (), at="sums"), 0
    for unit in ("ann", np.str_("ann"), Alike("ann"), Alike("ann")):
        with suppress(PlanMismatchError, InputError):
            sums.add(1.0, unit=unit)
            taken += 1
    steps = [line for line in map(json.loads, journal.read_text().splitlines()) if "step" in line]
    assert (taken, [line["unit"] for line in steps]) == (1, ["ann"])
