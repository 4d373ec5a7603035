from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from mechanism_conformance import PlainSource

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Laplace, Mechanism, Norm, PureBlackBox, RandomizedResponse
from dpaudit.mechanisms.base import (
    changes,
    integer_array,
    integer_sensitivity,
    single_entry,
    sum_over_entries,
)


@dataclass(frozen=True)
class Bare(Mechanism):
    """Nothing but its privacy and a sampler."""

    kind: ClassVar[str] = "test-base-bare"
    norm: ClassVar[Norm] = Norm.L2

    def pair(self, sensitivity):
        return PureBlackBox(1.0).pair(sensitivity)

    def sample(self, values, rng):
        return values + rng.integers(2, size=values.shape)


def test_what_is_not_offered_is_refused_in_one_sentence_that_names_the_mechanism():
    bare, source = Bare(), PlainSource(np.random.default_rng(0))
    doors = (
        lambda: bare.log_density([0.0], 0.0),
        lambda: bare.tails(0.0, np.zeros(()), source.rng),
        lambda: bare.probabilities(0.0),
        lambda: bare.require_exact(1.0, source),
        lambda: bare.release_exactly(0.0, 1.0, 1, source),
        lambda: bare.sample_exactly(np.zeros(1), 1.0, source),
    )
    for door in doors:
        with pytest.raises(UnsupportedError, match=r"^test-base-bare (declares|has) no .*\.$"):
            door()
    assert bare.noise_scale is bare.strength(1.0) is bare.for_group(2) is None
    assert bare.implied_sensitivity(2.0) is None
    assert bare.worst_pairs() == ()
    assert bare.pair_and_failure(1.0)[1] == 0


def test_a_kind_is_unique():
    with pytest.raises(InputError, match=r"mechanism kind 'laplace' is that of .*Laplace already"):

        class Other(Bare):
            kind = "laplace"


@pytest.mark.parametrize(("norm", "length"), [(Norm.L1, 7.0), (Norm.L2, 5.0), (Norm.CHANGE, 1.0)])
def test_norms_measure_changes(norm, length):
    assert norm.length(np.array([[3.0], [-4.0]])) == length
    assert norm.length(np.zeros(3)) == 0
    assert norm.length(np.array(-2.0)) == (1.0 if norm is Norm.CHANGE else 2.0)


def test_distances_are_those_of_prepared_values():
    laplace = Laplace(1.0)
    assert laplace.distance(np.array([1, 2]), np.array([3, 1])) == 3
    assert laplace.distance(np.zeros(2), np.zeros(3)) == math.inf
    assert RandomizedResponse(0.5, 4).distance(np.array(1), np.array(3)) == 1


def test_sensitivities_are_checked():
    assert changes(1.0, "x")
    assert not changes(0, "x")
    with pytest.raises(InputError, match=r"sensitivity is 2; x takes 0 or 1\."):
        changes(2, "x")
    assert integer_sensitivity(3.0, "x") == 3
    with pytest.raises(InputError, match="x releases integers and needs a whole number"):
        integer_sensitivity(0.5, "x")


def test_values_are_checked():
    assert integer_array([1.0, -2.0]).dtype == np.int64
    for bad in (0.5, 2.0**54):
        with pytest.raises(InputError, match="not a whole number"):
            integer_array(bad)
    with pytest.raises(UnsupportedError, match="value has 3 entries; x is accounted"):
        single_entry(np.zeros(3), "x")
    assert sum_over_entries(np.ones((2, 3, 4))).tolist() == [12.0, 12.0]
    assert sum_over_entries(np.ones(2)).tolist() == [1.0, 1.0]
