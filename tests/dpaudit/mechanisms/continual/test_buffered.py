"""Buffered Toeplitz matrices against power series, and against the square root."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import BufferedToeplitz


def cost(factorization, *pattern):
    """Largest error at μ = 1."""
    return factorization.max_error(factorization.sensitivity(*pattern))


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


@pytest.mark.parametrize("buffers", [0, 17, 2.0])
def test_bad_buffers_are_refused(buffers):
    with pytest.raises(InputError, match="buffers is"):
        BufferedToeplitz.fitted(10, buffers)
