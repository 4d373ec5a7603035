"""Parties, data and result of a federation."""

import numpy as np
import pytest

import private_bo
from dpaudit import Ledger
from dpaudit.base.errors import InputError
from private_bo.federated import (
    DPFTS,
    DPFTSDE,
    FTS,
    PlainTS,
    WithoutAgent,
    synthetic,
)

SMALL = DPFTSDE(agents=8, regions=2, rate=0.5, features=10, rounds=6, initial=3, clip=4.0)
PROBLEM = synthetic(8, seed=1, points=60)


def test_wrong_data_are_refused_before_anything_is_released() -> None:
    for data in ([], synthetic(7, points=20), None):
        ledger = Ledger(SMALL.plan(), rng=np.random.default_rng(0))
        with pytest.raises(InputError, match="data"):
            SMALL.run(data, ledger, np.random.default_rng(0))
        assert len(ledger) == 0
    with pytest.raises(InputError, match="agent is 8"):
        WithoutAgent(PROBLEM, 8)
    with pytest.raises(InputError, match="must be synthetic"):
        SMALL.load("nowhere", np.random.default_rng(0))
    with pytest.raises(InputError):
        SMALL.load("/nowhere.mat", np.random.default_rng(0))
    for kind in (DPFTS, FTS, PlainTS):
        with pytest.raises(InputError, match="regions is 2"):
            kind(regions=2)


def test_public_names() -> None:
    assert {DPFTS, DPFTSDE} < set(private_bo.SUBJECTS)
    assert private_bo.PlainTS is PlainTS
    assert DPFTSDE().load("synthetic", np.random.default_rng(0)).agents == 200
    assert DPFTSDE(agents=30, regions=4).load("digits", np.random.default_rng(0)).agents == 30
