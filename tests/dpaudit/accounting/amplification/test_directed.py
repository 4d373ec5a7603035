"""Directed pairs: where their law lies, and the symmetric ones among them."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.amplification.directed import even
from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.mechanisms import (
    GaussianPair,
    LaplacePair,
    RandomizedResponse,
    approximate_pair,
)

BASES = [
    GaussianPair(0.7),
    LaplacePair(Fraction(3, 2)),
    RandomizedResponse(0.4, 3).pair(1),
    approximate_pair(1.0, 0.05),
]


def test_nodes_hold_all_but_the_tails() -> None:
    for base in BASES:
        pairs = [PlainPair(base)] + [k(base, 0.1) for k in (RemovedPair, AddedPair, ReplacedPair)]
        for pair in pairs:
            nodes = pair.nodes(1e-9, 50)
            assert (np.diff(nodes) > 0).all()
            assert pair.above(nodes[-1])[0] - pair.infinite <= 1.1e-9
            assert pair.below(nodes[0] - 1e-9)[0] <= 1.1e-9


def test_a_plain_pair_is_its_base_both_ways() -> None:
    epsilons = np.linspace(-2, 2, 41)
    for base in BASES:
        pair = PlainPair(base)
        np.testing.assert_allclose(pair.delta(epsilons), base.delta(epsilons), atol=1e-14)
        assert pair.span == base.span
        assert pair.max_loss == float(base.pure_epsilon)
    atoms = PlainPair(BASES[2]).atoms()
    assert atoms is not None
    assert atoms[1].sum() == pytest.approx(1)
    assert PlainPair(BASES[0]).atoms() is None
    assert PlainPair(BASES[3]).infinite == pytest.approx(0.05)


def test_losses_that_meet_are_one_node() -> None:
    assert even(1.0, 1.0, 7).tolist() == [1.0]
    assert even(0.0, 1.0, 2).tolist() == [0.0, 1.0]
    assert even(0.0, 1.0, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_the_total_variation_of_tiny_losses_is_not_rounded_down() -> None:
    with mpmath.workdps(40):
        truth = 2 * mpmath.ncdf(1 / mpmath.mpf(361780526.761) / 2) - 1
    pair = GaussianPair(1 / 361780526.761)
    assert truth <= PlainPair(pair).total_variation <= truth * (1 + 1e-5)
    assert truth / 2 <= RemovedPair(pair, 0.5).total_variation <= truth / 2 * (1 + 1e-5)
