"""Pairs of mixtures against integration over outputs, and against dp-accounting."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import ROW, plan, use
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.stats import binom, laplace, norm

from dpaudit.accounting import compose
from dpaudit.accounting.amplification.mixtures import (
    MixturePair,
    binomial_tail,
    drawn_pairs,
    replaced_pair,
)
from dpaudit.mechanisms import DominatingPair, Gaussian, GaussianPair, Laplace, LaplacePair
from dpaudit.plan import Invocation, PoissonSampling, ReplaceOne, TrustModel, ZeroOut

EPSILONS = np.array([-1.0, -0.2, 0.0, 0.1, 0.5, 1.3])
DRAWN = list(zip((0.0, 0.5, 1.0), (0.49, 0.42, 0.09), strict=True))  # two rows at rate 0.3


def integrated(pair: MixturePair, epsilon: float) -> float:
    """The hockey-stick divergence by the trapezoidal rule over outputs."""
    x = np.linspace(-30.0, 30.0, 600_001)
    base = pair.base
    law = laplace.pdf if isinstance(base, LaplacePair) else norm.pdf
    unit = base.epsilon if isinstance(base, LaplacePair) else base.mu
    p, q = (sum(w * law(x - s * unit) for s, w in parts) for parts in (pair.p, pair.q))
    return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x))


@pytest.mark.parametrize("base", [GaussianPair(1.4), LaplacePair(Fraction(3, 2))], ids=repr)
def test_curves_are_those_of_the_mixtures(base: DominatingPair) -> None:
    for pair in (*drawn_pairs(base, DRAWN), replaced_pair(base, 0.3)):
        truth = [integrated(pair, epsilon) for epsilon in EPSILONS]
        np.testing.assert_allclose(pair.delta(EPSILONS), truth, atol=2e-8)
        for above, below in zip(pair.above(EPSILONS), pair.below(EPSILONS), strict=True):
            np.testing.assert_allclose(above + below, 1, atol=1e-14)


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("mu", [1e-9, 0.3, 4.0])
def test_tails_at_the_ends_of_floats(rate: float, mu: float) -> None:
    weights = binomial_tail(3, rate)
    assert weights is not None
    drawn = [(j / 4, weight) for j, weight in enumerate(weights)]
    with mp.workdps(50):
        for pair in (
            *drawn_pairs(GaussianPair(4 * mu), drawn),
            replaced_pair(GaussianPair(mu), rate),
        ):
            for x in np.linspace(-4, 3 * mu + 4, 9):
                loss = float(_loss(pair, mp.mpf(float(x))))
                # A threshold off by some units in its last place lies between these two.
                lower, upper = (
                    float(pair.above(loss + side * 2.0**-50 * abs(loss))[0]) for side in (1, -1)
                )
                unit = pair.base.mu
                truth = float(sum(w * mp.ncdf(mp.mpf(s) * unit - x) for s, w in pair.p))
                assert lower * (1 - 1e-11) <= truth <= upper * (1 + 1e-11)


def _loss(pair: MixturePair, x: mp.mpf) -> mp.mpf:
    def gain(parts: tuple[tuple[float, float], ...]) -> mp.mpf:
        shifts = [(mp.mpf(s) * pair.base.mu, mp.mpf(w)) for s, w in parts]
        least = min((one for one in shifts), key=lambda one: abs(one[0]))[0]
        # Weights are floats, so that their sum is 1 but for a rounding: that of the least shift.
        logs = [(w, s * (x - s / 2) - least * (x - least / 2)) for s, w in shifts]
        return least * (x - least / 2) + mp.log(1 + sum(w * mp.expm1(log) for w, log in logs))

    return gain(pair.p) - gain(pair.q)


@pytest.mark.parametrize("angle", [0.0, 0.7, 1.6, 2.5, math.pi])
def test_vectors_in_any_directions_cost_no_more(angle: float) -> None:
    x = np.linspace(-7, 8, 301)
    grid, cell = np.meshgrid(x, x), (x[1] - x[0]) ** 2

    def law(*at: tuple[float, float, float]) -> np.ndarray:
        return sum(w * norm.pdf(grid[0] - a) * norm.pdf(grid[1] - b) for a, b, w in at)

    one = (1.0, 0.0)
    two = (math.cos(angle), math.sin(angle))
    none, both = (0.0, 0.0, 0.49), (one[0] + two[0], one[1] + two[1], 0.09)
    rows = law(none, (*one, 0.21), (*two, 0.21), both)
    remove, add = drawn_pairs(GaussianPair(2.0), DRAWN)
    replaced = replaced_pair(GaussianPair(2.0), 0.3)
    p, q = law((0.0, 0.0, 0.7), (*one, 0.3)), law((0.0, 0.0, 0.7), (*two, 0.3))
    empty = law((0.0, 0.0, 1.0))
    for pair, first, second in ((remove, rows, empty), (add, empty, rows), (replaced, p, q)):
        for epsilon in EPSILONS:
            cost = np.maximum(first - math.exp(epsilon) * second, 0).sum() * cell
            assert cost <= float(pair.delta(epsilon)) + 5e-5
            if angle == (math.pi if pair is replaced else 0.0):
                assert cost == pytest.approx(float(pair.delta(epsilon)), abs=2e-4)


@pytest.mark.parametrize(("rows", "rate"), [(5, 0.01), (40, 1e-12), (512, 0.5), (10**9, 1e-9)])
def test_weights_are_binomial_and_rounded_up(rows: int, rate: float) -> None:
    weights = binomial_tail(rows, rate)
    assert weights is not None
    at_least = np.cumsum(np.array(weights)[::-1])[::-1]
    exact = binom.sf(np.arange(len(weights)) - 1, rows, rate)
    np.testing.assert_allclose(at_least, exact, rtol=1e-7, atol=1e-290)
    assert sum(weights) == pytest.approx(1, abs=1e-15)


def test_too_many_rows_have_no_weights() -> None:
    assert binomial_tail(10**6, 0.01) is None


@pytest.mark.parametrize(("rows", "stated"), [(2, 0.5797), (5, 1.5872)])
def test_rows_as_dp_accounting_has_them(rows: int, stated: float) -> None:
    sampling = PoissonSampling(0.01, rows=rows)
    own = compose(plan(use(Gaussian(4.0), count=1000, sampling=sampling)), "pld").epsilon(1e-5)
    j = range(rows + 1)
    theirs = pld.from_mixture_gaussian_mechanism(
        4.0, list(j), binom.pmf(j, rows, 0.01), value_discretization_interval=1e-3
    )
    assert own.lower is not None
    assert own.lower <= theirs.self_compose(1000).get_epsilon_for_delta(1e-5)
    assert own.upper == pytest.approx(stated, abs=5e-5)


def test_replaced_units_as_dp_accounting_has_them() -> None:
    sampling = PoissonSampling(0.01, contribution=1.0)
    replaced = use(Gaussian(4.0), 2.0, ReplaceOne(), count=1000, sampling=sampling)
    own = compose(plan(replaced), "pld").epsilon(1e-5)
    theirs = (
        pld.from_gaussian_mechanism(
            4.0, sampling_prob=0.01, neighboring_relation=NeighboringRelation.REPLACE_ONE
        )
        .self_compose(1000)
        .get_epsilon_for_delta(1e-5)
    )
    assert own.lower is not None
    assert own.lower <= theirs
    assert own.upper <= theirs * 1.001
    assert own.upper == pytest.approx(0.5614, abs=5e-5)


def test_nothing_is_cheaper_than_fewer_rows_or_dearer_than_all_of_them() -> None:
    def epsilon(**facts: object) -> float:
        one = Invocation(
            Laplace(5.0),
            1.0,
            ROW,
            ZeroOut(),
            TrustModel.CENTRAL,
            count=20,
            **facts,  # type: ignore[arg-type]
        )
        return compose(plan(one)).epsilon(1e-6).upper

    found = [epsilon(sampling=PoissonSampling(0.2, rows=rows)) for rows in (1, 2, 3)]
    assert found == sorted(found)
    whole = use(Laplace(5.0), 3.0, ZeroOut(), count=20)
    assert found[-1] < compose(plan(whole)).epsilon(1e-6).upper
