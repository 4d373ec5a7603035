"""Ends of elementary functions, against mpmath at 600 bits."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit import checker

SCALES = st.sampled_from([8, 24, 64, 130, 400])
EXACT = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],  # a clock decides nothing
}


@pytest.fixture(autouse=True)
def _precise():
    with mpmath.workprec(9000):
        yield


def scaled(value: mpmath.mpf, w: int) -> mpmath.mpf:
    return mpmath.ldexp(value, w)


@settings(**EXACT, max_examples=400)
@given(st.fractions(-400, 400, max_denominator=10**9), SCALES)
def test_exp_is_between_its_ends(x, w):
    with mpmath.workprec(1200):
        low, high = checker.exp(x.numerator, x.denominator, w)
        assert low <= scaled(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator), w) <= high
        assert high - low <= 3


@pytest.mark.parametrize(
    "x",
    [
        Fraction(5e-324),
        Fraction(-5e-324),
        Fraction(1e-300),
        Fraction(-745),
        Fraction(-1e308),
        Fraction(3999),
        Fraction(1) - Fraction(1, 2**53),
        *(Fraction(n * 693147180559945309417232, 10**24) for n in (-900, -1, 1, 2, 900)),
    ],
)
def test_exp_at_the_ends_of_floats_and_at_multiples_of_ln_two(x):
    for w in (8, 64, 1200):
        low, high = checker.exp(x.numerator, x.denominator, w)
        exact = mpmath.exp(max(mpmath.mpf(x.numerator) / x.denominator, -5000))
        assert low <= scaled(exact, w) <= high
        assert high - low <= 3


def test_too_large_a_loss_is_not_computed():
    with pytest.raises(checker.MissingError, match="not computed"):
        checker.exp(10**9, 1, 64)


@settings(**EXACT, max_examples=400)
@given(SCALES, st.integers(0, 2**500), st.integers(0, 600))
def test_log_is_between_its_ends(w, extra, length):
    value = (1 << w) + extra % (1 << length)
    with mpmath.workprec(1200):
        low, high = checker.log(value, w)
        assert low <= scaled(mpmath.log(mpmath.ldexp(mpmath.mpf(value), -w)), w) <= high
        assert high - low <= 3


@pytest.mark.parametrize("w", [1, 8, 64, 500])
def test_constants_are_between_their_ends(w):
    for exact, (low, high) in (
        (mpmath.ln(2), checker.log_two(w)),
        (mpmath.sqrt(2 * mpmath.pi), checker.root_of_two_pi(w)),
    ):
        assert low <= scaled(exact, w) <= high
        assert high - low <= 2


def test_the_odd_series_is_the_normal_law_over_its_density():
    rng = random.Random(1)
    for _ in range(150):
        g = rng.choice([64, 120, 300])
        z = rng.choice([0, 1, rng.randrange(1 << g), rng.randrange(17 << g)])
        value = mpmath.ldexp(mpmath.mpf(z), -g)
        half = mpmath.erf(value / mpmath.sqrt(2)) / 2
        exact = scaled(half / mpmath.npdf(value), g)
        low, high = (checker.odd_series(z, g, above=above) for above in (False, True))
        assert low <= exact <= high
        assert high - low <= 10 + exact * mpmath.ldexp(1, 12 - g)


@given(st.fractions(0, 10**30), st.integers(1, 20))
@settings(**EXACT)
def test_decimals_are_rounded_up(value, digits):
    told = Fraction(checker.decimal_up(value, digits))
    assert value <= told <= value * (1 + Fraction(10) ** (1 - digits))
