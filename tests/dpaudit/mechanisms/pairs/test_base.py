"""What a pair of two tails inherits, against the closed forms of one that has its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit.mechanisms import DominatingPair, GaussianPair


@dataclass(frozen=True)
class Tails(DominatingPair):
    """A normal pair that says nothing but its tails and its divergences."""

    known: GaussianPair

    def above(self, loss):
        return self.known.above(loss)

    def below(self, loss):
        return self.known.below(loss)

    def renyi(self, orders):
        return self.known.renyi(orders)

    @property
    def pure_epsilon(self):
        return math.inf


@pytest.mark.parametrize("mu", [0.01, 1.0, 9.0])
def test_the_curve_follows_from_the_tails(mu):
    known = GaussianPair(mu)
    epsilons = np.linspace(-2, mu * mu / 2 + 3 * mu, 50)
    np.testing.assert_allclose(Tails(known).delta(epsilons), known.delta(epsilons), atol=1e-13)


def test_no_epsilon_overflows_the_curve():
    pair = Tails(GaussianPair(60.0))
    for epsilon in (650.0, 699.0, 701.0, 1800.0, 1e6):
        exact = float(GaussianPair(60.0).delta(epsilon))
        assert exact * (1 - 1e-9) - 1e-15 <= float(pair.delta(epsilon)) <= 1
    assert float(pair.delta(1e6)) == 0


@pytest.mark.parametrize("mu", [0.01, 1.0, 9.0])
@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-12])
def test_quantiles_are_found_from_outside(mu, tail):
    known, pair = GaussianPair(mu), Tails(GaussianPair(mu))
    for found, exact, sign in (
        (pair.upper_quantile(tail), known.upper_quantile(tail), 1),
        (pair.lower_quantile(tail), known.lower_quantile(tail), -1),
    ):
        beyond = sign * (found - exact)
        assert -1e-12 <= beyond <= 1e-3 * (abs(exact) + abs(found)) + 1e-6


def test_what_follows_from_nothing_is_unknown():
    pair = Tails(GaussianPair(1.0))
    assert pair.gaussian_mu is pair.span is None
    assert pair.zcdp_rho == math.inf
    assert pair.has_law
