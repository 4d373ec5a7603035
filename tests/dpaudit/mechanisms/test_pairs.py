import math

import numpy as np
import pytest

from dpaudit.mechanisms import approximate_pair


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 1e-3), (0.0, 0.1)])
def test_approximate_pair_meets_its_own_claim(epsilon, delta):
    pair = approximate_pair(epsilon, delta)
    assert float(pair.delta(epsilon)) == pytest.approx(delta, abs=1e-15)
    assert pair.p.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.q.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.pure_epsilon == (epsilon if delta == 0 else math.inf)


def test_tails_at_an_atom_are_strict_above():
    pair = approximate_pair(1.0)
    above, below = pair.above(1.0)[0], pair.below(1.0)[0]
    assert above == 0
    assert below == 1
    assert np.isinf(approximate_pair(1.0, 0.1).renyi(2.0))
