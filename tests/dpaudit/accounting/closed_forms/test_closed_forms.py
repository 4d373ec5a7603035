from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import use

from dpaudit.accounting.amplification.renyi import (
    fixed_size_moments,
    poisson_moments,
    poisson_moments_at_integers,
)
from dpaudit.accounting.closed_forms.gaussian import GaussianAccountant, GaussianComposition
from dpaudit.accounting.closed_forms.pure import PureAccountant
from dpaudit.accounting.closed_forms.rdp import ORDERS, RdpAccountant
from dpaudit.accounting.closed_forms.zcdp import zcdp_delta, zcdp_epsilon
from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DominatingPair,
    Gaussian,
    GaussianPair,
    Laplace,
    LaplacePair,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.plan import FixedSizeSampling, PoissonSampling, ReplaceOne


def gaussian_delta(mu: float, epsilon: float) -> mp.mpf:
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 1.0, 7.0, 40.0, 1e4])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-5, 0.3])
def test_the_gaussian_interval_contains_the_truth(mu: float, delta: float) -> None:
    interval = GaussianComposition(mu).epsilon(delta)
    assert gaussian_delta(mu, interval.upper) <= delta
    assert interval.lower is not None
    assert interval.lower == 0 or gaussian_delta(mu, interval.lower) >= delta
    assert interval.upper - interval.lower <= 1e-7 * max(interval.upper, mu)
    ends = GaussianComposition(mu).delta(interval.upper)
    truth = gaussian_delta(mu, interval.upper)
    assert ends.lower is not None
    assert ends.lower <= truth <= ends.upper


def test_mixed_gaussian_noise_adds_up_in_squares() -> None:
    ledger = [use(Gaussian(3.0), count=9), use(Gaussian(4.0), 2.0, count=4)]
    assert GaussianAccountant().compose(ledger).mu == pytest.approx(math.sqrt(2.0), rel=1e-12)


def test_the_gaussian_accountant_names_what_it_does_not_take() -> None:
    with pytest.raises(UnsupportedError, match="laplace at 'x' is not a Gaussian mechanism"):
        GaussianAccountant().compose([use(Laplace(1.0), at="x")])


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 30.0, 1e5])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_zcdp_conversion_is_the_minimum_over_orders(rho: float, delta: float) -> None:
    x = np.geomspace(1e-5, 1e8, 200_001)
    orders = 1 + x
    curve = orders * rho + np.log(x / orders) - (math.log(delta) + np.log(orders)) / x
    found = zcdp_epsilon(rho, delta)
    assert found <= max(curve.min(), 0.0) * (1 + 1e-9) + 1e-12
    assert found >= max(curve.min(), 0.0) * (1 - 1e-6) - 1e-6
    assert zcdp_delta(rho, found) <= delta * (1 + 1e-6)
    assert zcdp_epsilon(rho, delta) >= GaussianComposition(math.sqrt(2 * rho)).epsilon(delta).upper


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
def test_amplified_pure_epsilon_is_rounded_up(epsilon: float, rate: float) -> None:
    sampled = use(Laplace(1.0), epsilon, sampling=PoissonSampling(rate))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    with mp.workdps(50):
        exact = mp.log1p(mp.mpf(rate) * mp.expm1(epsilon))
    assert exact <= found <= exact * (1 + 1e-14)


def test_fixed_size_sampling_amplifies_under_replace_one() -> None:
    sampled = use(Laplace(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(10, 100))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    assert found == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-14)


PAIRS: list[DominatingPair] = [
    GaussianPair(0.3),
    GaussianPair(2.0),
    LaplacePair(Fraction(1, 2)),
    LaplacePair(Fraction(6)),
    approximate_pair(1.3),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.9])
