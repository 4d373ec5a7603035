"""The choice of grids, and composition in one stage or two."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.engine import compose_on, plan_grid
from dpaudit.accounting.pld.mixture import MixtureGaussianPair
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)

PAIRS: list[DirectedPair] = [
    PlainPair(GaussianPair(0.8)),
    PlainPair(LaplacePair(Fraction(1, 3))),
    PlainPair(approximate_pair(0.7, 1e-3)),
    PlainPair(DiscreteLaplace(3.0).pair(2)),
    PlainPair(DiscreteGaussian(2.0).pair(1)),
    RemovedPair(GaussianPair(1.0), 0.05),
    AddedPair(GaussianPair(1.0), 0.05),
    RemovedPair(approximate_pair(0.7, 1e-3), 0.2),
    MixtureGaussianPair((0.0, 1.0, 3.0), (0.7, 0.2, 0.1), 2.0),
]


@pytest.mark.parametrize(
    "terms",
    [
        [DirectedTerm(PAIRS[0], 30)],
        [DirectedTerm(PAIRS[1], 200), DirectedTerm(PAIRS[5], 40)],
        [DirectedTerm(PAIRS[6], 1000)],
        [DirectedTerm(PAIRS[8], 50), DirectedTerm(PAIRS[3], 3)],
    ],
)
def test_a_finer_grid_never_contradicts_a_coarser_one(terms: list[DirectedTerm]) -> None:
    found = []
    for tolerance in (3e-2, 1e-3, 1e-4):
        grid = plan_grid(terms, 1e-6, tolerance)
        assert grid is not None
        law = compose_on(grid, terms)
        upper = law.epsilon_upper(1e-6)
        found.append((law.epsilon_lower(1e-6, upper), upper))
    assert max(lower for lower, _ in found) <= min(upper for _, upper in found)
    widths = [upper - lower for lower, upper in found]
    assert widths[2] < widths[1] < widths[0]


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[1], PAIRS[5], PAIRS[6]])
def test_two_stages_agree_with_one(pair: DirectedPair) -> None:
    from dataclasses import replace

    terms = [DirectedTerm(pair, 2000)]
    grid = plan_grid(terms, 1e-6, 1e-3)
    assert grid is not None
    assert grid.fine is not None
    spacing = grid.fine
    size = 2 ** math.ceil(math.log2(grid.size * grid.spacing / spacing))
    first = math.floor(grid.first * grid.spacing / spacing)
    single = replace(grid, fine=None, spacing=spacing, size=size, first=first)
    staged, plain = compose_on(grid, terms), compose_on(single, terms)
    # 44 × 45 + 20 uses: 44 of each bundle on the fine grid, 45 bundles and the rest on the coarse.
    variance = (45 + 20) * grid.spacing**2 / 4
    assert staged.budget.spread**2 >= variance + 44 * 45 * spacing**2 / 4 * 0.99 - 1e-18
    for epsilon in np.linspace(0.8, 1.2, 5) * grid.anchor:
        assert plain.delta_lower(epsilon) <= staged.delta_upper(epsilon)
        assert staged.delta_lower(epsilon) <= plain.delta_upper(epsilon)
