"""Bets are fair or worse under the claim, and never ruinous."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.auditing.evidence.eprocess import NullPoint, quantile_edges, tail_bets


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
