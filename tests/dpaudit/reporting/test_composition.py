"""The loss over time, against closed forms."""

import math
from itertools import pairwise

import pytest
from guarantees import certificate_of, gaussian_epsilon

from dpaudit import Gaussian, Laplace
from dpaudit.base.numbers import up
from dpaudit.reporting.composition import growth

ROOT = 1e-13
"""How far the root of the closed form, which is searched for, may lie above the true one."""


def test_growth_in_closed_form():
    grown = growth(certificate_of(Gaussian(8.0), count=40))
    assert grown.within[0].uses == 1
    assert [step.runs for step in grown.within] == [0] * (len(grown.within) - 1) + [1]
    assert [step.uses for step in grown.beyond] == [80, 120, 200, 400]
    for step in (*grown.within, *grown.beyond):
        exact = gaussian_epsilon(math.sqrt(step.uses) / 8.0)
        assert exact - ROOT <= step.epsilon <= exact * (1 + 1e-6)


def test_growth_follows_the_order_of_the_plan():
    grown = growth(certificate_of(Laplace(1.0), Laplace(2.0), Laplace(4.0)))
    assert [step.epsilon for step in grown.within] == pytest.approx([1, 1.5, 1.75])
    assert [step.part for step in grown.within] == ["a part", "a part", "all of it"]
    assert grown.beyond[0].epsilon == pytest.approx(3.5)


def test_growth_ends_at_the_guarantee(certificates):
    for kind in ("certified", "exceeded", "scripts", "thousand"):
        made = certificates[kind]
        grown = growth(made)
        assert grown.within[-1].epsilon == made.guarantee.epsilon
        assert up(grown.within[-1].epsilon) == up(made.guarantee.epsilon)
        epsilons = [step.epsilon for step in (*grown.within, *grown.beyond)]
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(epsilons))
        assert len(epsilons) <= 20
