"""Samples of a fixed size, and who is drawn where that is known."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import PlainPair, amplification
from dpaudit.accounting.amplification.fixed_size import (
    FixedSizeAmplification,
    ReplacedPair,
    fixed_size_moments,
)
from dpaudit.accounting.amplification.known_kind import (
    RevealedAmplification,
    RevealedPair,
    TimesPair,
)
from dpaudit.accounting.amplification.known_participation import KnownPair, KnownParticipation
from dpaudit.accounting.pld.accountant import compose_terms
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import MOST
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DiscreteLaplace,
    DominatingPair,
    Gaussian,
    GaussianPair,
    Laplace,
    LaplacePair,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import AddRemove, FixedSizeSampling, MetricBall, Relation, ReplaceOne, ZeroOut

# Fixed-size samples against enumeration, closed forms and integrals

EPSILONS = np.linspace(-3, 3, 61)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    return np.maximum(p[None, :] - np.exp(epsilons)[:, None] * q[None, :], 0).sum(axis=1)


def _responses(p: float, k: int) -> np.ndarray:
    return np.full((k, k), p / k) + (1 - p) * np.eye(k)


def test_fixed_size_replacement_dominates_every_pair_of_neighbours() -> None:
    """A randomised answer to the sum of 2 of 4 units, each 0 or 1, over all data sets."""
    p, answers = 0.3, 3
    rows = _responses(p, answers)
    pair = ReplacedPair(RandomizedResponse(p, answers).pair(1), 0.5)
    subsets = list(combinations(range(4), 2))

    def released(data: tuple[int, ...]) -> np.ndarray:
        return np.mean([rows[sum(data[i] for i in subset)] for subset in subsets], axis=0)

    bound = pair.delta(EPSILONS)
    for data in product((0, 1), repeat=4):
        for unit in range(4):
            other = tuple(1 - v if i == unit else v for i, v in enumerate(data))
            assert (hockey_stick(released(data), released(other), EPSILONS) <= bound + 1e-12).all()


def test_fixed_size_replacement_is_attained() -> None:
    """Whether one marked unit is in the sample, answered at random: no better pair exists."""
    p, rate = 0.3, 0.5
    rows = _responses(p, 2)
    marked, plain = rate * rows[1] + (1 - rate) * rows[0], rows[0]
    pair = ReplacedPair(RandomizedResponse(p, 2).pair(1), rate)
    epsilons = EPSILONS[EPSILONS >= 0]
    attained = hockey_stick(marked, plain, epsilons)
    np.testing.assert_allclose(pair.delta(epsilons), attained, atol=1e-12)


def test_fixed_size_moments_lie_between_an_example_and_the_unsampled() -> None:
    # One record of ten is drawn and released with noise: neighbours differ in one record.
    pair, rate = GaussianPair(2.0), 0.1
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    found = fixed_size_moments(pair, rate, orders)
    x = np.linspace(-15, 30, 400_001)
    step = x[1] - x[0]
    density = [np.exp(-((x - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (0.0, 2.0)]
    mixed = (1 - rate) * density[0] + rate * density[1]
    assert found is not None
    for order, moment in zip(orders, found, strict=True):
        example = math.log(np.sum((mixed / density[0]) ** order * density[0]) * step)
        assert example <= moment <= (order - 1) * float(pair.renyi(order))
        assert moment <= 3 * example


def test_fixed_size_profile_integral_equals_its_definition() -> None:
    pair, rate, order = LaplacePair(Fraction(3, 2)), 0.3, 3.5
    found = fixed_size_moments(pair, rate, np.array([order]))

    def profile(t: float) -> float:
        if t >= 1:
            return rate * float(pair.delta(math.log(1 + (t - 1) / rate)))
        s = 1 / t
        return 1 - t + t * rate * float(pair.delta(math.log(1 + (s - 1) / rate)))

    with mp.workdps(20):
        integral = mp.quad(
            lambda t: t ** (order - 2) * (profile(float(t)) - max(1 - t, 0)),
            [1e-9, 0.2, 0.4, 0.6, 0.8, 1, 1.3, 1.6, 2, 2.5, 3],
        )
    assert found is not None
    assert float(mp.log1p(order * (order - 1) * integral)) == pytest.approx(found[0], rel=1e-4)


def _subset(sigma: float, size: int, population: int, count: int = 1):  # type: ignore[no-untyped-def]
    drawn = FixedSizeSampling(size, population)
    return plan(use(Gaussian(sigma), 1.0, ReplaceOne(), sampling=drawn, count=count))


@pytest.mark.parametrize(
    ("sigma", "size", "population", "count"),
    [(4.0, 50, 100, 5), (1.71, 1009, 1700, 23), (0.55, 3, 1900, 90), (5.9, 1899, 1900, 1)],
)
def test_fixed_size_samples_of_any_rate_have_an_interval(
    sigma: float, size: int, population: int, count: int
) -> None:
    steps = _subset(sigma, size, population, count)
    interval = compose(steps, "pld").epsilon(1e-5)
    assert 0 < interval.upper <= compose(steps, "rdp").epsilon(1e-5).upper
    if count > 1:  # no neighbours have gains and losses of the pair in every use
        assert interval.lower is None
        return
    assert interval.lower is not None
    assert interval.upper - interval.lower <= 5e-3 * max(interval.upper, 1e-2)


def test_one_fixed_size_sample_against_its_curve_in_closed_form() -> None:
    sigma, rate, delta = 4.0, 0.5, 1e-3

    def exact(epsilon: float) -> float:
        base = math.log1p(math.expm1(epsilon) / rate)
        plain = ndtr(0.5 / sigma - sigma * base) - math.exp(base) * ndtr(
            -0.5 / sigma - sigma * base
        )
        return rate * float(plain)

    interval = compose(_subset(sigma, 50, 100), "pld").epsilon(delta)
    truth = brentq(lambda epsilon: exact(epsilon) - delta, 1e-9, 5, xtol=1e-14)
    assert interval.lower is not None
    assert interval.lower <= truth <= interval.upper * (1 + 1e-12)


def test_two_fixed_size_samples_against_a_double_integral() -> None:
    """δ = E δ₁(ε − L) over the loss L of the first use, by the law of the symmetric pair."""
    sigma, rate, delta = 2.0, 0.3, 1e-4
    shift = 1 / sigma

    def tail(loss: float) -> tuple[float, float]:
        # Of (1 − q) Q + q P against Q from loss 0 on; by symmetry, reversed, below.
        if loss < math.log1p(-rate):
            return 1.0, 1.0
        base = math.log1p(math.expm1(loss) / rate)
        p, q = ndtr(shift / 2 - base / shift), ndtr(-shift / 2 - base / shift)
        return float(rate * p + (1 - rate) * q), float(q)

    def curve(epsilon: float) -> float:
        if epsilon < 0:
            return -math.expm1(epsilon) + math.exp(epsilon) * curve(-epsilon)
        p, q = tail(epsilon)
        return p - math.exp(epsilon) * q

    def density(loss: float) -> float:
        """Of L > 0 under Q."""
        base = math.log1p(math.expm1(loss) / rate)
        slope = math.exp(loss) / (rate + math.expm1(loss))
        z = base / shift + shift / 2
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / shift * slope

    def composed(epsilon: float) -> float:
        p, q = tail(0.0)
        above = quad(
            lambda loss: math.exp(loss) * density(loss) * curve(epsilon - loss),
            0.0,
            6.0,
            points=[epsilon],
            epsabs=1e-13,
            limit=200,
        )[0]
        below = quad(
            lambda loss: density(loss) * curve(epsilon + loss), 0.0, 6.0, epsabs=1e-13, limit=200
        )[0]
        return float(above + below + (1 - p - q) * curve(epsilon))

    interval = compose(_subset(sigma, 30, 100, 2), "pld").epsilon(delta)
    truth = brentq(lambda epsilon: composed(epsilon) - delta, 0.2, 4, xtol=1e-10)
    assert interval.lower is None
    assert truth <= interval.upper * (1 + 1e-7) < truth * (1 + 2e-3)


def test_it_amplifies_replacement_alone() -> None:
    sampled = use(Gaussian(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(1, 3))
    drawn = amplification(sampled.sampling, sampled)
    assert isinstance(drawn, FixedSizeAmplification)
    assert Fraction(1, 3) <= Fraction(drawn.rate) <= Fraction(1, 3) * (1 + Fraction(1, 2**50))
    whole = use(Gaussian(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(7, 7))
    assert amplification(whole.sampling, whole) is None
    nearly = use(Gaussian(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(MOST - 1, MOST))
    drawn = amplification(nearly.sampling, nearly)
    assert 1 - Fraction(1, MOST) <= Fraction(drawn.rate) < 1  # no count rounds a rate to 1
    for relation in (ZeroOut(), MetricBall(1.0)):
        other = use(Gaussian(1.0), 1.0, relation, sampling=FixedSizeSampling(1, 3))
        assert isinstance(amplification(other.sampling, other), KnownParticipation)
    other = use(Gaussian(1.0), 1.0, AddRemove(), sampling=FixedSizeSampling(1, 3), at="x")
    with pytest.raises(UnsupportedError, match=r"'x' has fixed-size .* under replace-one\."):
        amplification(other.sampling, other)


# Samples whose members may be known, against enumeration and binomial mixtures


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


ONE, TWO = GaussianPair(0.5), GaussianPair(2.0)
LOSSES = np.linspace(-4, 6, 41)


def test_tails_and_curves_are_averages() -> None:
    for mixed in (
        RevealedPair(((0.9, PlainPair(ONE)), (0.1, PlainPair(TWO)))),
        TimesPair(((0.9, ONE), (0.1, TWO))),
    ):
        expected = 0.9 * ONE.delta(LOSSES) + 0.1 * TWO.delta(LOSSES)
        np.testing.assert_allclose(mixed.delta(LOSSES), expected, atol=1e-14)
        for above, below in zip(mixed.above(LOSSES), mixed.below(LOSSES), strict=True):
            np.testing.assert_allclose(above + below, 1, atol=1e-14)


def test_moments_are_averages() -> None:
    orders = np.array([1.5, 2.0, 9.0])
    mixed = TimesPair(((0.9, ONE), (0.1, TWO)))
    each = [np.exp((orders - 1) * pair.renyi(orders)) for pair in (ONE, TWO)]
    expected = np.log(0.9 * each[0] + 0.1 * each[1]) / (orders - 1)
    np.testing.assert_allclose(mixed.renyi(orders), expected, rtol=1e-9)


def test_the_dearest_kind_decides_the_pure_loss() -> None:
    one, two = Laplace(1.0).pair(1.0), Laplace(1.0).pair(2.0)
    assert TimesPair(((0.9, one), (0.1, two))).pure_epsilon == 2
    kinds = tuple((0.5, FixedSizeAmplification(rate), two) for rate in (0.1, 0.4))
    drawn = RevealedAmplification(0.4, kinds)
    assert drawn.epsilon(2.0) == pytest.approx(np.log1p(0.4 * np.expm1(2)))
    assert drawn.directed(two)[0].max_loss == pytest.approx(np.log1p(0.4 * np.expm1(2)))
