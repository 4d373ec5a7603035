from __future__ import annotations

import math

import pytest
from accounting_builders import any_invocations, poisson, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.closed_forms.moments import MomentsAccountant
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import ConcentratedBlackBox, Gaussian
from dpaudit.plan import FixedSizeSampling, ReplaceOne


class TestMoments(AccountantLaws):
    accountant = MomentsAccountant()
    ledgers = st.lists(any_invocations(), min_size=1, max_size=4)


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_gaussian_moments_are_converted_by_the_bound_of_markov(delta: float) -> None:
    """α(l) = l (l + 1) μ²/2, and the least of (α(l) + ln 1/δ)/l over 32 integers."""
    composed = MomentsAccountant().compose([use(Gaussian(4.0), count=8)])
    exact = min((l * (l + 1) * 8 / 32 - math.log(delta)) / l for l in range(1, 33))  # noqa: E741
    assert composed.epsilon(delta).upper == pytest.approx(exact, rel=1e-12)
    assert composed.delta(exact).upper == pytest.approx(delta, rel=1e-9)
    assert composed.native["log_moments"][0] == pytest.approx(8 / 16)


def test_sampling_without_a_formula_is_refused_by_name() -> None:
    drawn = FixedSizeSampling(1, 10)
    sampled = use(Gaussian(1.0), relation=ReplaceOne(), sampling=drawn, at="x")
    with pytest.raises(UnsupportedError, match="gaussian at 'x': the moments accountant has no f"):
        MomentsAccountant().compose([sampled])
    box = use(ConcentratedBlackBox(0.1), sampling=poisson(0.1), at="y")
    with pytest.raises(UnsupportedError, match="concentrated-black-box at 'y': sampling needs the"):
        MomentsAccountant().compose([box])
