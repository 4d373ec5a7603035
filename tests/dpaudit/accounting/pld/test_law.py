"""Both ends of a law against sums over the very masses that it was made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.pld.engine import compose_on, plan_grid
from dpaudit.accounting.pld.law import ComposedLaw, Frame
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import DiscreteLaplace, RandomizedResponse


def composed(pair, count: int, delta: float) -> ComposedLaw:
    terms = [DirectedTerm(PlainPair(pair), count)]
    grid = plan_grid(terms, delta, 1e-3)
    assert grid is not None
    return compose_on(grid, terms)


def exact_curve(pair, count: int, epsilons: np.ndarray) -> np.ndarray:
    """By convolution of the atoms on their lattice."""
    step = np.diff(pair.losses).min()
    places = np.rint((pair.losses - pair.losses[0]) / step).astype(int)
    single = np.zeros(places[-1] + 1)
    single[places] = pair.p
    masses = np.ones(1)
    for _ in range(count):
        masses = np.convolve(masses, single)
    losses = count * pair.losses[0] + step * np.arange(len(masses))
    gains = np.maximum(-np.expm1(epsilons[:, None] - losses), 0)
    return gains @ masses


@pytest.mark.parametrize(
    ("pair", "count"),
    [(RandomizedResponse(0.6).pair(1), 40), (DiscreteLaplace(3.0).pair(2), 40)],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_ends_enclose_the_convolution(pair, count: int, delta: float) -> None:
    law = composed(pair, count, delta)
    upper = law.epsilon_upper(delta)
    lower = law.epsilon_lower(delta, upper)
    exact = exact_curve(pair, count, np.array([lower, upper]))
    assert exact[0] >= delta >= exact[1] * (1 - 1e-9)
    assert upper - lower < 5e-3 * upper
    for epsilon in np.linspace(0.5, 1.5, 9) * upper:
        (truth,) = exact_curve(pair, count, np.array([epsilon]))
        assert law.delta_lower(epsilon) <= truth * (1 + 1e-9)
        assert truth <= law.delta_upper(epsilon) * (1 + 1e-9)


def test_beyond_what_a_law_shows_its_ends_are_trivial() -> None:
    law = composed(RandomizedResponse(0.6).pair(1), 10, 1e-6)
    assert law.epsilon_upper(0.0) == math.inf
    assert law.delta_upper(-1e9) == 1.0
    assert law.delta_lower(1e9) == 0.0


@pytest.mark.parametrize("theta", [0.0, 2.0])
def test_discounted_sums_are_those_of_their_definition(theta: float) -> None:
    frame = Frame(-40, 900, 0.7, theta, 100.0)
    masses = np.random.default_rng(0).random(len(frame.points))
    steps = np.arange(len(masses))
    direct = [
        (masses[k:] * np.exp(-0.7 * (steps[k:] - k))).sum() for k in range(0, len(masses), 37)
    ]
    np.testing.assert_allclose(frame.discounted_sums(masses)[::37], direct, rtol=1e-12)
    np.testing.assert_allclose(frame.weights, np.exp(-theta * (frame.points - 100.0)))
