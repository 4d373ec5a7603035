from __future__ import annotations

import math
import sys
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.mechanisms.rounding import (
    as_float,
    concentration,
    exceeds_floats,
    round_down,
    round_up,
    up,
)

LARGEST = Fraction(sys.float_info.max)
law = settings(max_examples=200, derandomize=True)


@law
@given(value=st.fractions(min_value=0))
@example(value=Fraction(0))
@example(value=Fraction(1, 2**2000))
@example(value=LARGEST)
@example(value=LARGEST * 2)
@example(value=Fraction(1, 10))
def test_an_exact_number_lies_between_its_two_roundings(value: Fraction) -> None:
    below, above = round_down(value), round_up(value)
    assert below <= value <= above
    assert below == above or math.nextafter(below, math.inf) == above
    assert as_float(value) == above
    assert exceeds_floats(value) == (value > LARGEST)


@law
@given(value=st.floats(min_value=0, allow_nan=False), steps=st.integers(0, 5))
@example(value=0.0, steps=3)
@example(value=5e-324, steps=1)
@example(value=sys.float_info.max, steps=2)
def test_up_goes_one_float_a_step(value: float, steps: int) -> None:
    found = up(value, steps)
    assert as_float(value) == value
    for _ in range(steps if value > 0 else 0):
        value = math.nextafter(value, math.inf)
    assert found == value


@law
@given(epsilon=st.floats(0, 1e160), share=st.sampled_from([0.125, 0.5]))
@example(epsilon=5e-324, share=0.5)
@example(epsilon=1e155, share=0.125)
def test_a_concentration_is_at_least_the_share_of_the_square(epsilon: float, share: float) -> None:
    exact = Fraction(share) * Fraction(epsilon) ** 2
    for given_as in (epsilon, Fraction(epsilon)):
        found = concentration(given_as, share)
        assert found >= exact
        assert found == 0 or epsilon > 0
        assert found <= max(float(min(exact, LARGEST)) * (1 + 1e-15), 1e-300) or exact > 1e307


def test_what_no_float_holds_is_infinite() -> None:
    assert concentration(LARGEST * 4, 0.5) == concentration(math.inf, 0.5) == math.inf
