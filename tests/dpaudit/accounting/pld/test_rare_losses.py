"""Intervals of rare and vast losses, where masses, tilts and tails leave the floats."""

from __future__ import annotations

import math
import warnings

import mpmath
import pytest
from accounting_builders import plan, repeated, use
from accounting_truths import ends
from accounting_truths import pld_epsilon as epsilon

from dpaudit.accounting import compose
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
)

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
        lower, upper = ends(epsilon(steps, delta=1e-6))
    assert lower <= upper <= lower * 1.03
    # Nobody who is never sampled loses anything, and whoever is may lose all.
    seen = -math.expm1(count * math.log1p(-rate))
    assert 0.98 * seen <= PLDAccountant().compose([steps]).delta(5.0).upper <= seen * (1 + 1e-9)


def two_losses(epsilon: float, rate: float, count: int, at: float) -> mpmath.mpf:
    """δ of sampled noise with losses ±ε alone: a binomial sum, the worse of both directions."""
    with mpmath.workdps(60):
        e, q = mpmath.mpf(epsilon), mpmath.mpf(rate)
        likely = 1 / (1 + mpmath.exp(-e))
        high, low = (mpmath.log(1 - q + q * mpmath.exp(loss)) for loss in (e, -e))
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
    ("epsilon", "rate", "count", "at"),
    [
        (50.0, 1e-5, 300, 20.0),
        (100.0, 1e-5, 300, 100.0),
        (5.0, 2e-4, 300, 1.3),
        (1.0, 0.1, 40, 2.0),
    ],
)
def test_intervals_of_two_losses_hold_the_binomial_sum(
    epsilon: float, rate: float, count: int, at: float
) -> None:
    exact = two_losses(epsilon, rate, count, at)
    composed = PLDAccountant().compose([repeated(PureBlackBox(epsilon), count, rate=rate)])
    lower, upper = ends(composed.delta(at))
    assert lower <= exact <= upper
    least, most = ends(composed.epsilon(float(exact)))
    assert least * (1 - 1e-9) <= at <= most * (1 + 1e-9)


def test_on_the_edge_of_never_being_sampled_nothing_is_spent() -> None:
    once = PLDAccountant().compose([repeated(Gaussian(0.02), rate=0.1)])
    assert once.epsilon(0.1).upper == 0.0
    assert ends(once.delta(1.0)) == (pytest.approx(0.1), 0.1)


def test_masses_that_are_left_out_prove_no_infinite_loss() -> None:
    found = compose(plan(use(DiscreteGaussian(5.0)))).epsilon(1e-305)
    assert found.upper < 20
    assert found.lower is None or found.lower <= found.upper
