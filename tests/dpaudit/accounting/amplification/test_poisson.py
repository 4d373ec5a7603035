"""Poisson samples: their pairs, their moments, and the integrals that these are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import poisson, use
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mechanism_conformance import BarePair
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from dpaudit.accounting.amplification import amplification
from dpaudit.accounting.amplification.base import log_moment, log_ratio
from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.mixtures import quadrature
from dpaudit.accounting.amplification.poisson import (
    PoissonAmplification,
    poisson_moments,
    poisson_moments_at_integers,
)
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.orders import ORDERS, WHOLE
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    DominatingPair,
    ExponentialMechanism,
    FinitePair,
    Gaussian,
    GaussianPair,
    LaplacePair,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.plan import AddRemove, MetricBall, Relation, ReplaceOne, ZeroOut

# Moments of Poisson-sampled mechanisms, and the relations that they are proved for

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
    known, bare = GaussianPair(1.0), BarePair(GaussianPair(1.0))
    exact, found = (PoissonAmplification(0.1).log_moments(pair) for pair in (known, bare))
    assert (found >= exact * (1 - 1e-10)).all()
    whole = np.isin(ORDERS, WHOLE)
    np.testing.assert_allclose(found[whole], exact[whole], rtol=1e-12)


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


# Poisson-sampled pairs against enumeration of the distributions that they stand for

EPSILONS = np.linspace(-3, 3, 61)
BASES = [
    GaussianPair(0.7),
    LaplacePair(Fraction(3, 2)),
    RandomizedResponse(0.4, 3).pair(1),
    approximate_pair(1.0, 0.05),
]


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    return np.maximum(p[None, :] - np.exp(epsilons)[:, None] * q[None, :], 0).sum(axis=1)


def outputs(pair: FinitePair) -> tuple[np.ndarray, np.ndarray]:
    """P and Q as distributions over outputs, those of infinite loss either way included."""
    return (
        np.concatenate([[0.0], pair.p, [pair.p_infinite]]),
        np.concatenate([[pair.p_infinite], pair.q, [0.0]]),
    )


@pytest.mark.parametrize("base", BASES[2:])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.99])
def test_sampled_finite_pairs_match_enumeration(base: FinitePair, rate: float) -> None:
    p, q = outputs(base)
    mixed = rate * p + (1 - rate) * q
    np.testing.assert_allclose(
        RemovedPair(base, rate).delta(EPSILONS), hockey_stick(mixed, q, EPSILONS), atol=1e-12
    )
    np.testing.assert_allclose(
        AddedPair(base, rate).delta(EPSILONS), hockey_stick(q, mixed, EPSILONS), atol=1e-12
    )


@pytest.mark.parametrize("base", BASES[2:])
@pytest.mark.parametrize("kind", [RemovedPair, AddedPair])
def test_atoms_carry_the_tails(base: FinitePair, kind: type[RemovedPair]) -> None:
    pair = kind(base, 0.3)
    found = pair.atoms()
    assert found is not None
    losses, masses = found
    assert masses.sum() + pair.infinite == pytest.approx(1, abs=1e-14)
    between = (losses[1:] + losses[:-1])[np.diff(losses) > 1e-9] / 2
    above = [masses[losses > loss].sum() + pair.infinite for loss in between]
    np.testing.assert_allclose(pair.above(between)[0], above, atol=1e-14)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", [RemovedPair, AddedPair, ReplacedPair])
def test_tails_are_complementary_and_monotone(
    base: DominatingPair, kind: type[RemovedPair]
) -> None:
    pair = kind(base, 0.2)
    for above, below in zip(pair.above(EPSILONS), pair.below(EPSILONS), strict=True):
        np.testing.assert_allclose(above + below, 1, atol=1e-14)
        assert (np.diff(above) <= 1e-15).all()


@pytest.mark.parametrize("base", BASES[:2])
def test_adding_reverses_removing(base: DominatingPair) -> None:
    # H_α(Q‖P) = 1 − α + α H_{1/α}(P‖Q).
    remove, add = RemovedPair(base, 0.2), AddedPair(base, 0.2)
    reverse = 1 - np.exp(EPSILONS) + np.exp(EPSILONS) * remove.delta(-EPSILONS)
    np.testing.assert_allclose(add.delta(EPSILONS), reverse, atol=1e-12)


@given(rate=st.floats(1e-6, 0.999), loss=st.floats(-30, 300))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_removed_gaussian_is_the_mixture(rate: float, loss: float) -> None:
    pair, base = RemovedPair(GaussianPair(1.0), rate), GaussianPair(1.0)
    mapped = (
        math.log1p(-rate)
        if loss < -700
        else float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))
    )
    p, q = base.above(loss)
    np.testing.assert_allclose(
        pair.above(mapped), (rate * p + (1 - rate) * q, q), rtol=1e-6, atol=1e-9
    )


def test_loss_bounds() -> None:
    base = LaplacePair(Fraction(2))
    assert RemovedPair(base, 0.1).max_loss == pytest.approx(math.log(0.9 + 0.1 * math.e**2))
    assert AddedPair(base, 0.1).max_loss == pytest.approx(-math.log(0.9 + 0.1 * math.e**-2))
    assert AddedPair(GaussianPair(1.0), 0.1).max_loss == pytest.approx(-math.log(0.9))
    assert RemovedPair(GaussianPair(1.0), 0.1).max_loss == math.inf


# Logarithms of moments, where floats are scarce


@settings(max_examples=100, derandomize=True)
@given(loss=st.floats(-800, 800), rate=st.floats(1e-9, 0.999999))
@example(loss=0.0, rate=0.5)
@example(loss=30.0, rate=1e-9)
@example(loss=30.0000001, rate=1e-9)
def test_the_ratio_is_that_of_the_mixture(loss: float, rate: float) -> None:
    with mp.workdps(60):
        exact = float(mp.log1p(mp.mpf(rate) * mp.expm1(loss)))
    assert float(log_ratio(np.array(loss), rate)) == pytest.approx(exact, rel=1e-12, abs=1e-300)


@settings(max_examples=60, derandomize=True)
@given(
    order=st.floats(1.00001, 60),
    tilt=st.floats(1e-9, 40),
    share=st.floats(1e-6, 0.5),
)
@example(order=1.00001, tilt=1e-9, share=0.5)
@example(order=16.0, tilt=40.0, share=1e-6)
def test_moments_of_two_values_are_exact_and_rounded_up(
    order: float, tilt: float, share: float
) -> None:
    """r is e^t with probability s, and less than 1 otherwise, so that its mean is 1."""
    with mp.workdps(60):
        s, high = mp.mpf(share) * mp.exp(-tilt), mp.exp(mp.mpf(tilt))
        low = (1 - s * high) / (1 - s)
        exact = mp.log(s * high**order + (1 - s) * low**order)
        logs = np.array([tilt, float(mp.log(low))])
        masses = np.array([float(mp.log(s)), float(mp.log1p(-s))])
    (found,) = log_moment(np.array([order]), logs, masses)
    assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-18)


def test_tiny_moments_keep_their_relative_accuracy() -> None:
    """r = 1 ± x with equal chances: ln(1 + α(α − 1)x²/2 + …)."""
    for x in (1e-4, 1e-7, 1e-12):
        logs, masses = np.log1p([x, -x]), np.full(2, math.log(0.5))
        (found,) = log_moment(np.array([2.5]), logs, masses)
        assert found == pytest.approx(2.5 * 1.5 / 2 * x * x, rel=1e-6)


# Rules against closed forms of the moments that they integrate

QUADRATURE_PAIRS: list[DominatingPair] = [
    GaussianPair(0.1),
    GaussianPair(3.0),
    LaplacePair(Fraction(1, 5)),
    LaplacePair(Fraction(9)),
    RandomizedResponse(0.3, 4).pair(1),
]


@pytest.mark.parametrize("pair", QUADRATURE_PAIRS)
@pytest.mark.parametrize("split", [False, True])
def test_moments_of_the_unsampled_ratio_are_the_divergences(
    pair: DominatingPair, split: bool
) -> None:
    orders = np.array([1.2, 2.0, 7.5, 16.0])
    rule = quadrature(pair, 16.0, split=split)
    assert rule is not None
    losses, log_q = rule
    assert logsumexp(log_q) == pytest.approx(0.0, abs=1e-12)
    found = logsumexp(orders[:, None] * losses + log_q, axis=1)
    np.testing.assert_allclose(found, (orders - 1) * pair.renyi(orders), rtol=1e-10)


@pytest.mark.parametrize("pair", QUADRATURE_PAIRS[:4])
def test_a_split_rule_integrates_a_kink(pair: DominatingPair) -> None:
    """E_Q[(e^L − 1)₊] is δ(0)."""
    rule = quadrature(pair, 8.0, split=True)
    assert rule is not None
    losses, log_q = rule
    found = (np.maximum(np.expm1(losses), 0) * np.exp(log_q)).sum()
    assert found == pytest.approx(float(pair.delta(0.0)), rel=1e-9)


def test_pairs_beyond_a_rule_have_none() -> None:
    assert quadrature(GaussianPair(0.0), 16.0) is None
    assert quadrature(GaussianPair(100.0), 16.0) is None
    assert quadrature(LaplacePair(Fraction(1000)), 16.0) is None
    assert quadrature(approximate_pair(1.0, 0.1), 16.0) is None


def test_other_pairs_have_a_rule_once_it_is_registered() -> None:
    @dataclass(frozen=True)
    class Shifted(GaussianPair):
        """One more normal pair."""

    @quadrature.register(Shifted)
    def _(pair: Shifted, top: float, *, split: bool = False) -> None:
        return None

    assert quadrature(Shifted(1.0), 16.0) is None
    assert quadrature(GaussianPair(1.0), 16.0) is not None
