import math
from fractions import Fraction

import pytest
from truncated_quadrature import exact_delta

from dpaudit.mechanisms.pairs import TruncatedLaplacePair


@pytest.mark.parametrize("u", [0.03, 0.7, 3.0, 12.0])
@pytest.mark.parametrize("share", [1e-3, 0.4, 1.0, 1.3, 1.99])
def test_every_shift_has_its_exact_curve_and_tails(u, share):
    e, top = u * share, min(u * share, u * (2 - share))
    pair, longer = (TruncatedLaplacePair(Fraction(s), Fraction(u)) for s in (e, e * 1.004))
    for x in (-1.5 * e, -0.99 * top, 0.0, 0.3 * top, 0.99 * top, top, 2 * e):
        truth = exact_delta(x, e, u)
        assert float(pair.delta(x)) == pytest.approx(truth, rel=1e-10, abs=1e-13)
        p, q = pair.above(x)
        assert float(p - math.exp(x) * q) == pytest.approx(truth, abs=1e-12)
        assert float(longer.delta(x)) >= truth - 1e-13
