"""The least of all accountants, and which of them it asks."""

from __future__ import annotations

import math

import pytest
from accounting_builders import gaussian_invocations, pure_invocations, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.best import BestAccountant, BestComposition
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace, Opaque


class TestBest(AccountantLaws):
    accountant = BestAccountant()
    inversion_slack = 0.05  # numbers read from two grids
    deltas = st.sampled_from([1e-6, 1e-3, 0.05])  # below, a few Laplace uses need large grids
    curve = (1e-9, 1e-6, 1e-3, 0.3)
    ledgers = st.lists(
        st.one_of(pure_invocations(), gaussian_invocations()), min_size=1, max_size=3
    )


def test_the_least_upper_end_is_named_and_lower_ends_are_kept() -> None:
    composed = BestAccountant().compose([use(Gaussian(5.0), count=7)])
    compared = composed.compared(1e-6)
    assert list(compared) == ["gaussian", "zcdp", "rdp", "moments"]
    assert composed.refusals["pld"] == "a closed form is exact."
    assert "no pure guarantee" in composed.refusals["pure"]
    assert composed.winner(1e-6) == "gaussian"
    assert composed.epsilon(1e-6) == compared["gaussian"]
    assert composed.native["zcdp"]["rho"] == pytest.approx(7 / 50)
    assert composed.uses == 7


def test_at_delta_zero_a_pure_sum_settles_the_answer() -> None:
    composed = BestAccountant().compose([use(Laplace(8.0), count=4)])
    assert composed.winner(0.0) == "pure"
    assert "pld" not in composed.compared(0.0)
    assert "pld" in composed.compared(1e-6)
    assert composed.epsilons([0.0]).tolist() == [0.5]


def test_losses_beyond_the_floats_need_no_grid() -> None:
    composed = BestAccountant().compose([use(DiscreteLaplace(5e-324), count=2)])
    assert composed.refusals["pld"] == "no float holds its losses."
    assert composed.epsilon(1e-6).upper == math.inf


def test_without_any_theorem_the_invocation_is_named() -> None:
    with pytest.raises(UnsupportedError, match="opaque at 'sort'"):
        BestAccountant().compose([use(Opaque("sorter", 1.0), at="sort"), use(Laplace(1.0))])


def test_accountants_that_contradict_each_other_are_an_error() -> None:
    known = BestAccountant().compose([use(Gaussian(2.0))])
    wrong = BestComposition(
        {**known.compositions, "zcdp": GaussianComposition(0.1)}, known.refusals
    )
    with pytest.raises(InputError, match="accountants disagree"):
        wrong.epsilon(1e-6)
