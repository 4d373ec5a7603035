"""Closed forms of wide discrete normal tails, against the sums that they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import AddRemove, DiscreteGaussian, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.accounting import guarantee
from dpaudit.mechanisms.pairs.discrete_normal import WideDiscreteNormalPair


def summed(sigma, start):
    """Tail mass from a whole number on, in extended precision and from the small terms up."""
    k = np.arange(start, start + 12 * int(sigma) + 1, dtype=np.longdouble)
    mass = np.exp(-((k / np.longdouble(sigma)) ** 2) / 2)
    return float(mass[::-1].sum() / (np.longdouble(sigma) * np.sqrt(2 * np.longdouble(np.pi))))


@pytest.mark.parametrize("sigma", [1e4, 31_415.9])
@pytest.mark.parametrize("shift", [1, 7, 25_000])
@pytest.mark.parametrize("deviations", [0.0, 0.4, 3.0, 12.0, 36.0])
def test_tails_are_the_sums_of_all_masses(sigma, shift, deviations):
    pair = WideDiscreteNormalPair(sigma, shift)
    first = math.ceil(deviations * sigma)
    loss = (2 * first - 1 - shift) * shift / (2 * sigma**2)  # between two outputs
    p, q = pair.above(loss)
    assert float(q) == pytest.approx(summed(sigma, first), rel=1e-11, abs=1e-300)
    assert float(p) == pytest.approx(summed(sigma, first - shift), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("loss", [-2.0, -1e-9, 0.0, 3e-7, 0.01])
def test_lower_tails_complete_the_upper_ones_and_mirror_them(loss):
    pair = WideDiscreteNormalPair(2e4, 3)
    above, below = pair.above(loss), pair.below(loss)
    for over, under in zip(above, below, strict=True):
        assert float(over + under) == pytest.approx(1.0, abs=1e-15)
    mirrored = pair.below(-loss - 1e-14)  # Q[L > l] = P[L < −l]
    assert float(mirrored[0]) == pytest.approx(float(above[1]), rel=1e-9)


def test_extremes_of_losses_have_all_or_no_mass():
    pair = WideDiscreteNormalPair(1e9, 1)
    p, q = pair.above([-math.inf, -1e300, 1e300, math.inf])
    assert p.tolist() == q.tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(("shift", "count"), [(1, 10**7), (700, 50), (30_000, 1)])
def test_the_interval_meets_that_of_the_table_just_below(shift, count):
    """σ moves by a part in 10⁶, and ε by about as much."""

    def proved(sigma):
        unit, relation, trust = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
        use = Invocation(DiscreteGaussian(sigma), shift, unit, relation, trust, count=count)
        return guarantee(Plan.of(use), 1e-6)

    table, wide = proved(9999.99), proved(10_000.0)
    assert wide.error_bound is not None
    assert wide.epsilon - wide.error_bound <= table.epsilon * (1 + 1e-9)
    assert wide.epsilon >= (table.epsilon - (table.error_bound or 0.0)) * (1 - 1e-5)
    assert wide.epsilon == pytest.approx(table.epsilon, rel=2e-3)
