"""Moments of Poisson-sampled mechanisms, and the relations that they are proved for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import poisson, use
from scipy.integrate import quad
from scipy.stats import norm

from dpaudit.accounting.amplification import amplification
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.poisson import (
    PoissonAmplification,
    poisson_moments,
    poisson_moments_at_integers,
)
from dpaudit.accounting.orders import ORDERS, WHOLE
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    DominatingPair,
    ExponentialMechanism,
    Gaussian,
    GaussianPair,
    LaplacePair,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.plan import AddRemove, MetricBall, Relation, ReplaceOne, ZeroOut

PAIRS: list[DominatingPair] = [
    GaussianPair(0.3),
    GaussianPair(2.0),
    LaplacePair(Fraction(1, 2)),
    LaplacePair(Fraction(6)),
    approximate_pair(1.3),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.9])
def test_quadrature_agrees_with_the_binomial_sum(pair: DominatingPair, rate: float) -> None:
    whole = tuple(range(2, 17))
    by_sum = poisson_moments_at_integers(pair, rate, whole)
    by_quadrature = poisson_moments(pair, rate, np.array(whole, dtype=np.float64))
    assert by_quadrature is not None
    assert np.allclose(by_sum, by_quadrature, rtol=1e-9, atol=0)


def exact_moment(rate: float, mu: float, power: float) -> mp.mpf:
    """E_Q[r^power] by the trapezoidal rule, whose error is below e^−50 at this step."""
    q, m, step = mp.mpf(rate), mp.mpf(mu), mp.mpf(1) / 8
    points = range(-8 * 40, int(8 * (mu * max(power, 0) + 16)))
    return step * mp.fsum(
        mp.npdf(k * step) * (1 - q + q * mp.exp(m * k * step - m * m / 2)) ** power for k in points
    )


def test_the_exact_moment_is_the_integral() -> None:
    found, _ = quad(lambda x: norm.pdf(x) * (0.85 + 0.15 * math.exp(x - 0.5)) ** 3.3, -12, 20)
    assert float(exact_moment(0.15, 1.0, 3.3)) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.5])
@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.05, 1.7, 3.3, 12.0])
def test_sampled_gaussian_moments_against_mpmath(rate: float, mu: float, order: float) -> None:
    found = poisson_moments(GaussianPair(mu), rate, np.array([order]))
    with mp.workdps(30):
        remove = mp.log(exact_moment(rate, mu, order))
        add = mp.log(exact_moment(rate, mu, 1 - order))
    assert found is not None
    assert max(remove, add) <= found[0] <= float(remove) * (1 + 1e-9)


def test_moments_at_all_orders_are_convex_and_below_the_unsampled() -> None:
    for pair in PAIRS:
        moments = PoissonAmplification(0.2).log_moments(pair)
        held = np.isfinite(moments)
        unsampled = (ORDERS - 1) * pair.renyi(ORDERS)
        assert (moments <= unsampled * (1 + 1e-9) + 1e-12)[held].all()
        assert held[ORDERS <= 1024].all()
        slopes = np.diff(moments[held]) / np.diff(ORDERS[held])
        assert (np.diff(slopes) >= -1e-6 * np.abs(slopes[1:]) - 1e-9).all()


def test_orders_without_a_quadrature_lie_on_chords() -> None:
    """A pair that only says its divergences: E[r^α] is convex in α, so chords are above it."""
    known, bare = GaussianPair(1.0), Bare(GaussianPair(1.0))
    exact, found = (PoissonAmplification(0.1).log_moments(pair) for pair in (known, bare))
    assert (found >= exact * (1 - 1e-10)).all()
    whole = np.isin(ORDERS, WHOLE)
    np.testing.assert_allclose(found[whole], exact[whole], rtol=1e-12)


@dataclass(frozen=True)
class Bare(DominatingPair):
    known: GaussianPair

    def above(self, loss):
        return self.known.above(loss)

    def below(self, loss):
        return self.known.below(loss)

    def renyi(self, orders):
        return self.known.renyi(orders)

    @property
    def pure_epsilon(self):
        return math.inf


@pytest.mark.parametrize("relation", [AddRemove(), ZeroOut()])
def test_it_amplifies_units_that_are_present_or_absent(relation: Relation) -> None:
    sampled = use(Gaussian(1.0), relation=relation, sampling=poisson(0.25))
    assert amplification(sampled.sampling, sampled) == PoissonAmplification(0.25)
    whole = use(Gaussian(1.0), relation=relation, sampling=poisson(1.0))
    assert amplification(whole.sampling, whole) is None


@pytest.mark.parametrize(
    ("relation", "mechanism"),
    [
        (ReplaceOne(), Gaussian(1.0)),
        (MetricBall(1.0), Gaussian(1.0)),
        (ZeroOut(), RandomizedResponse(0.5)),
        (ZeroOut(), PureBlackBox(2.0)),
        (ZeroOut(), ExponentialMechanism(1.0)),
    ],
)
def test_of_others_it_hides_nothing(relation: Relation, mechanism: Mechanism) -> None:
    sampled = use(mechanism, relation=relation, sampling=poisson(0.25))
    assert amplification(sampled.sampling, sampled) == KnownParticipation(0.25)


def test_a_mechanism_may_say_that_zeroed_is_absent() -> None:
    @dataclass(frozen=True)
    class Sum(PureBlackBox):
        kind = "test-sum-black-box"
        zeroed_is_absent = True

    sampled = use(Sum(2.0), relation=ZeroOut(), sampling=poisson(0.25))
    assert amplification(sampled.sampling, sampled) == PoissonAmplification(0.25)


def test_of_unknown_relations_nothing_is_known() -> None:
    @dataclass(frozen=True)
    class Cousins(Relation):
        kind = "test-cousins"

    sampled = use(Gaussian(1.0), relation=Cousins(), sampling=poisson(0.25), at="x")
    with pytest.raises(UnsupportedError, match="gaussian at 'x' has poisson sampling under test-c"):
        amplification(sampled.sampling, sampled)
