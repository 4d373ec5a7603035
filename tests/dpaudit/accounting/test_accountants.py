from __future__ import annotations

from typing import Any

from accounting_builders import (
    gaussian_invocations,
    pure_invocations,
    sampled_invocations,
    use,
)
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.best import BestAccountant
from dpaudit.accounting.closed_forms.gaussian import GaussianAccountant
from dpaudit.accounting.closed_forms.moments import MomentsAccountant
from dpaudit.accounting.closed_forms.pure import PureAccountant
from dpaudit.accounting.closed_forms.rdp import RdpAccountant
from dpaudit.accounting.closed_forms.zcdp import ZcdpAccountant
from dpaudit.mechanisms import Gaussian

any_invocation: st.SearchStrategy[Any] = st.one_of(
    pure_invocations(), gaussian_invocations(), sampled_invocations()
)


class TestPure(AccountantLaws):
    accountant = PureAccountant()
    ledgers = st.lists(pure_invocations(), min_size=1, max_size=4)


class TestGaussian(AccountantLaws):
    accountant = GaussianAccountant()
    ledgers = st.lists(gaussian_invocations(), min_size=1, max_size=4)
    big = use(Gaussian(100.0), count=10**9)


class TestZcdp(AccountantLaws):
    accountant = ZcdpAccountant()
    ledgers = st.lists(any_invocation, min_size=1, max_size=4)


class TestRdp(AccountantLaws):
    accountant = RdpAccountant()
    ledgers = st.lists(any_invocation, min_size=1, max_size=4)


class TestMoments(AccountantLaws):
    accountant = MomentsAccountant()
    ledgers = st.lists(any_invocation, min_size=1, max_size=4)


class TestBest(AccountantLaws):
    accountant = BestAccountant()
    inversion_slack = 0.05  # numbers read from two grids
    ledgers = st.lists(
        st.one_of(pure_invocations(), gaussian_invocations()), min_size=1, max_size=3
    )
