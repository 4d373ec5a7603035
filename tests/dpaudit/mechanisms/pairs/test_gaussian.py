import math

import mpmath
import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.268, 1.0), (1.0, 0.0), (1.0, 6.1), (0.01, 0.2), (8.0, 3.0), (5.0, 80.0)]
)
def test_delta_equals_high_precision(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert float(GaussianPair(mu).delta(epsilon)) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 12.0])
@pytest.mark.parametrize("place", [-6.0, -1.0, 0.0, 2.5, 30.0])
def test_tails_keep_their_relative_accuracy(mu, place):
    loss = mu * mu / 2 + place * mu  # `place` deviations from the mean of the loss
    pair = GaussianPair(mu)
    with mpmath.workdps(50):
        z = mpmath.mpf(loss) / mu
        p, q = mpmath.ncdf(mpmath.mpf(mu) / 2 - z), mpmath.ncdf(-mpmath.mpf(mu) / 2 - z)
        assert [float(t) for t in pair.above(loss)] == pytest.approx(
            [float(p), float(q)], rel=1e-10, abs=1e-300
        )
        assert [float(t) for t in pair.below(loss)] == pytest.approx(
            [float(1 - p), float(1 - q)], rel=1e-10
        )


def test_divergences_and_concentration_are_the_closed_forms():
    pair = GaussianPair(0.6)
    assert pair.renyi([1.5, 4.0]) == pytest.approx([0.27, 0.72])
    assert pair.zcdp_rho == pytest.approx(0.18)
    assert pair.zcdp_rho >= 0.18
    assert pair.gaussian_mu == 0.6
    assert pair.pure_epsilon == math.inf
    assert pair.upper_quantile(1e-5) == pytest.approx(0.18 + 0.6 * 4.264891)
    assert pair.lower_quantile(1e-5) == pytest.approx(0.18 - 0.6 * 4.264891)


def test_ends_of_the_family():
    nothing, everything = GaussianPair(0.0), GaussianPair(math.inf)
    losses = np.array([-1.0, 0.0, 1.0])
    assert nothing.above(losses)[0].tolist() == [1.0, 0.0, 0.0]
    assert nothing.below(losses)[1].tolist() == [0.0, 1.0, 1.0]
    assert nothing.pure_epsilon == nothing.zcdp_rho == 0
    assert [tail.tolist() for tail in everything.above(losses)] == [[1.0] * 3, [0.0] * 3]
    assert [tail.tolist() for tail in everything.below(losses)] == [[0.0] * 3, [1.0] * 3]
    for wrong in (-1.0, math.nan, "1"):
        with pytest.raises(InputError, match="mu is"):
            GaussianPair(wrong)
