"""The fit of the rates, against the explicit matrices."""

from __future__ import annotations

import math

import pytest

from dpaudit.mechanisms import BufferedToeplitz, SquareRootToeplitz
from dpaudit.mechanisms.continual.fitting import log_error, zolotarev_rates


def cost(factorization, *pattern):
    """Largest error at μ = 1."""
    return factorization.max_error(factorization.sensitivity(*pattern))


@pytest.mark.parametrize("pattern", [(1, 1), (3, 7), (8, 25), (40, 1), (200, 1), (2, 199)])
def test_closed_form_of_the_fit_is_the_product_of_the_norms(pattern):
    poles, zeros = zolotarev_rates(200, 4)
    buffered = BufferedToeplitz(200, tuple(poles.tolist()), tuple(zeros.tolist()))
    expected = buffered.max_error(1.0) * buffered.sensitivity(*pattern)
    assert math.exp(log_error(poles, zeros, 200, *pattern)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 50, 1024, 100_000])
@pytest.mark.parametrize("buffers", [1, 2, 4, 8, 16])
def test_fit_improves_on_its_closed_form_start(steps, buffers):
    poles, zeros = zolotarev_rates(steps, buffers)
    start = BufferedToeplitz(steps, tuple(poles.tolist()), tuple(zeros.tolist()))
    fitted = BufferedToeplitz.fitted(steps, buffers)
    assert cost(fitted) <= cost(start) * (1 + 1e-6)  # rates are written with five digits
    assert BufferedToeplitz.fitted(steps, buffers) == fitted


def test_fit_to_the_participations_is_better_for_them():
    single, several = BufferedToeplitz.fitted(1024), BufferedToeplitz.fitted(1024, 5, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(single, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(SquareRootToeplitz(1024), 16, 64)
    assert cost(single) < cost(several)


def test_the_rates_do_not_depend_on_how_a_processor_rounds():
    """Found with other kernels of BLAS, other processors and without vector instructions.

    Only a last digit may be rounded the other way.
    """
    fitted = BufferedToeplitz.fitted(1024)
    poles, zeros = (0.00068739, 0.0089122, 0.054331, 0.34918, 5.0301), (0.0031306, 0.022311)
    assert fitted.pole_rates == pytest.approx(poles, rel=3e-5)
    assert fitted.zero_rates == pytest.approx((*zeros, 0.13419, 1.049), rel=3e-5)
