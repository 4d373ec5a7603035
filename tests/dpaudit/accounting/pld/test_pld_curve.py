from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from dpaudit.accounting import compose, guarantee
from dpaudit.accounting.pld import direction
from dpaudit.accounting.pld.accountant import PLDComposition
from dpaudit.accounting.pld.cumulants import Term
from dpaudit.accounting.pld.engine import Grid, compose_on
from dpaudit.accounting.pld.law import ComposedLaw
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import FixedSizeSampling, ReplaceOne

DELTAS = np.geomspace(1e-12, 0.05, 9)


def _subset(sigma: float, size: int, population: int, count: int = 1):  # type: ignore[no-untyped-def]
    drawn = FixedSizeSampling(size, population)
    return plan(use(Gaussian(sigma), 1.0, ReplaceOne(), sampling=drawn, count=count))


@pytest.mark.parametrize(
    ("sigma", "size", "population", "count"),
    [(4.0, 50, 100, 5), (1.71, 1009, 1700, 23), (0.55, 3, 1900, 90), (5.9, 1899, 1900, 1)],
)
def test_fixed_size_samples_of_any_rate_have_an_interval(
    sigma: float, size: int, population: int, count: int
) -> None:
    steps = _subset(sigma, size, population, count)
    interval = compose(steps, "pld").epsilon(1e-5)
    assert interval.lower is not None
    assert interval.lower <= interval.upper <= guarantee(steps, 1e-5, "rdp").epsilon
    assert interval.upper - interval.lower <= 5e-3 * max(interval.upper, 1e-2)


def test_one_fixed_size_sample_against_its_curve_in_closed_form() -> None:
    sigma, rate, delta = 4.0, 0.5, 1e-3

    def exact(epsilon: float) -> float:
        base = math.log1p(math.expm1(epsilon) / rate)
        plain = norm.cdf(0.5 / sigma - sigma * base) - math.exp(base) * norm.cdf(
            -0.5 / sigma - sigma * base
        )
        return rate * float(plain)

    interval = compose(_subset(sigma, 50, 100), "pld").epsilon(delta)
    truth = brentq(lambda epsilon: exact(epsilon) - delta, 1e-9, 5, xtol=1e-14)
    assert interval.lower is not None
    assert interval.lower <= truth <= interval.upper * (1 + 1e-12)


def test_two_fixed_size_samples_against_a_double_integral() -> None:
    """δ = E δ₁(ε − L) over the loss L of the first use, by the law of the symmetric pair."""
    sigma, rate, delta = 2.0, 0.3, 1e-4
    shift = 1 / sigma

    def tail(loss: float) -> tuple[float, float]:
        # Of (1 − q) Q + q P against Q from loss 0 on; by symmetry, reversed, below.
        if loss < math.log1p(-rate):
            return 1.0, 1.0
        base = math.log1p(math.expm1(loss) / rate)
        p, q = norm.sf(base / shift - shift / 2), norm.sf(base / shift + shift / 2)
        return float(rate * p + (1 - rate) * q), float(q)

    def curve(epsilon: float) -> float:
        if epsilon < 0:
            return -math.expm1(epsilon) + math.exp(epsilon) * curve(-epsilon)
        p, q = tail(epsilon)
        return p - math.exp(epsilon) * q

    def density(loss: float) -> float:
        """Of L > 0 under Q."""
        base = math.log1p(math.expm1(loss) / rate)
        slope = math.exp(loss) / (rate + math.expm1(loss))
        return float(norm.pdf(base / shift + shift / 2)) / shift * slope

    def composed(epsilon: float) -> float:
        p, q = tail(0.0)
        above = quad(
            lambda loss: math.exp(loss) * density(loss) * curve(epsilon - loss),
            0.0,
            6.0,
            points=[epsilon],
            epsabs=1e-13,
            limit=200,
        )[0]
        below = quad(
            lambda loss: density(loss) * curve(epsilon + loss), 0.0, 6.0, epsabs=1e-13, limit=200
        )[0]
        return float(above + below + (1 - p - q) * curve(epsilon))

    interval = compose(_subset(sigma, 30, 100, 2), "pld").epsilon(delta)
    truth = brentq(lambda epsilon: composed(epsilon) - delta, 0.2, 4, xtol=1e-10)
    assert interval.lower is not None
    assert interval.lower <= truth * (1 + 1e-7)
    assert truth <= interval.upper * (1 + 1e-7)
    assert interval.upper - interval.lower < 2e-3 * truth


def _many(distinct: int):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(7)
    scales, rates = rng.uniform(1, 3, distinct), rng.uniform(0.005, 0.02, distinct)
    return plan(
        *(
            use(Gaussian(float(sigma)), sampling=poisson(float(rate)))
            for sigma, rate in zip(scales, rates, strict=True)
        )
    )


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_one_law_gives_a_whole_curve(delta: float) -> None:
    composed = compose(_many(5), "pld")
    assert isinstance(composed, PLDComposition)
    near = composed.epsilons_near(delta, np.append(DELTAS, delta))
    assert near[-1] == composed.epsilon(delta).upper
    own = [composed.epsilon(float(each)) for each in DELTAS]
    lowers = np.array([each.lower for each in own])
    assert (near[:-1] >= lowers).all()
    tight = delta * 1e-4 <= DELTAS
    uppers = np.array([each.upper for each in own])
    assert (near[:-1] <= uppers * 1.03 + 1e-3)[tight].all()
    assert composed.delta_near(delta, 0.5) >= (composed.delta(0.5).lower or 0.0)


def test_a_curve_of_many_mechanisms_takes_no_more_laws_than_its_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = []

    def counted(grid: Grid, terms: Sequence[Term]) -> ComposedLaw:
        laws.append(grid)
        return compose_on(grid, terms)

    monkeypatch.setattr(direction, "compose_on", counted)
    steps = _many(80)
    point = compose(steps, "pld").epsilon(1e-5)
    needed = len(laws)
    found = guarantee(steps, 1e-5, "pld")
    assert len(laws) == 2 * needed
    assert found.epsilon == point.upper
    assert len(found.curve) > 25
    assert (found.epsilon, 1e-5) in [(each.epsilon, each.delta) for each in found.curve]
    deltas = [each.delta for each in found.curve]
    assert deltas == sorted(deltas, reverse=True)
    exact = compose(steps, "pld")
    for each in found.curve[1::6]:
        lower = exact.epsilon(each.delta).lower
        assert lower is not None
        assert lower <= each.epsilon <= lower * 1.03 + 1e-3
