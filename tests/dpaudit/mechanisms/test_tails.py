"""Tails against scipy's laws; their statistics are tested with the noise audits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpaudit.mechanisms import Tails
from dpaudit.mechanisms.tails import choice_tails, integer_tails, laplace_tails, normal_tails

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
