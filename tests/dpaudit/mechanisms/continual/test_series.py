"""Partial fractions against the power series of the same rational function."""

import numpy as np
from mpmath import mp, mpf

from dpaudit.mechanisms.continual.series import geometric, series_weights

POLES, ZEROS = np.array([0.5, 3.0]), np.array([1.0])


def powers(numerator, denominator, length):
    """Coefficients of ∏ (1 − a x)/∏ (1 − b x), a and b being 1/(1 + rate)."""
    with mp.workdps(50):
        series = [mpf(1)] + [mpf(0)] * (length - 1)
        for rate in numerator:
            a = 1 / (1 + mpf(float(rate)))
            series = [series[k] - (a * series[k - 1] if k else 0) for k in range(length)]
        for rate in denominator:
            b = 1 / (1 + mpf(float(rate)))
            for k in range(1, length):
                series[k] += b * series[k - 1]
        return [float(each) for each in series]


def test_both_columns_are_those_of_the_products():
    encoder, decoder, fresh = series_weights(POLES, ZEROS)
    column = geometric(encoder, POLES, 30)
    np.testing.assert_allclose(column, powers(ZEROS, POLES, 30), rtol=1e-12)
    inverse = geometric(decoder, np.array([0.0, *ZEROS]), 30)
    inverse[0] += fresh
    np.testing.assert_allclose(inverse, powers(POLES, [0.0, *ZEROS], 30), rtol=1e-12)
    assert (encoder > 0).all()
    assert (decoder > 0).all()
    assert fresh > 0


def test_together_they_are_the_prefix_sum():
    encoder, decoder, fresh = series_weights(POLES, ZEROS)
    left = geometric(decoder, np.array([0.0, *ZEROS]), 40)
    left[0] += fresh
    product = np.convolve(left, geometric(encoder, POLES, 40))[:40]
    np.testing.assert_allclose(product, 1.0, rtol=1e-12)
