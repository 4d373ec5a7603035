from __future__ import annotations

import math

import pytest
from accounting_builders import (
    gaussian_invocations,
    use,
)
from accounting_conformance import AccountantLaws
from accounting_truths import exact_gaussian_delta
from hypothesis import strategies as st

from dpaudit.accounting.closed_forms.gaussian import GaussianAccountant, GaussianComposition
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    Gaussian,
    Laplace,
)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 1.0, 7.0, 40.0, 1e4])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-5, 0.3])
def test_the_gaussian_interval_contains_the_truth(mu: float, delta: float) -> None:
    interval = GaussianComposition(mu).epsilon(delta)
    assert exact_gaussian_delta(mu, interval.upper) <= delta
    assert interval.lower is not None
    assert interval.lower == 0 or exact_gaussian_delta(mu, interval.lower) >= delta
    assert interval.upper - interval.lower <= 1e-7 * max(interval.upper, mu)
    ends = GaussianComposition(mu).delta(interval.upper)
    truth = exact_gaussian_delta(mu, interval.upper)
    assert ends.lower is not None
    assert ends.lower <= truth <= ends.upper


@pytest.mark.parametrize("delta", [3.98942280401432e-301, 3.9894e-301, 1e-301, 1e-310])
def test_a_root_below_the_normal_floats_has_an_interval(delta: float) -> None:
    interval = GaussianComposition(1e-300).epsilon(delta)
    assert interval.lower == 0.0  # μ may stand for less
    assert 0 < interval.upper < 1e-298


def test_mixed_gaussian_noise_adds_up_in_squares() -> None:
    ledger = [use(Gaussian(3.0), count=9), use(Gaussian(4.0), 2.0, count=4)]
    assert GaussianAccountant().compose(ledger).mu == pytest.approx(math.sqrt(2.0), rel=1e-12)


def test_the_gaussian_accountant_names_what_it_does_not_take() -> None:
    with pytest.raises(UnsupportedError, match="laplace at 'x' is not a Gaussian mechanism"):
        GaussianAccountant().compose([use(Laplace(1.0), at="x")])


class TestGaussian(AccountantLaws):
    accountant = GaussianAccountant()
    ledgers = st.lists(gaussian_invocations(), min_size=1, max_size=4)
    big = use(Gaussian(100.0), count=10**9)
