"""The choice of grids, and composition in one stage or two."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, repeated, use
from accounting_truths import ends, pld_epsilon

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.accounting.pld.engine import compose_on, plan_grid
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianPair,
    Laplace,
    LaplacePair,
    Mechanism,
    PureBlackBox,
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
    RemovedPair(LaplacePair(Fraction(1, 2)), 0.3),
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


HARD = [
    (Gaussian(0.03), 1e-3, 10**5),
    (Gaussian(0.02), 1e-5, 300),
    (Laplace(0.002), 1e-4, 1000),
    (Gaussian(0.1), 1e-5, 10**6),
    (DiscreteLaplace(0.02), 1e-5, 1000),
    (DiscreteLaplace(0.01), 1e-5, 1000),
]


@pytest.mark.parametrize(("mechanism", "rate", "count"), HARD)
def test_rare_and_vast_losses_have_an_interval(
    mechanism: Mechanism, rate: float, count: int
) -> None:
    steps = repeated(mechanism, count, rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower, upper = ends(pld_epsilon(steps, delta=1e-6))
    assert lower <= upper <= lower * 1.03
    # Nobody who is never sampled loses anything, and whoever is may lose all.
    seen = -math.expm1(count * math.log1p(-rate))
    assert 0.98 * seen <= PLDAccountant().compose([steps]).delta(5.0).upper <= seen * (1 + 1e-9)


def two_losses(loss: float, rate: float, count: int, at: float) -> mpmath.mpf:
    """δ of sampled noise with losses ±ε alone: a binomial sum, the worse of both directions."""
    with mpmath.workdps(60):
        e, q = mpmath.mpf(loss), mpmath.mpf(rate)
        likely = 1 / (1 + mpmath.exp(-e))
        high, low = (mpmath.log(1 - q + q * mpmath.exp(base)) for base in (e, -e))
        mixed = q * likely + (1 - q) * (1 - likely)
        found = []
        for p, up, down in ((mixed, high, low), (1 - likely, -high, -low)):
            terms = (
                mpmath.binomial(count, k)
                * p**k
                * (1 - p) ** (count - k)
                * (1 - mpmath.exp(at - k * up - (count - k) * down))
                for k in range(count + 1)
                if k * up + (count - k) * down > at
            )
            found.append(mpmath.fsum(terms))
        return max(found)


@pytest.mark.parametrize(
    ("loss", "rate", "count", "at"),
    [
        (50.0, 1e-5, 300, 20.0),
        (100.0, 1e-5, 300, 100.0),
        (5.0, 2e-4, 300, 1.3),
        (1.0, 0.1, 40, 2.0),
    ],
)
def test_intervals_of_two_losses_hold_the_binomial_sum(
    loss: float, rate: float, count: int, at: float
) -> None:
    exact = two_losses(loss, rate, count, at)
    composed = PLDAccountant().compose([repeated(PureBlackBox(loss), count, rate=rate)])
    lower, upper = ends(composed.delta(at))
    assert lower <= exact <= upper
    least, most = ends(composed.epsilon(float(exact)))
    assert least * (1 - 1e-9) <= at <= most * (1 + 1e-9)


def test_on_the_edge_of_never_being_sampled_nothing_is_spent() -> None:
    once = PLDAccountant().compose([repeated(Gaussian(0.02), rate=0.1)])
    assert once.epsilon(0.1).upper == 0.0
    assert ends(once.delta(1.0)) == (pytest.approx(0.1), 0.1)


def test_a_loss_next_to_the_largest_has_an_interval() -> None:
    once = PLDAccountant().compose([use(ExponentialMechanism(1.0))])
    assert 1.0 <= once.epsilon(2.8843861849671376e-274).upper <= 1.0 + 1e-12


def test_masses_that_are_left_out_prove_no_infinite_loss() -> None:
    found = compose(plan(use(DiscreteGaussian(5.0)))).epsilon(1e-305)
    assert found.upper < 20
    assert found.lower is None or found.lower <= found.upper


def test_many_uses_of_a_law_without_a_loss_but_0_and_infinity() -> None:
    """Each tells everything with probability 1e-9 and nothing else; Gaussian noise is beside it."""
    told = repeated(ApproximateBlackBox(0.0, 1e-9), 1000)
    both = pld_epsilon(told, repeated(Gaussian(30.0), 1000), delta=1e-5)
    alone = pld_epsilon(repeated(Gaussian(30.0), 1000), delta=1e-5 - 1e-6)
    assert both.upper == pytest.approx(alone.upper, rel=2e-3)
