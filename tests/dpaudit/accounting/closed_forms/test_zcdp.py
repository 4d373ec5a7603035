from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from accounting_builders import any_invocations, poisson, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.accounting.closed_forms.zcdp import (
    ZcdpAccountant,
    rho_of,
    zcdp_delta,
    zcdp_epsilon,
)
from dpaudit.accounting.terms import terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    Gaussian,
    Laplace,
    Mechanism,
    Norm,
    approximate_pair,
)


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


class TestZcdp(AccountantLaws):
    accountant = ZcdpAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)


def test_rho_adds_up_exactly_and_sampling_lowers_it_by_the_pure_epsilon() -> None:
    found = ZcdpAccountant().compose([use(Gaussian(2.0), count=3), use(ConcentratedBlackBox(0.25))])
    assert found.rho == pytest.approx(3 / 8 + 0.25, rel=1e-12)
    assert found.native == {"rho": found.rho}
    (sampled,) = terms([use(Laplace(1.0), sampling=poisson(0.1))])
    assert rho_of(sampled) == pytest.approx(math.log1p(0.1 * math.expm1(1)) ** 2 / 2, rel=1e-12)
    (normal,) = terms([use(Gaussian(2.0), sampling=poisson(0.1))])
    assert rho_of(normal) == pytest.approx(1 / 8, rel=1e-12)


def test_failures_come_on_top_and_pure_sums_cap() -> None:
    box = ZcdpAccountant().compose([use(ApproximateBlackBox(0.5, 1e-6), count=2)])
    assert box.epsilon(1.9e-6).upper == math.inf
    assert box.epsilon(2.1e-6).upper <= 1.0
    assert box.delta(1.0).upper == pytest.approx(2e-6)


def test_what_is_not_concentrated_is_named() -> None:
    far = use(Bare(), at="x")
    with pytest.raises(UnsupportedError, match="at 'x' is not zero-concentrated"):
        ZcdpAccountant().compose([far])
    assert ZcdpAccountant().compose([use(Gaussian(1e-200))]).epsilon(1e-3).upper == math.inf


@dataclass(frozen=True)
class Bare(Mechanism):
    """One that fails with probability 1/10, and says so in its pair alone."""

    kind: ClassVar[str] = "test-zcdp-bare"
    norm: ClassVar[Norm] = Norm.CHANGE

    def pair(self, sensitivity):
        return approximate_pair(0.5 * sensitivity, 0.1 * sensitivity)

    def sample(self, values, rng):
        return values
