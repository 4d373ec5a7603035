"""Answers of any kind: what is true of them, by closed forms and enumeration."""

import math

import numpy as np
import pytest

from audits.catalogue import answers
from audits.catalogue.answers import SHOWN, THREE, TWO, drink, histogram, refuses, threshold
from dpaudit import DiscreteLaplace

RUNS = 20_000
FALSE_ALARM = 5.0
"""Standard deviations: a chance below 1e-6 for each."""


def share(answer, data, holds):
    rng = np.random.default_rng(1)
    return np.mean([holds(answer(data, rng)) for _ in range(RUNS)])


def near(chance):
    return pytest.approx(chance, abs=FALSE_ALARM * math.sqrt(chance * (1 - chance) / RUNS))


def test_every_kind_is_there_right_and_wrong():
    assert len(answers.WRONG) >= 10
    assert len(answers.RIGHT) >= 10
    assert all(each.answer is not None for each in (*answers.WRONG, *answers.RIGHT))


def test_a_name_of_one_record_is_above_the_threshold_with_probability_delta():
    for delta in (0.5, 0.05, 1e-5):
        above = math.exp(1 - threshold(delta)) / 2  # of Lap(1), at 0 or more
        assert above == pytest.approx(delta)
    shown = histogram(threshold(SHOWN))
    assert share(shown, THREE, lambda output: "c" in output) == near(SHOWN)
    assert share(shown, TWO, lambda output: "c" in output) == 0


def test_sentences_have_the_odds_that_are_stated():
    right = drink(math.e)
    true = share(right, "tea", lambda output: "tea" in output)
    false = share(right, "water", lambda output: "tea" in output)
    assert true == near(math.e / (math.e + 3))
    assert false == near(1 / (math.e + 3))


def test_exceptions_have_the_odds_that_are_stated():
    def raises(bit):
        rng, raised = np.random.default_rng(2), 0
        for _ in range(RUNS):
            try:
                refuses(math.e)(bit, rng)
            except ValueError:
                raised += 1
        return raised / RUNS

    assert raises(1) == near(math.e / (1 + math.e))
    assert raises(0) == near(1 / (1 + math.e))


def test_geometric_noise_has_the_law_of_the_discrete_laplace_mechanism():
    rng = np.random.default_rng(3)
    drawn = np.array([answers.geometric(rng, 2.0) for _ in range(RUNS)])
    same = DiscreteLaplace(0.5).release_many(0, RUNS, rng)
    none = math.tanh(1.0)  # P(0) = (1 - a) / (1 + a), a = exp(-2)
    assert np.mean(drawn == 0) == near(none)
    assert np.mean(same == 0) == near(none)
    assert np.mean(drawn == 1) == near(none * math.exp(-2))
