"""Rules against closed forms of the moments that they integrate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from dpaudit.accounting.amplification.quadrature import quadrature
from dpaudit.mechanisms import (
    DominatingPair,
    GaussianPair,
    LaplacePair,
    RandomizedResponse,
    approximate_pair,
)

PAIRS: list[DominatingPair] = [
    GaussianPair(0.1),
    GaussianPair(3.0),
    LaplacePair(Fraction(1, 5)),
    LaplacePair(Fraction(9)),
    RandomizedResponse(0.3, 4).pair(1),
]


@pytest.mark.parametrize("pair", PAIRS)
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


@pytest.mark.parametrize("pair", PAIRS[:4])
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
