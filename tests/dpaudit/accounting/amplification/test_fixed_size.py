"""Fixed-size samples against enumeration, closed forms and integrals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, use
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit.accounting import amplification, compose
from dpaudit.accounting.amplification.fixed_size import (
    FixedSizeAmplification,
    ReplacedPair,
    fixed_size_moments,
)
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import MOST
from dpaudit.mechanisms import (
    Gaussian,
    GaussianPair,
    LaplacePair,
    RandomizedResponse,
)
from dpaudit.plan import AddRemove, FixedSizeSampling, MetricBall, ReplaceOne, ZeroOut

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
