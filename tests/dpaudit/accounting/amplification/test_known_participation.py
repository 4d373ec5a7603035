"""Samples whose members may be known, against enumeration and binomial mixtures."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from scipy.stats import binom

from dpaudit.accounting import compose
from dpaudit.accounting.amplification.known_participation import KnownPair, KnownParticipation
from dpaudit.accounting.pld.accountant import compose_terms
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DiscreteLaplace,
    DominatingPair,
    GaussianPair,
    Laplace,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import Relation, ReplaceOne, ZeroOut

EPSILONS = np.linspace(-3, 3, 61)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    return np.maximum(p[None, :] - np.exp(epsilons)[:, None] * q[None, :], 0).sum(axis=1)


def number_and_answer(data: tuple[int, ...], rate: float, p: float) -> np.ndarray:
    """How many of the units are drawn, and a randomised answer to whether their sum is odd."""
    law = np.zeros((len(data) + 1, 2))
    for drawn in product((0, 1), repeat=len(data)):
        chance = math.prod(rate if one else 1 - rate for one in drawn)
        odd = sum(value for value, one in zip(data, drawn, strict=True) if one) % 2
        law[sum(drawn), odd] += chance * (1 - p / 2)
        law[sum(drawn), 1 - odd] += chance * p / 2
    return law.ravel()


@pytest.mark.parametrize("relation", [ZeroOut(), ReplaceOne()])
def test_who_shows_how_many_were_drawn_is_not_amplified(relation: Relation) -> None:
    """With (|S|, randomised response of ε = 2) ε stays 2: a single unit is drawn, or it is not."""
    box = RandomizedResponse.calibrated(epsilon=2.0)
    p, rate = box.p, 0.01
    declared = use(PureBlackBox(2.0), relation=relation, sampling=poisson(rate))
    composed = compose(plan(declared))
    assert composed.epsilon(0.0).upper == 2
    with_data, zeroed = (number_and_answer((bit,), rate, p) for bit in (1, 0))
    ratio = np.log(with_data[with_data > 0] / zeroed[zeroed > 0])
    assert ratio.max() == pytest.approx(2, rel=1e-12)
    pair = KnownPair(PureBlackBox(2.0).pair(1), rate)
    np.testing.assert_allclose(
        pair.delta(EPSILONS), hockey_stick(with_data, zeroed, EPSILONS), atol=1e-12
    )
    others = [number_and_answer((bit, 1, 0), 0.3, p) for bit in (1, 0)]
    wider = KnownPair(PureBlackBox(2.0).pair(1), 0.3).delta(EPSILONS)
    assert (hockey_stick(*others, EPSILONS) <= wider + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_gaussian_steps_are_as_many_as_the_unit_is_drawn_for(epsilon: float) -> None:
    """Of n steps a binomial number has noise of its own, and k of them are one of √k μ."""
    mu, rate, steps = 0.7, 0.1, 20
    term = DirectedTerm(KnownPair(GaussianPair(mu), rate), steps)
    found = compose_terms([term], [term]).delta(epsilon)
    drawn = np.arange(1, steps + 1)
    deltas = [float(GaussianPair(mu * math.sqrt(k)).delta(epsilon)) for k in drawn]
    truth = float(binom.pmf(drawn, steps, rate) @ deltas)
    assert found.lower is not None
    assert found.lower <= truth <= found.upper <= truth * 1.01


@pytest.mark.parametrize(
    "base",
    [
        RandomizedResponse(0.4, 3).pair(1),
        DiscreteLaplace(2.0).pair(2),
        Laplace(1.3).pair(1.0),
        GaussianPair(1.1),
        ApproximateBlackBox(0.5, 0.1).pair(1),
    ],
)
def test_the_pair_is_a_mixture_with_nothing(base: DominatingPair) -> None:
    pair = KnownPair(base, 0.25)
    losses = np.array([-2.0, -0.1, 0.0, 0.1, 2.0])
    for mine, theirs, atom in (
        (pair.above(losses), base.above(losses), losses < 0),
        (pair.below(losses), base.below(losses), losses >= 0),
    ):
        for own, of_base in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(own, 0.25 * of_base + 0.75 * atom, rtol=1e-14)
    assert (np.diff(pair.nodes(1e-9, 5)) > 0).all()
    assert 0.0 in pair.nodes(1e-9, 5)


def test_two_laplace_uses_against_their_convolution() -> None:
    """δ of both drawn, of one and of none, of which the first is an integral over its loss."""
    base, rate, epsilon = Laplace(1.0).pair(1.0), 0.4, 0.5
    term = DirectedTerm(KnownPair(base, rate), 2)
    found = compose_terms([term], [term]).delta(epsilon)
    noise = np.linspace(-16, 17, 1_651)
    one, other = np.exp(-np.abs(noise - 1)) / 2, np.exp(-np.abs(noise)) / 2
    step = noise[1] - noise[0]
    gap = np.outer(one, one) - math.exp(epsilon) * np.outer(other, other)
    twice = np.maximum(gap, 0).sum() * step**2
    truth = rate**2 * twice + 2 * rate * (1 - rate) * float(base.delta(epsilon))
    assert found.upper == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("accountant", ["pure", "zcdp", "rdp", "moments", "best"])
def test_no_accountant_is_below_the_truth_of_one_use(accountant: str) -> None:
    declared = use(Laplace(1.0), relation=ReplaceOne(), sampling=poisson(0.1))
    composed = compose(plan(declared), accountant)
    for epsilon in (0.0, 0.3, 0.9):
        truth = 0.1 * float(Laplace(1.0).pair(1.0).delta(epsilon))
        assert composed.delta(epsilon).upper >= truth


def test_moments_are_those_of_the_mixture() -> None:
    drawn, pair = KnownParticipation(0.2), GaussianPair(1.5)
    orders = (2, 3, 30)
    kappa = [(order - 1) * float(pair.renyi(order)) for order in orders]
    wanted = np.logaddexp(math.log(0.8), math.log(0.2) + np.array(kappa))
    np.testing.assert_allclose(drawn.integer_moments(pair, orders), wanted, rtol=1e-10)
