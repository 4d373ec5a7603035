"""Numbers for print: bounds are rounded to their safe side."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.base.numbers import confidence, down, not_above, not_below, percent, plain, up
from dpaudit.reporting.curves import probability

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
