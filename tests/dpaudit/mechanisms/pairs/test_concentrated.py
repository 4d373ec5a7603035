from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms.pairs import ConcentratedPair


def test_only_its_divergences_are_known():
    pair = ConcentratedPair(0.25)
    assert pair.renyi(np.array([1.5, 8.0])).tolist() == [0.375, 2.0]
    assert pair.zcdp_rho == 0.25
    assert pair.pure_epsilon == math.inf
    assert not pair.has_law
    for unknown in (pair.above, pair.below, pair.delta, pair.upper_quantile):
        with pytest.raises(UnsupportedError, match="does not give the law"):
            unknown(0.5)


def test_no_concentration_is_no_cost():
    assert ConcentratedPair(0.0).pure_epsilon == 0
    with pytest.raises(InputError, match="rho is -1"):
        ConcentratedPair(-1.0)
