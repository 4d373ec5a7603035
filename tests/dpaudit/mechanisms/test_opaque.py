import math

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Ledger, Plan
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Mechanism, Opaque, StatedNoise

MECHANISM = Opaque("projection", 1.0, 1e-5, sampler=lambda value, rng: value + rng.normal())


def test_claims_nothing_that_an_accountant_could_use():
    with pytest.raises(UnsupportedError, match="'projection' states a claim without a proof"):
        MECHANISM.pair(1.0)
    assert MECHANISM.pair(0.0).pure_epsilon == 0
    assert MECHANISM.is_black_box


def test_serialises_without_its_sampler():
    again = Mechanism.parse(MECHANISM.to_dict())
    assert again == MECHANISM
    with pytest.raises(UnsupportedError, match="no sampler"):
        again.release(1.0, np.random.default_rng(0))


def test_runs_its_sampler():
    outputs = MECHANISM.release_many(2.0, 1000, np.random.default_rng(0))
    assert abs(outputs.mean() - 2) < 0.2
    assert isinstance(MECHANISM.release(2.0, np.random.default_rng(0)), float)
    assert MECHANISM.release_many([1.0, 2.0], 0, np.random.default_rng(0)).shape == (0, 2)


def test_a_sampler_may_work_in_place_without_touching_other_runs():
    def in_place(value, rng):
        value += 1
        return value

    released = Opaque("counter", 1.0, sampler=in_place).release_many(
        [0.0, 5.0], 3, np.random.default_rng(0)
    )
    assert released.tolist() == [[1.0, 6.0]] * 3


def test_a_value_that_fails_the_check_is_refused_before_it_is_charged():
    def at_most_one(value):
        if value.max() > 1:
            raise InputError("value has an entry above 1.")

    mechanism = Opaque("sketch", 1.0, sampler=lambda value, rng: value, check=at_most_one)
    ledger = Ledger(Plan.of(gaussian_invocation(mechanism=mechanism)), rng=np.random.default_rng(0))
    for release in (
        lambda: mechanism.release([0.5, 2.0], np.random.default_rng(0)),
        lambda: ledger.release(mechanism, [0.5, 2.0]),
    ):
        with pytest.raises(InputError, match="above 1"):
            release()
    assert len(ledger) == 0
    assert list(ledger.release(mechanism, [0.5, 1.0])) == [0.5, 1.0]
    assert Mechanism.parse(mechanism.to_dict()) == mechanism


def test_bad_parameters():
    for parameters in ({"epsilon": -1}, {"epsilon": math.nan}, {"delta": 1.0}, {"label": ""}):
        with pytest.raises(InputError):
            Opaque(**({"label": "x", "epsilon": 1.0} | parameters))


def test_stated_noise_proves_nothing_but_says_how_far_values_are_apart():
    noise = StatedNoise("bounded domain", 1.0, 1e-6)
    with pytest.raises(UnsupportedError, match="without a proof"):
        noise.pair(1.0)
    assert noise.pair(0.0).pure_epsilon == 0
    assert noise.distance(np.array([1.0, 2.0]), np.array([4.0, 0.0])) == 5
    assert Mechanism.parse(noise.to_dict()) == noise
