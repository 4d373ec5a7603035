"""Sequential tests: how soon they find a fault, and how often they find one in sound code.

Bets are fair or worse under the claim, and never ruinous.
The running wealth of bets against a direct product of their factors.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.auditing.evidence.eprocess import (
    PILOT_PAIRS,
    CurveEProcess,
    EpsilonEProcess,
    NullPoint,
    Wealth,
    curve_points,
    quantile_edges,
    tail_bets,
)
from dpaudit.base.errors import InputError

SIGMA = 3.7306


def laplace_curve(epsilons):
    return np.maximum(0.0, -np.expm1((epsilons - 1) / 2))


def gaussian_curve(epsilons, mu=1 / SIGMA):
    return ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)


def pairs_to_refute(sampler, curve, seeds, most):
    """Pairs until refutation at 5 %, the pilot included; inf if there was none."""
    needed = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        process, pairs = CurveEProcess(curve), math.inf
        while process.pairs < most:
            size = 64 if process.pairs == 0 else max(32, process.pairs // 16)
            process.update(sampler(generator, 1.0, size), sampler(generator, 0.0, size))
            if process.e_value >= 20:
                pairs = process.pairs
                break
        needed.append(pairs)
    return np.array(needed)


def laplace(scale):
    return lambda generator, centre, size: generator.laplace(centre, scale, size)


def normal(scale):
    return lambda generator, centre, size: generator.normal(centre, scale, size)


@pytest.mark.parametrize(
    ("sampler", "curve", "target"),
    [
        (laplace(0.5), laplace_curve, 300),
        (laplace(0.9), laplace_curve, 6000),
        (normal(SIGMA / 2), gaussian_curve, 700),
    ],
)
def test_wrong_mechanisms_are_refuted_in_time(sampler, curve, target):
    needed = pairs_to_refute(sampler, curve, 15, 20 * target)
    assert np.isfinite(needed).all()
    assert np.median(needed) <= target


@pytest.mark.parametrize(
    ("sampler", "curve"), [(laplace(1.0), laplace_curve), (normal(SIGMA), gaussian_curve)]
)
def test_correct_mechanisms_are_refuted_no_more_often_than_stated(sampler, curve):
    # 25 trials at 5 %: more than the limit has probability at most 1e-6.
    needed = pairs_to_refute(sampler, curve, 25, 1500)
    assert np.isfinite(needed).sum() <= binom.isf(1e-6, 25, 0.05)


def test_batching_changes_nothing_but_when_one_looks():
    generator = np.random.default_rng(5)
    x, y = generator.laplace(1, 0.7, 900), generator.laplace(0, 0.7, 900)
    whole, parts = CurveEProcess(laplace_curve), CurveEProcess(laplace_curve)
    whole.update(x, y)
    for start in range(0, 900, 77):
        parts.update(x[start : start + 77], y[start : start + 77])
    assert whole.pairs == parts.pairs == 900
    assert whole.e_value == pytest.approx(parts.e_value, rel=1e-9)


def test_nothing_is_staked_on_the_pilot():
    process = CurveEProcess(laplace_curve)
    process.update(np.full(PILOT_PAIRS, 9.0), np.zeros(PILOT_PAIRS))
    assert process.e_value == 1.0
    process.update(np.full(50, 9.0), np.zeros(50))
    assert process.e_value > 1e6


def test_points_of_a_pure_claim_end_at_its_epsilon():
    points = curve_points(laplace_curve)
    assert points[0].epsilon == 0.0
    assert points[-1].epsilon == pytest.approx(1.0, abs=1e-5)


def test_a_million_pairs_are_audited_within_three_seconds():
    generator = np.random.default_rng(0)
    x, y = generator.normal(1, SIGMA, 10**6), generator.normal(0, SIGMA, 10**6)
    process, start = CurveEProcess(gaussian_curve), time.process_time()
    process.update(x, y)
    assert time.process_time() - start < 3.0


def test_lower_bound_is_sound_and_informative():
    exceeded, found = 0, []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        process = EpsilonEProcess(0.0, epsilons=np.linspace(0, 1.5, 16))
        process.update(generator.laplace(1, 1, 4000), generator.laplace(0, 1, 4000))
        bound = process.lower_bound(0.95)
        found.append(bound)
        exceeded += bound > 1.0
    assert exceeded <= binom.isf(1e-6, 8, 0.05)
    assert np.median(found) >= 0.8


def test_bad_input_is_named():
    with pytest.raises(InputError, match="pairs"):
        CurveEProcess(laplace_curve).update([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="at least 0"):
        CurveEProcess(lambda e: e - 5)
    with pytest.raises(InputError, match="epsilons"):
        EpsilonEProcess(0.0, epsilons=[-1.0])


def test_every_bet_is_fair_or_worse_under_the_null_and_never_ruinous():
    points = [NullPoint(0.0, 0.2), NullPoint(0.8, 0.05, weight=0.5)]
    bets = tail_bets(points, 5)
    factors = np.exp(bets.log_factors)
    assert factors.min() > 0
    assert np.exp(bets.log_prior).sum() == pytest.approx(1.0)
    half = len(factors) // 2
    generator = np.random.default_rng(0)
    for null, family in zip(points, (factors[:half], factors[half:]), strict=True):
        for _ in range(200):
            p, q = generator.dirichlet(np.ones(5), 2)
            # Mix towards equality until every event obeys the null in both directions.
            share = 1.0
            while True:
                x, y = q + share * (p - q), q
                k = math.exp(null.epsilon)
                there = np.maximum(x - k * y, 0).sum() <= null.delta
                if there and np.maximum(y - k * x, 0).sum() <= null.delta:
                    break
                share *= 0.9
            assert np.einsum("kij,i,j->k", family, x, y).max() <= 1 + 1e-12


def test_a_null_on_its_boundary_makes_a_fair_bet():
    bets = tail_bets([NullPoint(0.0, 0.25)], 2)
    factors = np.exp(bets.log_factors)
    x, y = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    assert np.einsum("kij,i,j->k", factors, x, y).max() == pytest.approx(1.0)


def test_edges_isolate_atoms_and_ignore_minus_infinity():
    edges = quantile_edges([-np.inf, 0.0, 0.0, 0.0, 1.0, 2.0, np.inf])
    assert np.isin([0.0, np.nextafter(0.0, 1.0)], edges).all()
    assert edges[0] > -np.inf


NULL = [NullPoint(0.5, 0.05), NullPoint(1.0, 0.0, weight=0.5)]


def scores(pairs, seed=0):
    rng = np.random.default_rng(seed)
    return rng.laplace(1.0, size=pairs), rng.laplace(0.0, size=pairs)


def log_wealth_by_hand(edges, weights, x, x_prime):
    """Log of the weighted mean of products of factors, pair by pair."""
    bets = tail_bets(NULL, len(edges) + 1)
    logs = np.log(weights(bets))
    for one, two in zip(x, x_prime, strict=True):
        cell = [int(np.searchsorted(edges, score, side="right")) for score in (one, two)]
        logs = logs + bets.log_factors[:, cell[0], cell[1]]
    return float(np.logaddexp.reduce(logs))


def test_a_pilot_sets_edges_and_weights_and_stakes_nothing():
    x, x_prime = scores(150)
    wealth = Wealth([NULL])
    wealth.update(x[:50], x_prime[:50])
    assert wealth.edges is None
    wealth.update(x[50:64], x_prime[50:64])
    edges = quantile_edges(np.concatenate([x[:64], x_prime[:64]]))
    np.testing.assert_array_equal(wealth.edges, edges)
    assert wealth.log_wealth[0] == wealth.log_peak[0] == 0.0
    for start in range(64, 150, 33):
        wealth.update(x[start : start + 33], x_prime[start : start + 33])

    def weights(bets):
        gained = [
            log_factor_sum(bets, edges, number, x[:64], x_prime[:64])
            for number in range(bets.log_prior.size)
        ]
        won = np.exp(bets.log_prior + np.array(gained))
        return won / won.sum()

    by_hand = log_wealth_by_hand(edges, weights, x[64:], x_prime[64:])
    assert wealth.log_wealth[0] == pytest.approx(by_hand)
    assert wealth.log_peak[0] >= max(0.0, wealth.log_wealth[0])
    assert wealth.pairs == 150


def log_factor_sum(bets, edges, number, x, x_prime):
    first, second = (np.searchsorted(edges, side, side="right") for side in (x, x_prime))
    return float(bets.log_factors[number, first, second].sum())


def test_bad_pairs_are_named():
    with pytest.raises(InputError, match="scores_x has 2 runs and scores_x_prime has 1"):
        Wealth([NULL]).update([1.0, 2.0], [1.0])
