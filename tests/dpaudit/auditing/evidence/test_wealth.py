"""The running wealth of bets against a direct product of their factors."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing.evidence.eprocess import NullPoint, Wealth, quantile_edges, tail_bets
from dpaudit.base.errors import InputError

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


def test_bad_input_is_named():
    with pytest.raises(InputError, match="scores_x has 2 runs and scores_x_prime has 1"):
        Wealth([NULL]).update([1.0, 2.0], [1.0])
