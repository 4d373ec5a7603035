"""Poisson-sampled pairs against enumeration of the distributions that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.mechanisms import (
    DominatingPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    RandomizedResponse,
    approximate_pair,
)

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
