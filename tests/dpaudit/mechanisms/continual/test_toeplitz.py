"""The square root and its buffered approximations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.errors import InputError
from dpaudit.mechanisms import BinaryTree, BufferedToeplitz, SquareRootToeplitz
from dpaudit.mechanisms.continual.fitting import log_error, zolotarev_rates


def cost(factorization, *pattern):
    """Largest error at μ = 1."""
    return factorization.max_error(factorization.sensitivity(*pattern))


def least_possible(steps):
    """‖A‖_*/T, below the product of largest row and column norm of every factorisation.

    ‖BC‖_* ≤ ‖B‖_F ‖C‖_F; the singular values of A are 1/(2 sin((2j − 1)π/(4T + 2))).
    """
    angles = (2 * np.arange(1, steps + 1) - 1) * math.pi / (4 * steps + 2)
    return (0.5 / np.sin(angles)).sum() / steps


def test_coefficients_are_central_binomials():
    column = SquareRootToeplitz(200).encoder_column()
    exact = [math.comb(2 * k, k) / 4**k for k in range(200)]
    np.testing.assert_allclose(column, exact, rtol=1e-13)


def test_largest_error_at_1024_steps():
    root = SquareRootToeplitz(1024)
    energy = sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(1024))
    assert cost(root) == pytest.approx(energy, rel=1e-11)
    assert cost(root) <= 3.28
    assert cost(root) == pytest.approx(3.2726, abs=5e-5)
    assert least_possible(1024) == pytest.approx(2.9096, abs=5e-5)
    assert cost(BinaryTree(1024, release_root=True)) / cost(root) > 3.2


@pytest.mark.parametrize("steps", [1, 2, 10, 300])
def test_no_factorisation_is_below_the_nuclear_norm(steps):
    singular = np.linalg.svd(np.tri(steps), compute_uv=False)
    assert least_possible(steps) == pytest.approx(singular.sum() / steps, rel=1e-12)
    assert cost(SquareRootToeplitz(steps)) >= least_possible(steps) * (1 - 1e-12)


def test_square_root_stream_crosses_its_blocks_exactly():
    root = SquareRootToeplitz(150)

    class Recorded:
        def __init__(self):
            self.rng = np.random.default_rng(3)
            self.nodes = []

        def normal(self, scale, size):
            self.nodes.append(self.rng.normal(scale=scale, size=size))
            return self.nodes[-1].copy()

    recorded = Recorded()
    stream = root.sampler((4,), 1.5, recorded)
    noise = np.array([stream.step() for _ in range(150)])
    np.testing.assert_allclose(noise, root.decoder() @ np.concatenate(recorded.nodes), atol=1e-11)
    assert stream.state_arrays <= 150 + 64


@pytest.mark.parametrize(("buffers", "limit"), [(4, 3.2740), (5, 3.2727), (6, 3.2726)])
def test_buffers_reach_the_square_root(buffers, limit):
    fitted = BufferedToeplitz.fitted(1024, buffers)
    assert cost(fitted) <= limit
    stream = fitted.sampler((3,), 1.0, np.random.default_rng(0))
    for _ in range(50):
        stream.step()
        assert stream.state_arrays == buffers


def test_columns_are_the_power_series_of_the_rational_functions():
    poles, zeros, steps = (0.003, 0.08, 1.5), (0.02, 0.4), 60
    buffered = BufferedToeplitz(steps, poles, zeros)
    top = np.poly(1 / (1 + np.array(zeros)))
    bottom = np.poly(1 / (1 + np.array(poles)))

    def quotient(numerator, denominator):
        series = np.zeros(steps)
        padded = np.pad(numerator, (0, steps))
        for k in range(steps):
            past = sum(
                denominator[j] * series[k - j] for j in range(1, min(k + 1, len(denominator)))
            )
            series[k] = padded[k] - past
        return series

    np.testing.assert_allclose(buffered.encoder_column(), quotient(top, bottom), rtol=1e-11)
    summed = np.convolve(top, [1, -1])
    np.testing.assert_allclose(buffered.decoder_column(), quotient(bottom, summed), rtol=1e-11)
    for column in (buffered.encoder_column(), buffered.decoder_column()):
        assert (np.diff(column) < 0).all()
        assert column[-1] > 0


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
    assert cost(fitted) <= cost(start) * (1 + 1e-9)
    assert BufferedToeplitz.fitted(steps, buffers) == fitted


def test_fit_to_the_participations_is_better_for_them():
    single, several = BufferedToeplitz.fitted(1024), BufferedToeplitz.fitted(1024, 5, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(single, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(SquareRootToeplitz(1024), 16, 64)
    assert cost(single) < cost(several)


@pytest.mark.parametrize("buffers", [0, 17, 2.0])
def test_bad_buffers_are_refused(buffers):
    with pytest.raises(InputError, match="buffers is"):
        BufferedToeplitz.fitted(10, buffers)
