"""Compositions by dp-accounting's laws and curves, against closed forms and enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from dp_accounting import NeighboringRelation
from dp_accounting import dp_event as dp
from gaussian_truth import gaussian_epsilon
from scipy import stats
from scipy.optimize import brentq

from dpaudit.base.errors import UnsupportedError
from dpaudit.interchange.dp_accounting.laws import (
    Grid,
    Use,
    grid_epsilon,
    has_renyi_curve,
    loss,
    renyi_epsilon,
    uses,
)
from dpaudit.mechanisms import (
    ConcentratedBlackBox,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import FixedSizeSampling, MetricBall, ReplaceOne, ZeroOut

FINE = Grid(1e-4)
BELOW = Grid(1e-4, pessimistic=False)
DELTA = 1e-5


def response_epsilon(share: float, count: int, delta: float) -> float:
    """ε of that many binary randomised responses, summed over the number that flips."""
    flip = share / 2
    flips = np.arange(count + 1)
    losses = (count - 2 * flips) * math.log((1 - flip) / flip)
    masses = stats.binom.pmf(flips, count, flip)

    def excess(epsilon: float) -> float:
        return float(np.sum(masses * np.maximum(-np.expm1(epsilon - losses), 0)) - delta)

    return float(brentq(excess, 0.0, 200.0, xtol=1e-12))


@pytest.mark.parametrize("relation", [None, ReplaceOne(), ZeroOut(), MetricBall(1.0)], ids=str)
def test_a_gaussian_has_its_declared_sensitivity_under_every_relation(relation: Any) -> None:
    composed = uses([use(Gaussian(10.0), 2.0, relation, count=3)])
    truth = gaussian_epsilon(2.0 * math.sqrt(3) / 10.0, DELTA)
    assert grid_epsilon(composed, DELTA, FINE) == pytest.approx(truth, rel=1e-5)
    assert truth * 0.99 <= grid_epsilon(composed, DELTA, BELOW) + 1e-3
    assert grid_epsilon(composed, DELTA, BELOW) <= truth
    assert truth <= renyi_epsilon(composed, DELTA) <= truth * 1.2


def test_replace_one_by_renyi_is_not_half_of_the_truth() -> None:
    composed = uses([use(Gaussian(10.0), 2.0, ReplaceOne())])
    assert 0.7255 <= renyi_epsilon(composed, DELTA) < 0.8


def test_the_count_of_randomised_response_counts() -> None:
    truth = response_epsilon(0.5, 100, DELTA)
    composed = uses([use(RandomizedResponse(0.5), relation=ReplaceOne(), count=100)])
    assert truth == pytest.approx(90.78, abs=0.01)
    assert truth <= grid_epsilon(composed, DELTA, FINE) <= truth + 100 * FINE.interval
    assert truth - 100 * FINE.interval <= grid_epsilon(composed, DELTA, BELOW) <= truth
    assert truth <= renyi_epsilon(composed, DELTA)


def test_a_pure_bound_is_met_from_both_sides() -> None:
    composed = uses([use(Laplace(2.0), 3.0, ReplaceOne()), use(DiscreteLaplace(2.0), 1.0)])
    assert grid_epsilon(composed, 1e-12, FINE) == pytest.approx(2.0, abs=1e-3)
    assert 1.99 < grid_epsilon(composed, 1e-12, BELOW) <= 2.0 + 1e-9


def sampled_laplace_delta(rate: float, scale: float, epsilon: float) -> float:
    """δ(ε) of one Poisson-sampled Laplace release, by integrating its two densities."""
    at = np.linspace(-30.0, 31.0, 2_000_001)
    without = stats.laplace.pdf(at, 0, scale)
    mixed = (1 - rate) * without + rate * stats.laplace.pdf(at, 1, scale)
    step = at[1] - at[0]
    removed = np.sum(np.maximum(mixed - math.exp(epsilon) * without, 0)) * step
    added = np.sum(np.maximum(without - math.exp(epsilon) * mixed, 0)) * step
    return float(max(removed, added))


def test_a_sampled_laplace_release() -> None:
    composed = uses([use(Laplace(1.0), sampling=poisson(0.3))])
    upper, lower = grid_epsilon(composed, 0.05, FINE), grid_epsilon(composed, 0.05, BELOW)
    assert sampled_laplace_delta(0.3, 1.0, upper) == pytest.approx(0.05, abs=1e-4)
    assert upper - 1e-3 <= lower <= upper


def test_a_sampled_gaussian_under_replace_one_moves_by_its_declared_sensitivity() -> None:
    """At ε = 0 δ is the total variation of N(±Δ/2, σ²), sampled: q·(2Φ(Δ/2σ) − 1)."""
    composed = uses([use(Gaussian(1.0), 2.0, ReplaceOne(), sampling=poisson(0.25))])
    total = 0.25 * (2 * stats.norm.cdf(1.0) - 1)
    assert grid_epsilon(composed, total * 1.001, FINE) < 1e-2
    assert grid_epsilon(composed, total * 0.98, FINE) > 0


@pytest.mark.parametrize(
    ("invocation", "law", "curve"),
    [
        (use(Gaussian(1.0)), True, True),
        (use(RandomizedResponse(0.5)), True, True),
        (use(DiscreteLaplace(1.0)), True, False),
        (use(ConcentratedBlackBox(0.1)), False, True),
        (use(Gaussian(1.0), sampling=poisson(0.1)), True, True),
        (use(Gaussian(1.0), relation=ReplaceOne(), sampling=poisson(0.1)), True, False),
        (use(Laplace(1.0), sampling=poisson(0.1)), True, False),
        (use(Laplace(1.0), relation=ReplaceOne(), sampling=poisson(0.1)), False, False),
        (use(Gaussian(1.0), sampling=FixedSizeSampling(1, 10)), False, False),
        (use(Gaussian(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(1, 10)), False, True),
    ],
)
def test_what_there_is_for_an_event_is_known_before_any_work(
    invocation: Any, law: bool, curve: bool
) -> None:
    (found,) = uses([invocation])
    assert (loss(found.event, found) < math.inf, has_renyi_curve(found)) == (law, curve)
    if not law:
        with pytest.raises(UnsupportedError, match=r"cannot compose .* at 'invocation 1'"):
            grid_epsilon(uses(plan(invocation).invocations), DELTA, FINE)
    if not curve:
        with pytest.raises(UnsupportedError, match="cannot compose"):
            renyi_epsilon([found], DELTA)


def test_equal_invocations_are_one_event() -> None:
    (found,) = uses([use(Gaussian(2.0), count=2, at="a"), use(Gaussian(2.0), count=3, at="b")])
    assert found.event == dp.GaussianDpEvent(2.0)
    assert (found.count, found.neighbours) == (5, NeighboringRelation.ADD_OR_REMOVE_ONE)


def test_what_moves_nothing_is_no_event() -> None:
    assert uses([use(Gaussian(2.0), 0.0)]) == []


@pytest.mark.parametrize(
    ("invocation", "message"),
    [
        (use(PureBlackBox(1.0)), "no DpEvent"),
        (use(Gaussian(1.0), relation=MetricBall(1.0), sampling=poisson(0.1)), "metric-ball"),
    ],
)
def test_what_has_no_event_is_named(invocation: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        uses([invocation])


def test_an_unknown_event_has_no_law() -> None:
    (known,) = uses([use(Gaussian(1.0))])
    unknown = Use(known.invocation, dp.UnsupportedDpEvent(), 1, known.neighbours)
    assert loss(unknown.event, unknown) == math.inf
    assert not has_renyi_curve(unknown)
