"""Units, the keys that name them, and who contributes what."""

import json
import os
import re
import subprocess
import sys
from collections import Counter, UserList, deque
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

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
    FloatNoise,
    Gaussian,
    InputError,
    Invocation,
    Ledger,
    MetricBall,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.ledger import read_journal
from dpaudit.ledger.bounding import key_counts
from dpaudit.ledger.units import DistinctNames, Units, distinct_names, name_of, names_of
from dpaudit.mechanisms import StableHistogram
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian

# -- two units are never one, and one is never two -------------------------------------------------


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
    with pytest.raises(InputError, match="one entry for each row, 3"):
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


# -- counts of keys that nobody knows beforehand ---------------------------------------------------


ABOUT = (PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)


def bounded(keys=2, threshold=2.0, scale=1e-3, relation=None, rows=2):
    """Hardly any noise: all counts from the threshold on are told as they are."""
    unit, usual, trust = ABOUT
    mechanism = StableHistogram(scale, threshold, key_sensitivity=keys)
    about = (unit, relation or usual, trust)
    return Invocation.bounded(mechanism, Contribution(1.0, rows=rows), *about, at="towns")


def opened(invocation, **facts):
    facts = facts or {"rng": np.random.default_rng(0)}
    return Ledger(Plan.of(invocation), **facts)


def test_each_unit_counts_once_for_its_first_distinct_keys():
    rows = [
        *("ann", "Ulm"), *("bob", "Ulm"), *("ann", "Ulm"), *("ann", "Bonn"), *("ann", "Aix"),
        *("bob", "Bonn"), *("cid", "Aix"), *("bob", "Aix"), *("dan", "Kiel"), *("dan", "Kiel"),
    ]  # fmt: skip
    assert key_counts(bounded(), rows[1::2], rows[::2]) == {
        "Aix": 1,
        "Bonn": 2,
        "Kiel": 1,
        "Ulm": 2,
    }
    told = opened(bounded()).stable_histogram(rows[1::2], units=rows[::2])
    assert list(told.items()) == [("Bonn", 2), ("Ulm", 2)]


def by_definition(keys, units, most):
    """Each unit's first distinct keys, by a loop."""
    own = {}
    for key, unit in zip(keys, units, strict=True):
        mine = own.setdefault(unit, [])
        if key not in mine and len(mine) < most:
            mine.append(key)
    return Counter(key for mine in own.values() for key in mine)


pairs = st.lists(st.tuples(st.sampled_from("abcdé"), st.integers(0, 6)), max_size=40)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(pairs, st.integers(1, 6), st.integers(0, 6))
def test_whoever_leaves_changes_so_many_counts_by_one(rows, most, leaver):
    invocation = bounded(keys=most, rows=most)
    keys, units = [key for key, _ in rows], [unit for _, unit in rows]
    left = [row for row in rows if row[1] != leaver]
    one, two = (
        {key: n for key, n in key_counts(invocation, *data).items() if n}
        for data in ((keys, units), ([key for key, _ in left], [unit for _, unit in left]))
    )
    assert one == by_definition(keys, units, most)
    moved = [one.get(key, 0) - two.get(key, 0) for key in {*one, *two}]
    assert set(moved) <= {0, 1}
    assert sum(moved) <= most


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ([], {}),
        ((), {}),
        (np.array([]), {}),
        (["x"], {}),
        (["x", "x"], {"x": 2}),
        (("10", "9", "10", "9", ""), {"10": 2, "9": 2}),
        ([7, 7, -10, -10, 2**80, 2**80], {-10: 2, 7: 2, 2**80: 2}),
        (np.array([3, 3, 1]), {3: 2}),
        (np.array(["b", "a", "a"]), {"a": 2}),
        (np.array(["b", "a", "a"], dtype=object), {"a": 2}),
        ([np.int64(4), 4, np.str_("a").__len__()], {4: 2}),
        (["a\0", "a\0", "a"], {"a\0": 2}),
        (["\ud800", "\udfff", "a"], {"?": 2}),  # no file can hold them
        ([10**5000, 10**4999, -(10**5000), 5], {2**256: 2}),
    ],
)
def test_keys_are_texts_or_whole_numbers_and_come_in_their_order(keys, told):
    for facts in ({}, {"noise": FloatNoise()}, {"noise": None}):
        if "noise" in facts and facts["noise"] is None:
            pytest.importorskip("opendp")
            ledger = Ledger(Plan.of(bounded()))
        else:
            ledger = opened(bounded(), **facts)
        released = ledger.stable_histogram(keys)
        assert list(released.items()) == list(told.items())
        assert all(type(count) is int for count in released.values())
        assert len(ledger) == 1, "what tells nothing is charged all the same"


SECRET = "Grünberg-secret"


