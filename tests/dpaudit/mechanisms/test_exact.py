from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.errors import InputError
from dpaudit.mechanisms.exact import decays, on_grid, widened

STEP = 2.0**-40


@given(
    value=st.floats(-1e18, 1e18),
    noise=st.integers(-(2**62), 2**62),
)
@example(value=0.5 * STEP, noise=0)
@example(value=2.0**23, noise=1)
@example(value=-1e290, noise=3)
@settings(max_examples=200, derandomize=True)
def test_releases_are_the_nearest_grid_point_moved_by_whole_steps(value, noise):
    (found,) = on_grid(np.array([value]), STEP, np.array([noise]))
    place = round(Fraction(value) / Fraction(STEP))  # ties to even, as rint
    exact = (place + noise) * Fraction(STEP)
    assert float(found) == float(exact)


def test_a_value_beyond_the_grid_is_refused():
    with pytest.raises(InputError, match="too large for a grid of step"):
        on_grid(np.array([1e300]), 2.0**-60, np.zeros(1, dtype=np.int64))


@given(
    scale=st.floats(1e-3, 1e6),
    sensitivity=st.floats(1e-6, 1e6),
    steps=st.integers(0, 10**6),
)
@settings(max_examples=100, derandomize=True)
def test_wider_noise_pays_for_the_steps_exactly(scale, sensitivity, steps):
    found = Fraction(widened(scale, STEP, sensitivity, steps))
    needed = Fraction(scale) * (Fraction(sensitivity) / Fraction(STEP) + steps)
    assert found * Fraction(sensitivity) >= needed
    assert found * Fraction(sensitivity) <= needed * (1 + Fraction(1, 2**51))
    assert widened(scale, STEP, 0.0, steps) == scale / STEP


def uniform(seed: int) -> SimpleNamespace:
    return SimpleNamespace(below=random.Random(seed).randrange)


@pytest.mark.parametrize(
    "exponent",
    [Fraction(0), Fraction(1, 3), Fraction(0.1), Fraction(1), Fraction(7, 2), Fraction(5e-324)],
    ids=str,
)
def test_an_event_decays_at_its_rate(exponent):
    source, runs = uniform(1), 20_000
    seen = sum(decays(*exponent.as_integer_ratio(), source) for _ in range(runs))
    chance = math.exp(-exponent)
    spread = math.sqrt(runs * chance * (1 - chance))
    assert abs(seen - runs * chance) <= 5 * spread  # an alarm in 2 million


def test_an_event_decays_as_the_enumerated_choices_of_its_source_say():
    """All ways through the first uniform integers, with their exact probabilities."""

    def share(numerator, denominator, depth):
        found = {True: Fraction(0), False: Fraction(0)}
        ways = [([], Fraction(1))]
        while ways:
            answers, mass = ways.pop()
            bounds = []

            def below(bound, answers=answers, bounds=bounds):
                bounds.append((bound, len(bounds)))
                if len(bounds) > len(answers):
                    raise IndexError
                return answers[len(bounds) - 1]

            try:
                found[decays(numerator, denominator, SimpleNamespace(below=below))] += mass
            except IndexError:
                bound = bounds[-1][0]
                if len(answers) < depth:
                    ways += [([*answers, each], mass / bound) for each in range(bound)]
        return found

    found = share(1, 2, 4)
    lost = 1 - sum(found.values())
    assert 0 < lost < Fraction(1, 300)
    assert found[True] <= math.exp(-0.5) <= found[True] + lost


def test_a_huge_rate_costs_no_more_than_a_small_one():
    start = time.perf_counter()
    assert not any(decays(10**400, 1, uniform(2)) for _ in range(1000))
    assert time.perf_counter() - start < 5
