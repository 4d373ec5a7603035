import math

import numpy as np
import pytest

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Mechanism, Opaque

MECHANISM = Opaque("projection", 1.0, 1e-5, sampler=lambda value, rng: value + rng.normal())


def test_claims_nothing_that_an_accountant_could_use():
    with pytest.raises(UnsupportedError, match="'projection' states a claim without a proof"):
        MECHANISM.pair(1.0)
    assert MECHANISM.pair(0.0).pure_epsilon == 0


def test_serialises_without_its_sampler():
    again = Mechanism.parse(MECHANISM.to_dict())
    assert again == MECHANISM
    with pytest.raises(UnsupportedError, match="no sampler"):
        again.release(1.0, np.random.default_rng(0))


def test_runs_its_sampler():
    outputs = MECHANISM.release_many(2.0, 1000, np.random.default_rng(0))
    assert abs(outputs.mean() - 2) < 0.2
    assert isinstance(MECHANISM.release(2.0, np.random.default_rng(0)), float)


def test_bad_parameters():
    for parameters in ({"epsilon": -1}, {"epsilon": math.nan}, {"delta": 1.0}, {"label": ""}):
        with pytest.raises(InputError):
            Opaque(**({"label": "x", "epsilon": 1.0} | parameters))
