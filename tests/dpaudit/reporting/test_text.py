"""Numbers and foreign text."""

import math
import unicodedata
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.reporting.text import compact, down, percent, plain, probability, up, visible
from dpaudit.reporting.wording.headline import confidence

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


@settings(derandomize=True, max_examples=200)
@given(st.floats(0, 50), st.floats(0, 1, exclude_max=True))
def test_probability_is_the_vertex_of_the_error_region(epsilon, delta):
    """The least sum of error rates of the (ε, δ) region, at its vertex, by mpmath."""
    with mpmath.workdps(40):
        grown = mpmath.exp(epsilon)
        vertex = (1 - mpmath.mpf(delta)) / (1 + grown)
        assert probability(epsilon, delta) == pytest.approx(float(1 - vertex), rel=1e-14)


def test_probability_without_overflow():
    assert probability(1e6, 0.5) == 1


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


@settings(derandomize=True, max_examples=100)
@given(st.text())
def test_no_character_hides(text):
    shown = visible(text)
    kept = set(shown) - set("\n\t\u200c\u200d")
    assert not {unicodedata.category(character) for character in kept} & {"Cc", "Cf", "Cs", "Zl"}
    shown.encode()


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200F, 0x0, 0x1B, 0xFEFF, 0xD800, 0xE000])
def test_hidden_characters_are_written_out(code):
    assert visible(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


def test_scripts_stay_as_they_are():
    text = "大安區 Straße ραβ नमस्ते עברית 🙂"
    assert visible(text) == text


def test_compact():
    assert compact({"b": 1, "a": ["é"]}) == '{"a": ["é"], "b": 1}'
    assert compact([0] * 5000, limit=10) == "[0, 0, 0, … (14990 more characters)"