def test_quadrature_agrees_with_the_binomial_sum(pair: DominatingPair, rate: float) -> None:
    whole = tuple(range(2, 17))
    by_sum = poisson_moments_at_integers(pair, rate, whole)
    by_quadrature = poisson_moments(pair, rate, np.array(whole, dtype=np.float64))
    assert by_quadrature is not None
    assert np.allclose(by_sum, by_quadrature, rtol=1e-9, atol=0)


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.5])
@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.05, 1.7, 3.3, 12.0])
def test_sampled_gaussian_moments_against_mpmath(rate: float, mu: float, order: float) -> None:
    found = poisson_moments(GaussianPair(mu), rate, np.array([order]))
    with mp.workdps(30):
        q, m = mp.mpf(rate), mp.mpf(mu)

        def integrand(x: mp.mpf, power: float) -> mp.mpf:
            return mp.npdf(x) * (1 - q + q * mp.exp(m * x - m * m / 2)) ** power

        nodes = mp.linspace(-16, mu * order + 16, 40)
        remove = mp.log(mp.quad(lambda x: integrand(x, order), nodes))
        add = mp.log(mp.quad(lambda x: integrand(x, 1 - order), mp.linspace(-40, 40, 60)))
    assert found is not None
    assert max(remove, add) <= found[0] <= float(remove) * (1 + 1e-9)


def test_fixed_size_moments_lie_between_an_example_and_the_unsampled() -> None:
    # One record of ten is drawn and released with noise: neighbours differ in one record.
    pair, rate = GaussianPair(2.0), 0.1
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    found = fixed_size_moments(pair, rate, orders)
    x = np.linspace(-15, 30, 400_001)
    step = x[1] - x[0]
    density = [np.exp(-((x - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (0.0, 2.0)]
    mixed = (1 - rate) * density[0] + rate * density[1]
    assert found is not None
    for order, moment in zip(orders, found, strict=True):
        example = math.log(np.sum((mixed / density[0]) ** order * density[0]) * step)
        assert example <= moment <= (order - 1) * float(pair.renyi(order))
        assert moment <= 3 * example


def test_fixed_size_profile_integral_equals_its_definition() -> None:
    pair, rate, order = LaplacePair(Fraction(3, 2)), 0.3, 3.5
    found = fixed_size_moments(pair, rate, np.array([order]))

    def profile(t: float) -> float:
        if t >= 1:
            return rate * float(pair.delta(math.log(1 + (t - 1) / rate)))
        s = 1 / t
        return 1 - t + t * rate * float(pair.delta(math.log(1 + (s - 1) / rate)))

    with mp.workdps(20):
        integral = mp.quad(
            lambda t: t ** (order - 2) * (profile(float(t)) - max(1 - t, 0)),
            [1e-9, 0.2, 0.4, 0.6, 0.8, 1, 1.3, 1.6, 2, 2.5, 3],
        )
    assert found is not None
    assert float(mp.log1p(order * (order - 1) * integral)) == pytest.approx(found[0], rel=1e-4)


def test_rdp_is_capped_by_pure_epsilon() -> None:
    ledger = [use(Laplace(20.0), count=10)]
    assert RdpAccountant().compose(ledger).epsilon(1e-12).upper <= 0.5


def test_sampled_discrete_gaussian_costs_about_what_the_gaussian_costs() -> None:
    drawn = PoissonSampling(0.1)
    discrete = RdpAccountant().compose([use(DiscreteGaussian(4.0), sampling=drawn, count=50)])
    normal = RdpAccountant().compose([use(Gaussian(4.0), sampling=drawn, count=50)])
    ratio = discrete.epsilon(1e-6).upper / normal.epsilon(1e-6).upper
    assert 0.99 <= ratio <= 1.2


def test_rdp_of_randomised_response_is_its_own_divergence() -> None:
    one = RdpAccountant().compose([use(RandomizedResponse(0.5))])
    truth = np.log(
        0.75 ** ORDERS[60] * 0.25 ** (1 - ORDERS[60])
        + 0.25 ** ORDERS[60] * 0.75 ** (1 - ORDERS[60])
    ) / (ORDERS[60] - 1)
    assert one.divergences[60] == pytest.approx(truth, rel=1e-9)
    assert one.divergences[60] >= truth
