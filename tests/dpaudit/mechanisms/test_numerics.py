"""Rounding, inversion, tails and exact sums, on which the mechanisms rest."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.auditing.noise.tails import choice_tails, integer_tails, laplace_tails, normal_tails
from dpaudit.mechanisms import Tails
from dpaudit.mechanisms.choice import panels
from dpaudit.mechanisms.rounding import (
    as_float,
    concentration,
    exceeds_floats,
    first_float,
    least_epsilon,
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


@settings(max_examples=100, derandomize=True)
@given(root=st.floats(5e-324, 1e300), reach=st.floats(1.0, 1e6))
@example(root=1.0, reach=1.0)
@example(root=5e-324, reach=1e6)
def test_the_root_is_found_to_the_last_float(root: float, reach: float) -> None:
    assert least_epsilon(lambda epsilon: float(epsilon < root), 0.5, root * reach) == root


def test_ends_are_returned_as_they_are() -> None:
    assert least_epsilon(lambda _: -1.0, 0.0, 5.0) == 0.0
    assert least_epsilon(lambda _: 1.0, 0.0, 5.0) == 5.0
    assert first_float(lambda x: x >= 1e-320, 1.7e308) == 1e-320


def test_some_sixty_questions_are_enough() -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x >= math.pi * 1e-300

    assert first_float(holds, 1.7e308) == math.pi * 1e-300
    assert len(asked) <= 65


def test_a_function_with_corners_is_integrated_to_rounding():
    corners = np.array([-3.0, 1.5, 99.0])
    places, weights = panels(-10.0, 20.0, corners)
    assert weights.sum() == pytest.approx(30.0, rel=1e-14)
    found = (weights * np.exp(-np.abs(places + 3.0)) * np.abs(places - 1.5)).sum()
    fine = np.linspace(-10.0, 20.0, 3_000_001)
    truth = np.trapezoid(np.exp(-np.abs(fine + 3.0)) * np.abs(fine - 1.5), fine)
    assert found == pytest.approx(truth, rel=1e-9)
    assert len(places) == len(weights)


# Tails against scipy's laws; their statistics are tested with the noise audits

DRAWS = np.array([[-3.0, -0.2], [0.0, 1.7]])


@pytest.mark.parametrize(
    ("tails", "law"), [(laplace_tails, stats.laplace), (normal_tails, stats.norm)]
)
def test_continuous_tails_are_two_sided_probabilities(tails, law):
    found = tails(DRAWS)
    assert found.tails == pytest.approx(2 * law.sf(np.abs(DRAWS)).ravel(), rel=1e-12)
    assert found.positive.tolist() == [False, False, False, True]
    mean = law.expect(np.abs, lb=-40, ub=40)
    assert found.sizes == pytest.approx(np.abs(DRAWS).ravel() / mean, rel=1e-6)
    assert (found.normal is None) == (law is stats.laplace)


def at_least(law):
    return lambda noise: law.sf(noise - 1)


def test_integer_tails_lie_between_strict_and_weak_probabilities():
    law = stats.dlaplace(0.7)
    noise = np.arange(-6.0, 7.0)
    found = integer_tails(noise, at_least(law), 1.0, np.random.default_rng(0))
    strict, weak = 2 * law.sf(np.abs(noise)), 2 * law.sf(np.abs(noise) - 1)
    weak[noise == 0] = 1.0
    assert ((strict <= found.tails + 1e-12) & (found.tails <= weak + 1e-12)).all()
    assert found.positive[noise > 0].all()
    assert not found.positive[noise < 0].any()


def test_integer_tails_are_uniform_although_the_law_is_discrete():
    law, rng = stats.dlaplace(1.3), np.random.default_rng(1)
    noise = law.rvs(size=20_000, random_state=rng).astype(float)
    found = integer_tails(noise, at_least(law), 1.0, rng)
    assert stats.kstest(found.tails, "uniform").pvalue > 1e-6
    assert stats.binomtest(int(found.positive.sum()), 20_000).pvalue > 1e-6


def test_a_fraction_is_impossible_for_an_integer_law():
    law = stats.dlaplace(1.0)
    found = integer_tails(np.array([1.0, 0.5]), at_least(law), 1.0, np.random.default_rng(0))
    assert found.tails.tolist() == [0.0, 0.0]


def test_choices_are_ordered_by_their_probability():
    masses = np.array([[0.5, 0.3, 0.2]] * 3)
    found = choice_tails(masses, np.array([0, 1, 2]), np.random.default_rng(0))
    assert ((found.tails >= [0, 0.5, 0.8]) & (found.tails <= [0.5, 0.8, 1.0])).all()
    assert found.sizes.size == 0
    rng = np.random.default_rng(2)
    drawn = rng.choice(3, size=20_000, p=masses[0])
    many = choice_tails(np.repeat(masses[:1], 20_000, axis=0), drawn, rng)
    assert stats.kstest(many.tails, "uniform").pvalue > 1e-6


def test_parts_of_one_law_are_joined():
    whole = Tails.joined([normal_tails(np.array([0.5])), normal_tails(np.array([-2.0]))])
    assert whole.tails.size == whole.sizes.size == 2
    assert whole.normal is not None
    assert whole.normal.tolist() == [0.5, 2.0]
    mixed = Tails.joined([normal_tails(np.array([0.5])), laplace_tails(np.array([1.0]))])
    assert mixed.normal is None
