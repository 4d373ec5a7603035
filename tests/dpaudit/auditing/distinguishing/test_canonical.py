"""Different objects have different forms, equal ones equal ones, and no object has none."""

import dataclasses
import datetime
import enum
import itertools
import math
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.auditing.distinguishing.output_facts import canonical, entry_name
from dpaudit.auditing.distinguishing.outputs import Raised

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes()
)
keys = st.text() | st.integers() | st.booleans() | st.tuples(st.text(), st.integers())
objects = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.frozensets(keys)
        | st.lists(st.floats() | st.integers()).map(lambda numbers: [*numbers])
    ),
    max_leaves=12,
)


def exactly(value):
    """What tells objects apart, written without any of the code under test."""
    if isinstance(value, dict):
        return "dict", [(exactly(key), exactly(each)) for key, each in value.items()]
    if isinstance(value, frozenset):
        return "set", sorted(repr(exactly(each)) for each in value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [exactly(each) for each in value]
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value.hex()
    return type(value).__name__, repr(value)


@given(objects, objects)
def test_forms_are_equal_where_objects_are(one, other):
    same = repr(exactly(one)) == repr(exactly(other))
    assert (canonical(one).digest == canonical(other).digest) == same


@given(objects)
def test_a_small_change_is_seen(value):
    for other in ([value], (value,), {"a": value}, [value, None]):
        assert canonical(other).digest != canonical(value).digest


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Result:
    total: float
    name: str = "sum"


class Slots:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Hostile:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise ValueError


Pair = namedtuple("Pair", "a b")
KINDS = [
    *(None, True, False, 0, 1, 1.0, -0.0, 0.0, math.nan, math.inf, -math.inf, "1", b"1", "", b""),
    *(2**53, 2**53 + 1, 2**62, 2**62 + 1, -(2**62), 10**400, 10**400 + 1, 1j, 1 + 1j),
    *([], (), {}, set(), frozenset(), [1], [1.0], (1.0,), [True], [1, True], [True, 1], [[1.0]]),
    *([2**62, 0.5], [2**62 + 1, 0.5], [10**400], [10**400 + 1], [1.0, 2], [1, 2.0], [None], ["1"]),
    *(
        {"a": 1},
        {"a": None},
        {"b": None},
        {1: "a"},
        {"1": "a"},
        OrderedDict(a=1),
        {1},
        {1.0},
        {"1"},
    ),
    *({"a": 1, "b": 2}, {"b": 2, "a": 1}, {(1, 2)}, {frozenset({1})}, {frozenset({2})}),
    *(Colour.RED, Colour.BLUE, Result(1.0), Result(2.0), Slots(1), Slots(2), Pair(1, 2), (1, 2)),
    *(Decimal("1"), Decimal("1.0"), Fraction(1, 3), Fraction(2, 3), Path("a"), Path("b")),
    *(datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), ValueError("a"), ValueError("b")),
    *(Raised("KeyError", "a"), Raised("KeyError", "b"), Raised("ValueError", "a"), int, float),
    *(np.float64(1), np.float32(1), np.int64(1), np.int64(2**62 + 1), np.uint64(2**63 + 1)),
    *(np.array(1.0), np.array([1.0]), np.array([[1.0]]), np.array([1]), np.array([1], np.int8)),
    *(
        np.zeros((2, 3)),
        np.zeros((3, 2)),
        np.zeros(6),
        np.zeros(0),
        np.zeros((0, 2)),
        np.array(["a"]),
    ),
    *(
        np.array([2**62, 0]),
        np.array([2**62 + 1, 0]),
        np.array([1j]),
        np.array([None, 1.0], object),
    ),
    *(
        np.datetime64("2020-01-01"),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([True]),
        np.bool_(1),
    ),
    *(np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), SimpleNamespace(a=1), range(3)),
    *(np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[1, 0])),
    *("x" * 500, "x" * 499 + "y", b"x" * 500, b"x" * 499 + b"y", [*range(300)], "a 1", "a 2"),
]


def test_objects_of_all_kinds_differ():
    digests = [canonical(kind).digest for kind in KINDS]
    for (at, one), (place, other) in itertools.combinations(enumerate(digests), 2):
        assert one != other, f"{KINDS[at]!r:.80} and {KINDS[place]!r:.80}"
    assert digests == [canonical(kind).digest for kind in KINDS]


def cycle():
    held = [1.0]
    held.append(held)
    return held


@pytest.mark.parametrize(
    "make",
    [
        Hostile,
        cycle,
        lambda: test_any_object_has_a_form,
        object,
        lambda: iter([1, 2]),
        lambda: "\ud800",
    ],
)
def test_any_object_has_a_form(make):
    assert canonical(make()).facts
    assert canonical(make()).digest


def test_what_has_no_room_is_one_fact(monkeypatch):
    monkeypatch.setattr("dpaudit.auditing.distinguishing.output_facts.MOST", 10)
    one, other = ({name: [name] for name in map(str, range(start, 50))} for start in (0, 1))
    changed = {**one, "49": ["50"]}
    assert len(canonical(one).facts) <= 12
    assert len({canonical(each).digest for each in (one, other, changed)}) == 3


class Frame:
    """As those of pandas."""

    columns = ("a", "b")
    index = (3, 4)

    def __getitem__(self, name):
        return Series(name)

    def to_dict(self):
        raise AssertionError("it is read by columns")


@dataclasses.dataclass
class Series:
    name: str
    dtype: str = "float64"

    def to_numpy(self):
        return np.array([1.0, math.nan])


class Image:
    mode = "RGB"

    def __array__(self, dtype=None, copy=None):
        return np.zeros((2, 2, 3), np.uint8)


def test_labels_can_be_read():
    frame, image = canonical(Frame()), canonical(Image())
    assert "output['b'][1] is NaN" in frame.facts
    assert (
        "output has type tests.dpaudit.auditing.distinguishing.test_canonical.Frame" in frame.facts
    )
    assert {"output.mode is 'RGB'", "output has dtype |u1"} <= image.facts
    assert entry_name(*image.blocks, 7) == "output[1, 0, 1]"
    raised = canonical(Raised("ValueError", "secret 7"))
    assert "it raises ValueError" in raised.facts
    assert not any("secret" in fact for fact in raised.facts)
    assert raised.failed
    text = canonical("the sum is 3.5 of 12")
    assert "output holds the word 'sum'" in text.facts
    assert text.blocks["(numbers in output)", ()].tolist() == [3.5, 12.0]
    assert "output holds 7" in canonical({7, 8}).facts
    assert canonical({"a": {"b": 2.5}}).numbers["output['a']['b']"] == 2.5


def test_numbers_are_exact():
    form = canonical(2**62 + 101)
    assert form.numbers["last 32 bits of output"] == 101
    assert canonical([2**62 + 101, 5]).blocks["(last 32 bits of output)", ()].tolist() == [101, 0]
