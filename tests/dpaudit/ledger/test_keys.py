"""Counts of keys that nobody knows beforehand."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    FloatNoise,
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
from dpaudit.ledger.bounding import key_counts
from dpaudit.mechanisms import StableHistogram

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
        (bounded(rows=None), "no stable histogram of some rows"),
        (
            Invocation.bounded(DiscreteLaplace(1.0), Contribution(1.0, rows=1), *ABOUT, at="towns"),
            "no stable histogram of some rows",
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
    with pytest.raises(InputError, match="no bounded sum keeps to"):
        ledger.sum([[3, 4]], at="towns")
    with pytest.raises(InputError, match="no exponential mechanism"):
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
        "import numpy as np\nfrom test_keys import bounded, opened\n"
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
