"""Groups that take turns in a stream, against composed sampled releases and the noise itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import compose, for_group
from dpaudit.accounting.amplification import fallback
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    ContinualGaussian,
    ContinualLaplace,
    Gaussian,
    SquareRootToeplitz,
)
from dpaudit.plan import CyclicPoissonSampling, Invocation, MetricBall, ReplaceOne, ZeroOut


def stream(factorization=None, turns=8, groups=4, sigma=2.0, **facts) -> ContinualGaussian:
    own = factorization or BandedToeplitz(turns * groups, groups)
    return ContinualGaussian(
        sigma=sigma, factorization=own, participations=turns, min_separation=groups, **facts
    )


def epsilon(one: Invocation, delta: float = 1e-6) -> float:
    return compose(plan(one)).epsilon(delta).upper


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_it_is_so_many_sampled_releases_of_a_column(rate, accountant):
    drawn = use(stream(), sampling=CyclicPoissonSampling(rate, 4))
    column = math.sqrt(1 + 0.5**2 + 0.375**2 + 0.3125**2)
    apart = use(Gaussian(2.0 / column), count=8, sampling=poisson(rate))
    found, other = (compose(plan(one), accountant).epsilon(1e-6).upper for one in (drawn, apart))
    assert found == pytest.approx(other, rel=1e-6)
    whole = compose(plan(use(stream())), accountant).epsilon(1e-6).upper
    assert found < 0.7 * whole
    assert compose(plan(drawn), accountant).epsilon(1e-6).lower is None


def test_dp_accounting_agrees():
    from dp_accounting.pld import privacy_loss_distribution as pld

    column = math.sqrt(1 + 0.5**2 + 0.375**2 + 0.3125**2)
    one = pld.from_gaussian_mechanism(2.0 / column, sampling_prob=0.1)
    theirs = one.self_compose(8).get_epsilon_for_delta(1e-6)
    drawn = use(stream(), sampling=CyclicPoissonSampling(0.1, 4))
    assert epsilon(drawn) == pytest.approx(theirs, rel=1e-3)


def test_two_turns_are_a_likelihood_ratio_of_the_real_noise():
    """δ(ε) of both coins, from the density of C x + z: of 4e5 draws, false alarm 1e-8."""
    banded, rate, sigma = BandedToeplitz(4, 2), 0.4, 1.0
    columns = banded.encoder()[:, [0, 2]].T / sigma
    rng, size = np.random.default_rng(3), 400_000
    noise, coins = rng.standard_normal((size, 4)), rng.random((size, 2)) < rate

    def ratio(nodes):
        parts = np.zeros(len(nodes))
        for coin in ((0, 0), (0, 1), (1, 0), (1, 1)):
            mean = np.array(coin) @ columns
            weight = np.prod([rate if one else 1 - rate for one in coin])
            parts += weight * np.exp(nodes @ mean - mean @ mean / 2)
        return parts

    present = ratio(noise + coins @ columns)
    mechanism = stream(banded, 2, 2, sigma)
    proved = compose(plan(use(mechanism, sampling=CyclicPoissonSampling(rate, 2))), "pld")
    for e in (0.2, 0.5, 1.0):
        lost = np.maximum(1 - math.exp(e) / present, 0)
        assert proved.delta(e).upper == pytest.approx(
            lost.mean(), abs=6 * lost.std() / math.sqrt(size) + 1e-5
        )


@pytest.mark.parametrize(
    ("mechanism", "relation"),
    [
        (stream(SquareRootToeplitz(32)), ZeroOut()),
        (stream(BinaryTree(32)), ZeroOut()),
        (stream(BandedToeplitz(32, 5)), ZeroOut()),
        (stream(), ReplaceOne()),
        (stream(), MetricBall(1.0)),
    ],
)
def test_what_no_theorem_amplifies_counts_as_drawn_and_says_so(mechanism, relation):
    drawn = use(mechanism, 1.0, relation, sampling=CyclicPoissonSampling(0.1, 4))
    assert epsilon(drawn) == epsilon(use(mechanism, 1.0, relation))
    found = fallback(drawn)
    assert found is not None
    assert "count as drawn" in found[0]


def test_replaced_units_of_one_group_are_drawn_as_is_known():
    fixed = stream(fixed_steps=True)
    drawn = use(fixed, 1.0, ReplaceOne(), sampling=CyclicPoissonSampling(0.1, 4))
    whole = epsilon(use(fixed, 1.0, ReplaceOne()))
    assert epsilon(use(stream(), sampling=CyclicPoissonSampling(0.1, 4))) < epsilon(drawn) < whole


def test_the_ends_are_streams_without_coins():
    sure = use(stream(), sampling=CyclicPoissonSampling(1.0, 4))
    assert epsilon(sure) == epsilon(use(stream()))
    assert fallback(sure) is None
    drawn = ContinualLaplace(
        scale=9.0, factorization=BandedToeplitz(8, 2), participations=4, min_separation=2
    )
    turn = 1.5 / 9.0
    pure = epsilon(use(drawn, sampling=CyclicPoissonSampling(0.1, 2)), 0.0)
    assert pure == pytest.approx(4 * math.log1p(0.1 * math.expm1(turn)), rel=1e-12)


def test_of_two_units_each_turn_counts():
    banded = BandedToeplitz(8, 2)
    noise = ContinualLaplace(scale=9.0, factorization=banded, participations=4, min_separation=2)
    drawn = plan(use(noise, sampling=CyclicPoissonSampling(0.1, 2)))
    assert for_group(drawn, 2).invocations[0].count == 4
    one, two = (compose(each).epsilon(0.0).upper for each in (drawn, for_group(drawn, 2)))
    assert two == pytest.approx(2 * one, rel=1e-9)


def test_patterns_that_the_stream_cannot_have_are_refused():
    coins = CyclicPoissonSampling(0.1, 4)
    with pytest.raises(InputError, match="gaussian has no steps that groups take in turn"):
        use(Gaussian(1.0), sampling=coins)
    with pytest.raises(InputError, match="make them 8 and 4"):
        use(stream(BandedToeplitz(32, 4), 7), sampling=coins)
