"""Checks of values: of arguments, of fields, of names, and of numbers that round."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest
from examples import gaussian_invocation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import Laplace
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import MOST, Checked, Count, at_least
from dpaudit.base.names import checked_name, looks_alike, same_person, written_alike
from dpaudit.base.numbers import confidence, down, not_above, not_below, percent, plain, up
from dpaudit.mechanisms import LaplacePair
from dpaudit.reporting.curves import probability

# -- single values: which are taken, and that a sentence names the field, the value and the rul ----


HUGE = 10**400
NO_NUMBERS = [math.nan, math.inf, -math.inf, True, np.True_, "1", None, 1j, [1.0], HUGE]


@pytest.mark.parametrize(
    ("check", "taken", "refused"),
    [
        (validate.finite, [-1, 0, 1e308, np.float32(2), Fraction(1, 4)], []),
        (validate.positive, [5e-324, 1], [0, -0.0, -1, -5e-324]),
        (validate.non_negative, [0, 5e-324], [-5e-324]),
        (validate.probability, [0, math.nextafter(1, 0)], [1, -5e-324]),
        (validate.open_fraction, [5e-324, math.nextafter(1, 0)], [0, 1]),
        (validate.fraction, [5e-324, 1], [0, math.nextafter(1, 2)]),
    ],
)
def test_numbers(check, taken, refused):
    for value in taken:
        number = check(x=value)
        assert number == value
        assert type(number) is float
    for value in [*refused, *NO_NUMBERS]:
        with pytest.raises(InputError, match=r"^x is .*; it must be a"):
            check(x=value)


def test_integers_are_neither_floats_nor_booleans():
    assert validate.integer_at_least(1, n=np.int64(3)) == 3
    assert type(validate.integer_at_least(1, n=np.int64(3))) is int
    for value in (0, 2.0, True, "2", None, math.nan):
        with pytest.raises(InputError, match=r"^n is .*; it must be an integer of at least 1"):
            validate.integer_at_least(1, n=value)


def test_texts():
    assert validate.text(name="a") == "a"
    for value in ("", None, b"a", 3):
        with pytest.raises(InputError, match="non-empty text"):
            validate.text(name=value)


def test_labels_are_short_and_text():
    assert validate.label(at="") == ""
    assert validate.label(at="é" * 300) == "é" * 300
    for wrong in ("x" * 301, "\ud800", None):
        with pytest.raises(InputError, match="it must be a text of at most 300 characters"):
            validate.label(at=wrong)
    with pytest.raises(InputError, match="non-empty text"):
        validate.text(name="\udfff")


@pytest.mark.parametrize("value", [(1, 1), (2, 1), (0, math.inf), (0,), "ab", None, (0, 1, 2)])
def test_intervals_have_an_inside(value):
    assert validate.interval(clip=[0, 1]) == (0.0, 1.0)
    with pytest.raises(InputError, match="lower < upper"):
        validate.interval(clip=value)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def test_members_are_given_as_themselves_or_by_value():
    assert validate.member(Colour, c="red") is validate.member(Colour, c=Colour.RED) is Colour.RED
    with pytest.raises(InputError, match="c is 'green'; it must be one of red, blue"):
        validate.member(Colour, c="green")


def test_arrays_are_finite_and_of_numbers():
    array = validate.real_array(x=[[1, 2]])
    assert array.dtype == np.float64
    assert array.shape == (1, 2)
    for value in ([1, math.nan], ["a"], [[1], [1, 2]], [True], None):
        with pytest.raises(InputError, match=r"^x "):
            validate.real_array(x=value)


def test_whole_numbers_that_floats_would_round_are_no_numbers():
    """Of 2^53 + 1 and 2^53 + 2, which differ by 1, floats make two that differ by 2."""
    assert validate.real_array(x=[2**53, -(2**53)]).tolist() == [2.0**53, -(2.0**53)]
    for value in (2**53 + 1, -(2**53) - 1, 2**64 - 1, [0, -(2**63)]):
        with pytest.raises(InputError, match="x has a whole number beyond ±2\\^53, which a float"):
            validate.real_array(x=value)


class Talkative:
    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("secret 4711")


@pytest.mark.parametrize("value", ["4711", Talkative(), [4711, "x"], [4711, math.nan], {4711: 1}])
def test_no_error_shows_a_private_value(value):
    with pytest.raises(InputError) as raised:
        validate.private(value)
    assert "4711" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked,
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        [np.ma.masked_array([7.0], mask=[True]), np.ma.masked_array([2.0], mask=[False])],
    ],
)
def test_what_is_masked_is_no_number(value):
    with pytest.raises(InputError, match="must be a number or an array") as refused:
        validate.private(value)
    assert "7" not in str(refused.value)
    assert validate.private(np.ma.masked_array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_instances_are_told_by_their_class_alone():
    assert validate.instance(float, value=0.5) == 0.5
    with pytest.raises(InputError, match=r"^value is a str; it must be a float\.$"):
        validate.instance(float, value="secret")


def test_a_private_array_is_a_copy():
    mine = np.zeros(2)
    kept = validate.private(mine)
    mine[0] = 1.0
    assert kept[0] == 0.0


def test_long_values_are_cut():
    with pytest.raises(InputError) as raised:
        validate.positive(x="y" * 1000)
    assert len(str(raised.value)) < 150


class Rude:
    def __repr__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10**7,
        b"x" * 10**7,
        10**10**6,
        [0] * 10**6,
        {n: n for n in range(10**5)},
        [[[[["x" * 10**6]]]]],
        [10**5000],
        (Rude(), "x"),
        Rude(),
        np.zeros(10**6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_long_value_is_told_briefly_and_at_once(value):
    start = time.perf_counter()
    assert len(validate.shown(value)) <= 80
    assert time.perf_counter() - start < 1
    with pytest.raises(InputError) as caught:
        validate.positive(scale=value)
    assert len(str(caught.value)) <= 160


def test_a_short_value_is_told_as_it_is():
    assert validate.shown(0.1) == "0.1"
    assert validate.shown("a'b") == '"a\'b"'
    assert validate.shown([1, "a"]) == "[1, 'a']"


def test_a_whole_number_lies_between_its_bounds():
    assert validate.integer_at_least(1, 10**15, count=np.int64(7)) == 7
    with pytest.raises(
        InputError, match=r"count is 11; it must be an integer of at least 1 and at"
    ):
        validate.integer_at_least(1, 10, count=11)
    for wrong in (0, True, 1.0, "1", None, 10**5000):
        with pytest.raises(InputError, match=r"count is .*; it must be an integer of at least 1"):
            validate.integer_at_least(1, 10**15, count=wrong)


# -- fields that check themselves ------------------------------------------------------------------


@dataclass(frozen=True)
class Counted(Checked):
    number: Count = 1


def test_a_subclass_without_a_kind_of_its_own_is_no_member():
    class Cheaper(Laplace):
        def pair(self, sensitivity):
            return LaplacePair(Fraction(0))

    with pytest.raises(InputError, match="Cheaper, which is not a registered mechanism"):
        gaussian_invocation(mechanism=Cheaper(1.0))


@pytest.mark.parametrize(
    "wrong", [0, -1, 1.0, "1", True, None, MOST + 1, 10**5000], ids=lambda one: type(one).__name__
)
def test_counts_are_bounded(wrong):
    assert Counted(MOST).number == MOST
    with pytest.raises(InputError) as caught:
        Counted(wrong)
    assert len(str(caught.value)) < 160
    assert at_least(0, 5)(number=5) == 5


def test_a_class_that_compares_as_a_base_with_other_fields_is_refused():
    @dataclass(frozen=True)
    class Bare(Checked):
        pass

    @dataclass(frozen=True, eq=False)
    class Table(Bare):
        losses: tuple[float, ...] = ()

    @dataclass(frozen=True, eq=False)
    class Base(Checked):
        pass

    @dataclass(frozen=True, eq=False)
    class Other(Base):
        losses: tuple[float, ...] = ()

    with pytest.raises(InputError, match=r"Table compares as .*Bare, which has other fields; give"):
        Table((1.0,))
    assert Other((1.0,)) != Other((2.0,))
    assert Bare() == Bare()


# -- names that look like another's ----------------------------------------------------------------


HIDDEN = ["\u3164", "\ufe0f", "\u034f", "\u115f", "\u180b", "\u2800", "\uffa0", "\u200b", "\u00ad"]


@pytest.mark.parametrize(
    "name",
    [
        *("ANN", " a nn", "ann.", "ann\u0301", "\u0430nn", "\u0251nn", "a\u0578\u0578", "\u0391nn"),
        *("\uff41\uff4e\uff4e", "\U0001d41ann", *(f"an{each}n" for each in HIDDEN)),
    ],
)
def test_who_looks_like_another_is_that_one(name):
    assert same_person(name, "ann")
    assert same_person("ann", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann", "anna"),
        ("ann 2", "ann 3"),
        ("\u0418\u0432\u0430\u043d", "\u0418\u043b\u044c\u044f"),  # Ivan and Ilya
        ("\u674e\u5c0f\u9f99", "\u674e\u5927\u9f99"),
        ("\u0930\u093e\u092e", "\u0930\u092e\u093e"),  # Ram and Rama
    ],
)
def test_others_are_others(one, other):
    assert not same_person(one, other)
    assert checked_name(by=one) == one
    assert checked_name(by=other) == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("shop", each) for each in ("Shop", " shop ", "s hop", "\uff53hop", "sh\u043ep")),
        *(("shop", each) for each in ("s\u029cop", "\u0455\u04bb\u043e\u0440")),
        *(("data", each) for each in ("d\u0430ta", "data\u3164")),
        *(("datal", each) for each in ("dataI", "data\uff29", "dataL", "data\u0406", "data\u04cf")),
        *(("AI", each) for each in ("Al", "ai", "aI")),
        ("sales-1", "sales\u20131"),
        ("Sch\u00fcler", "schu\u0308ler"),
        ("\u0451", "\u00eb"),
        ("week 1  12", "week 1 12"),
    ],
)
def test_things_whose_names_look_like_one(one, other):
    assert looks_alike(one, other)
    assert looks_alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("sales-1.1", "sales-11"), ("2024-1-12", "2024-11-2"), ("week 1 12", "week 11 2")),
        *(("C", "C++"), ("C", "C#"), ("-1", "1"), ("shop+", "shop-"), ("v1", "vl"), ("s0", "so")),
        *(("Sch\u00fcler", "Schuler"), ("\u0915\u0941", "\u0915\u0947")),
        *(("\U0001f4ca", "\U0001f6d2"), ("MAIL", "MALL"), ("mail", "mall"), ("files", "flies")),
    ],
)
def test_things_whose_names_do_not(one, other):
    assert not looks_alike(one, other)
    assert not looks_alike(other, one)
    assert checked_name(dataset=one) == one


def test_names_are_of_one_script_and_can_be_seen():
    for fine in (
        "Jos\u00e9 O'Brien-2",
        "\u7530\u4e2d\u3055\u304f\u3089",
        "POS\u30c7\u30fc\u30bf \u4f50\u3005\u6728",
        "ann@x.org",
        "\u0418\u0432\u0430\u043d",
    ):
        assert checked_name(by=fine) == fine
    for wrong in ("\u0430nn", "a\u03bfn", *(f"ann{each}" for each in HIDDEN)):
        with pytest.raises(InputError, match=r"^by is .*be visible, and of one script") as error:
            checked_name(by=wrong)
        assert str(error.value).isascii()


def test_what_earlier_versions_took_for_one():
    assert written_alike(" A nn", "\uff41nn")
    assert not written_alike("ann.", "ann")


# -- numbers for print: bounds are rounded to their safe side --------------------------------------


POSITIVE = st.floats(1e-300, 1e300)


@settings(derandomize=True, max_examples=300)
@given(POSITIVE)
def test_bounds_are_rounded_outwards(value):
    """Up to the slack of float rounding, far below the last digit that is shown."""
    slack = Fraction(value) * Fraction(2, 10**12)
    assert Fraction(up(value)) >= Fraction(value) - slack
    assert Fraction(down(value)) <= Fraction(value) + slack
    assert float(up(value)) == pytest.approx(value, rel=1.1e-5)
    assert float(down(value)) == pytest.approx(value, rel=1.1e-5)


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [
        (0.1 + 0.2, "0.3", "0.3"),
        (1.0000001, "1.00001", "1"),
        (0.9999999, "1", "0.999999"),
        (1234567.5, "1.23457e+06", "1.23456e+06"),
        (0.0, "0", "0"),
        (math.inf, "∞", "∞"),
    ],
)
def test_bounds(value, above, below):
    assert (up(value), down(value)) == (above, below)


@pytest.mark.parametrize(("value", "shown"), [(1.0, "1"), (1e-5, "1e-05"), (-math.inf, "-∞")])
def test_plain(value, shown):
    assert plain(value) == shown


@settings(derandomize=True, max_examples=300)
@given(POSITIVE)
@example(5e-324)
@example(1.7976931348623157e308)
@example(0.1 + 0.2)
def test_what_is_not_below_or_above_is_so_exactly(value):
    assert float(not_above(value)) <= value <= float(not_below(value))
    assert float(not_above(value)) == pytest.approx(value, rel=1.1e-5)
    assert float(not_below(value)) == pytest.approx(value, rel=1.1e-5)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (probability(1, 0), "73.2 %"),
        (probability(math.log(3), 0), "75 %"),
        (0.5, "50 %"),
        (0.99951, "99.96 %"),
        (probability(10, 0), "99.996 %"),
        (1 - 1e-13, "100 %"),
    ],
)
def test_percent_is_rounded_up_and_keeps_its_distance_from_certainty(share, shown):
    assert percent(share) == shown


@settings(derandomize=True, max_examples=200)
@given(st.floats(0.5, 1))
def test_percent_is_never_below(share):
    assert Fraction(percent(share).removesuffix(" %")) / 100 >= Fraction(share) - Fraction(
        1, 10**11
    )


def test_confidence_is_not_rounded():
    assert confidence(1 - 1e-9) == "99.9999999 %"
    assert confidence(1.0) == "100 %"


def test_a_real_array_is_a_new_one_and_a_view_need_not_be():
    own = np.arange(3.0)
    assert not np.shares_memory(validate.real_array(x=own), own)
    assert validate.real_view(x=own) is own
    for wrong in ([np.nan], ["a"], [2**60]):
        with pytest.raises(InputError):
            validate.real_view(x=wrong)
