from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import guarantee
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)

EPSILONS = [1e-300, 1e-3, 1.0, 30.0, 700.0, 730.0, 740.0, 760.0, 1000.0, 2000.0, 1e5]


def mechanism_of(kind: type[Mechanism], epsilon: float) -> Mechanism:
    if kind is DiscreteLaplace:
        return DiscreteLaplace(1 / epsilon)
    if kind is RandomizedResponse:
        # The lie p/2 must be a float, hence no ε above 740 or so.
        return RandomizedResponse(2 / (math.exp(min(epsilon, 700.0)) + 1))
    return kind(epsilon)  # type: ignore[call-arg]


def least_epsilon_of_two_outputs(epsilon: float, delta: float) -> float:
    """The root of δ = P − e^x Q, with masses P = 1/(1 + e^-ε) and Q = e^-ε P."""
    if delta == 0:
        return epsilon
    return max(0.0, epsilon + math.log1p(-delta * (1 + math.exp(-epsilon))))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "kind", [DiscreteLaplace, PureBlackBox, RandomizedResponse, ExponentialMechanism]
)
def test_no_accountant_proves_less_than_two_outputs_cost(
    kind: type[Mechanism], epsilon: float, delta: float
) -> None:
    mechanism = mechanism_of(kind, epsilon)
    exact = mechanism.pair(1.0).pure_epsilon
    truth = least_epsilon_of_two_outputs(float(exact), delta)
    for accountant in ("pure", "rdp", "moments", "zcdp", "best"):
        if kind is ExponentialMechanism and accountant != "pure":
            continue  # its ρ is that of its bounded range, less than of two outputs
        found = guarantee(plan(use(mechanism)), delta, accountant).epsilon
        assert found >= truth * (1 - 1e-15), accountant
        if accountant in ("pure", "best"):
            assert found <= truth * (1 + 1e-12) + 1e-8


@pytest.mark.parametrize("sensitivity", [740.0, 1000.0])
@pytest.mark.parametrize("accountant", ["pure", "rdp", "moments", "zcdp", "best"])
def test_a_long_shift_costs_nearly_all_of_its_loss(accountant: str, sensitivity: float) -> None:
    # At output 0 and below, of P-mass 1/(1 + 1/e), the loss is the whole shift.
    truth = sensitivity + math.log1p(-1e-5 * (1 + math.exp(-1)))
    found = guarantee(plan(use(DiscreteLaplace(1.0), sensitivity)), 1e-5, accountant).epsilon
    assert truth * (1 - 1e-15) <= found <= sensitivity + 0.36


def test_masses_below_the_floats_keep_their_logarithms() -> None:
    near, far = DiscreteLaplace(1.0).pair(20), DiscreteLaplace(1e-3).pair(10)
    log_p, log_q = near.log_masses()  # type: ignore[attr-defined]
    assert np.allclose(log_p - log_q, near.losses)  # type: ignore[attr-defined]
    assert np.allclose(far.renyi([1.001, 2.0, 1e6]), 1e4, rtol=1e-12)
    assert far.delta(9_999.0) == pytest.approx(-math.expm1(-1), rel=1e-11)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "mechanism",
    [DiscreteGaussian(1e-300), DiscreteGaussian(5e-324), DiscreteLaplace(5e-324), Laplace(5e-324)],
)
def test_noise_below_all_losses_that_floats_hold_is_infinite(
    mechanism: Mechanism, count: int, delta: float
) -> None:
    found = guarantee(plan(use(mechanism, count=count)), delta)
    assert found.epsilon == math.inf
    assert found.native["reason"]


@pytest.mark.parametrize(
    "mechanism", [Laplace(1e300), DiscreteLaplace(1e300), PureBlackBox(1e-300)]
)
def test_tiny_losses_are_not_rounded_down_to_nothing(mechanism: Mechanism) -> None:
    once = plan(use(mechanism))
    exact = Fraction(mechanism.pair(1.0).pure_epsilon)
    for accountant in ("pure", "zcdp", "rdp", "best"):
        assert Fraction(guarantee(once, 0.0, accountant).epsilon) >= exact
    assert mechanism.pair(1.0).zcdp_rho > 0
    assert guarantee(plan(use(mechanism, sampling=poisson(0.1))), 0.0, "zcdp").epsilon > 0


def test_a_gaussian_shift_below_the_floats_is_still_a_shift() -> None:
    tiny = plan(use(Gaussian(1e300), 1e-20))
    assert guarantee(tiny, 0.0, "gaussian").epsilon == math.inf
    assert guarantee(tiny, 1e-5, "best").epsilon <= 1e-290


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "moments"])
def test_sampled_noise_too_small_is_infinite(accountant: str) -> None:
    sampled = plan(use(Gaussian(5e-324), sampling=poisson(0.1)))
    assert guarantee(sampled, 1e-5, accountant).epsilon == math.inf


def test_large_gaussian_losses_do_not_overflow() -> None:
    found = guarantee(plan(use(Gaussian(1e-150))), 1e-5, "rdp")
    assert found.epsilon == pytest.approx(5e299, rel=1e-4)
