"""Honaker's estimator: variances, bounds and the levels that dp-accounting counts."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.mechanisms import HonakerTree


def test_honakers_node_variances_are_the_harmonic_sums():
    """A whole tree of depth l has variance 1/(1 + 1/2 + … + 1/2^l)."""
    error = HonakerTree(64, release_root=True).error(1.0)
    for level in range(7):
        expected = 1 / sum(0.5**k for k in range(level + 1))
        assert error[(1 << level) - 1] ** 2 == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("count", "gap"), [(2, 4), (4, 4), (8, 2), (5, 8), (3, 1)])
def test_dense_pattern_reaches_honakers_bound_for_powers_of_two(count, gap):
    tree = HonakerTree(64, release_root=True)
    dense = np.linalg.norm(tree.encoder()[:, : count * gap : gap].sum(axis=1))
    assert tree.sensitivity(count, gap) == pytest.approx(dense, rel=1e-15)


@pytest.mark.parametrize("steps", [1, 7, 1000, 1024])
def test_dp_accounting_counts_the_same_levels(steps):
    import dp_accounting
    from dp_accounting import rdp

    orders = [2.0, 8.0, 64.0]
    accountant = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    event = dp_accounting.SingleEpochTreeAggregationDpEvent(3.0, [steps])
    accountant.compose(event)
    mu = HonakerTree(steps, release_root=True).sensitivity() / 3.0
    expected = [order * mu**2 / 2 for order in orders]
    np.testing.assert_allclose(accountant._rdp, expected, rtol=1e-12)
