from __future__ import annotations

import math
import random
import sys
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.base.errors import UnsupportedError
from dpaudit.ledger.samplers.grid import WIDEST, as_int64, decays, on_grid, widened
from dpaudit.mechanisms.rounding import round_up

STEP = 2.0**-40


LARGEST = sys.float_info.max


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    noise=st.integers(-(2**62), 2**62),
    exponent=st.integers(-1074, 983),
)
@example(value=0.5 * STEP, noise=0, exponent=-40)
@example(value=2.0**23, noise=1, exponent=-40)
@example(value=-1e290, noise=3, exponent=-40)
@example(value=LARGEST, noise=-(2**62), exponent=-1074)
@example(value=LARGEST, noise=2**62, exponent=983)
@example(value=-0.0, noise=0, exponent=0)
@settings(max_examples=300, derandomize=True)
def test_releases_are_the_nearest_grid_point_moved_by_whole_steps(value, noise, exponent):
    """Of any float, on any grid: nothing is refused, and nothing wraps."""
    step = math.ldexp(1.0, exponent)
    (found,) = on_grid(np.array([value]), step, lambda places: places + noise)
    place = round(Fraction(value) / Fraction(step))  # ties to even, as rint
    exact = min(max((place + noise) * Fraction(step), -Fraction(LARGEST)), Fraction(LARGEST))
    assert float(found) == float(exact)
    assert math.copysign(1.0, found) == (-1.0 if exact < 0 else 1.0)


@given(st.lists(st.integers(-(2**70), 2**70), max_size=4))
def test_whole_numbers_stop_at_a_public_place(total):
    found = as_int64(np.array(total, dtype=object))
    assert found.dtype == np.int64
    assert found.tolist() == [min(max(each, -(2**62)), 2**62) for each in total]


@given(
    scale=st.floats(1e-3, 1e3),
    sensitivity=st.floats(1e-6, 1e6),
    steps=st.integers(0, 10**5),
)
@settings(max_examples=100, derandomize=True)
def test_wider_noise_pays_for_the_steps_exactly(scale, sensitivity, steps):
    found = Fraction(widened(scale, STEP, sensitivity, steps))
    needed = Fraction(scale) * (Fraction(sensitivity) / Fraction(STEP) + steps)
    assert found * Fraction(sensitivity) >= needed
    assert found * Fraction(sensitivity) <= needed * (1 + Fraction(1, 2**51))
    assert widened(scale, STEP, 0.0, steps) == scale / STEP


@given(
    scale=st.floats(5e-324, LARGEST),
    sensitivity=st.floats(5e-324, LARGEST),
    step=st.integers(-1074, 983).map(lambda exponent: math.ldexp(1.0, exponent)),
    steps=st.integers(0, 10**6),
)
@example(scale=1.0, sensitivity=1e-19, step=STEP, steps=3)
@example(scale=1e30, sensitivity=1.0, step=1.0, steps=0)
@settings(max_examples=300, derandomize=True)
def test_noise_that_no_grid_holds_is_refused(scale, sensitivity, step, steps):
    least, factor = steps * Fraction(step), 1 + steps * Fraction(step) / Fraction(sensitivity)
    wanted = Fraction(scale) / Fraction(step) * factor
    if least <= Fraction(sensitivity) and wanted <= WIDEST:
        assert wanted <= Fraction(widened(scale, step, sensitivity, steps)) <= WIDEST
        return
    with pytest.raises(UnsupportedError) as refused:
        widened(scale, step, sensitivity, steps)
    right = f"at least {round_up(least):g}" if least > Fraction(sensitivity) else "takes at most"
    assert right in str(refused.value)


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
