"""Mixtures of normal laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import repeated
from scipy.stats import norm

from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.accountant import PLDAccountant, compose_terms
from dpaudit.accounting.pld.mixture import MixtureGaussianPair
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.errors import InputError
from dpaudit.mechanisms import (
    Gaussian,
    GaussianPair,
)


@pytest.mark.parametrize("add", [False, True])
def test_a_mixture_of_two_is_the_sampled_gaussian(add: bool) -> None:
    rate, sigma = 0.1, 1.5
    mixture = MixtureGaussianPair((0.0, 1.0), (1 - rate, rate), sigma, add)
    base = GaussianPair(1 / sigma)
    sampled = AddedPair(base, rate) if add else RemovedPair(base, rate)
    losses = np.concatenate([np.linspace(-0.3, 3, 50), [-math.inf, math.inf]])
    for name in ("above", "below"):
        np.testing.assert_allclose(
            getattr(mixture, name)(losses), getattr(sampled, name)(losses), rtol=1e-8, atol=1e-14
        )
    assert mixture.max_loss == pytest.approx(sampled.max_loss)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("values", "shares"),
    [((0.5, 2.0), (0.4, 0.6)), ((0.0, 1.0, 3.0), (0.5, 0.3, 0.2)), ((1.5,), (1.0,))],
)
def test_mixtures_match_quadrature(
    values: tuple[float, ...], shares: tuple[float, ...], add: bool
) -> None:
    pair = MixtureGaussianPair(values, shares, 1.2, add)
    x = np.linspace(-15, 20, 400_001)
    mixed = sum(share * norm.pdf(x, c, 1.2) for c, share in zip(values, shares, strict=True))
    plain = norm.pdf(x, 0, 1.2)
    p, q = (plain, mixed) if add else (mixed, plain)
    for epsilon in (-0.6, -0.1, 0.0, 0.4, 2.0):
        exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)
        assert float(pair.delta(epsilon)) == pytest.approx(exact, abs=1e-7)


def test_mixtures_of_nothing_cost_nothing() -> None:
    pair = MixtureGaussianPair((0.0,), (1.0,), 1.0)
    assert pair.max_loss == 0
    assert float(pair.delta(0.0)) == 0
    tiny = MixtureGaussianPair((0.0, 1e-300), (0.5, 0.5), 1.0)
    assert float(tiny.delta(0.1)) == 0


def test_mixtures_compose_like_sampled_gaussians() -> None:
    pairs = [MixtureGaussianPair((0.0, 1.0), (0.95, 0.05), 1.0, add) for add in (False, True)]
    mixed = compose_terms([DirectedTerm(pairs[0], 100)], [DirectedTerm(pairs[1], 100)]).epsilon(
        1e-5
    )
    sampled = PLDAccountant().compose([repeated(Gaussian(1.0), 100, rate=0.05)]).epsilon(1e-5)
    assert mixed.upper == pytest.approx(sampled.upper, rel=1e-3)
    assert mixed.lower == pytest.approx(sampled.lower, rel=2e-3)


@pytest.mark.parametrize(
    ("values", "shares"),
    [((), ()), ((1.0,), (0.5, 0.5)), ((1.0, 2.0), (0.5, 0.4)), ((-1.0,), (1.0,))],
)
def test_bad_mixtures_are_refused(values: tuple[float, ...], shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        MixtureGaussianPair(values, shares, 1.0)
