"""Transforms and their rounding errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.pld.discretise import discretise
from dpaudit.accounting.pld.spectrum import Composer, Tilt, tilt_transform
from dpaudit.mechanisms import (
    LaplacePair,
)


@pytest.mark.parametrize("theta", [0.0, 3.0])
@pytest.mark.parametrize("count", [1, 2, 7, 5000])
def test_transforms_compose_within_their_error(theta: float, count: int) -> None:
    spacing, size = 0.05, 4096
    loss = discretise(PlainPair(LaplacePair(Fraction(1, 2**4))), spacing / 40, 1e-12)
    spectrum = tilt_transform(loss, spacing / 40, Tilt(theta, 1.0, 1.0), size)
    composer = Composer(size)
    composer.multiply(spectrum, count)
    law = composer.law(-size // 2)
    # Direct powers of the folded law by repeated squaring with exact circular convolution.
    base = np.zeros(size)
    for k, weight in enumerate(spectrum.weights):
        base[(spectrum.offset - spectrum.centre + k) % size] += weight
    direct = np.zeros(size)
    direct[0] = 1.0
    remaining = count
    while remaining:
        if remaining & 1:
            direct = np.maximum(np.fft.irfft(np.fft.rfft(direct) * np.fft.rfft(base), size), 0)
        base = np.maximum(np.fft.irfft(np.fft.rfft(base) ** 2, size), 0)
        remaining >>= 1
    np.testing.assert_allclose(np.roll(direct, size // 2), law.masses, atol=1e-9)
    assert law.masses.sum() == pytest.approx(1, abs=1e-9)
    assert 0 < law.error <= law.total_error < 1e-6
