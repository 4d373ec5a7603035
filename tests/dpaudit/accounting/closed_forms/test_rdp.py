from __future__ import annotations

import numpy as np
import pytest
from accounting_builders import (
    any_invocations,
    use,
)
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.closed_forms.rdp import RdpAccountant
from dpaudit.accounting.orders import ORDERS
from dpaudit.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    RandomizedResponse,
)
from dpaudit.plan import PoissonSampling


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


class TestRdp(AccountantLaws):
    accountant = RdpAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)