@pytest.mark.parametrize(
    "keys",
    [
        SECRET,
        None,
        7,
        {SECRET: 1},
        {SECRET},
        [SECRET, 1],
        [SECRET, None],
        [SECRET, float("nan")],
        [1, 2.0],
        [1.0, 1.0],
        [True, False],
        [[SECRET]],
        [{SECRET: 1}],
        [SECRET.encode()],
        np.array([[SECRET]]),
        np.array([1.5, np.nan]),
        np.array(SECRET),
        (key for key in [SECRET]),
    ],
)
def test_other_keys_are_refused_in_one_sentence_that_names_none(keys):
    ledger = opened(bounded())
    with pytest.raises(InputError, match="keys must be a list") as caught:
        ledger.stable_histogram(keys)
    assert SECRET not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert len(ledger) == 0


def test_units_need_one_entry_a_row():
    with pytest.raises(InputError, match="units has 2 entries") as caught:
        opened(bounded()).stable_histogram([SECRET] * 3, units=[SECRET] * 2)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("invocation", "message"),
    [
        (bounded(keys=1), "key_sensitivity of .* is 1; under add-remove 2 keys .* 2 counts"),
        (bounded(keys=3, relation=ReplaceOne()), "is 3; under replace-one 2 .* 4 counts"),
        (bounded(keys=3, relation=ZeroOut()), "under zero-out 2 keys of a unit can change 4"),
        (bounded(keys=3, relation=MetricBall(1.0)), "under metric-ball 2 keys"),
        (bounded(rows=None), "not a stable histogram of some rows"),
        (
            Invocation.bounded(DiscreteLaplace(1.0), Contribution(1.0, rows=1), *ABOUT, at="towns"),
            "not a stable histogram of some rows",
        ),
    ],
)
def test_the_mechanism_covers_what_a_unit_may_change(invocation, message):
    with pytest.raises(InputError, match=message):
        opened(invocation).stable_histogram([SECRET])


def test_it_is_the_one_way_to_a_bounded_stable_histogram():
    ledger, declared = opened(bounded()), bounded()
    with pytest.raises(PlanMismatchError, match="stable_histogram"):
        ledger.release(declared.mechanism, [3, 4], at="towns")
    with pytest.raises(InputError, match="a bounded sum cannot enforce"):
        ledger.sum([[3, 4]], at="towns")
    with pytest.raises(InputError, match="not an exponential mechanism"):
        ledger.quantile([1.0], 0.5, [0.0, 1.0], at="towns")
    free = Invocation(declared.mechanism, 1.0, *ABOUT, at="free")
    with pytest.raises(PlanMismatchError, match="without a contribution"):
        opened(free).stable_histogram([SECRET])
    assert len(ledger) == 0


def test_nothing_of_a_key_is_written(tmp_path):
    path = tmp_path / "journal.jsonl"
    with opened(bounded(), rng=np.random.default_rng(0), journal=path) as ledger:
        ledger.stable_histogram([SECRET, SECRET], units=["ann", "bob"])
    written = path.read_text()
    assert SECRET not in written
    assert "ann" not in written
    assert SECRET not in repr(list(ledger)) + json.dumps(ledger.spent().to_dict())
    with pytest.raises(PlanMismatchError):
        opened(bounded()).stable_histogram([SECRET], at="elsewhere")


@pytest.mark.parametrize("order", [1, -1])
def test_neither_the_order_of_rows_nor_that_of_hashes_matters(order):
    code = (
        "import numpy as np\nfrom test_units import bounded, opened\n"
        f"keys = [f'k{{n % 50}}' for n in range(400)][::{order}]\n"
        "print(opened(bounded(scale=2.0, threshold=9.0)).stable_histogram(keys))"
    )
    found = set()
    for seed in ("0", "1"):
        facts = {**os.environ, "PYTHONHASHSEED": seed}
        facts["PYTHONPATH"] = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
        ran = subprocess.run(
            [sys.executable, "-c", code], env=facts, capture_output=True, text=True, check=True
        )
        found.add(ran.stdout)
    ((told,),) = (found,)
    shown = re.findall(r"'(k\d+)'", told)
    assert shown == sorted(shown) != []


def test_a_key_of_one_unit_is_told_as_often_as_the_threshold_says():
    """A binomial of 20 000 keys that one person each has; outside with probability below 1e-6."""
    mechanism = StableHistogram(2.0, 6.0)
    invocation = Invocation.bounded(mechanism, Contribution(1.0, rows=1), *ABOUT, at="towns")
    told = opened(invocation).stable_histogram(np.arange(20_000))
    chance = np.exp(-2.5) / (1 + np.exp(-0.5))
    spread = np.sqrt(20_000 * chance * (1 - chance))
    assert abs(len(told) - 20_000 * chance) < 5.2 * spread
    assert min(told.values()) == 6


def test_names_are_checked_once():
    names = DistinctNames.of(["ann", "bob"])
    assert DistinctNames.of(names) is names
    assert names == ("ann", "bob")
    for wrong in (["ann", "ann"], [1, 2], [""]):
        with pytest.raises(InputError):
            DistinctNames.of(wrong)
