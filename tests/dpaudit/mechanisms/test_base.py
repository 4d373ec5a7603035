"""What every mechanism shares: kinds, additive noise, and units with bounds of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    AdditiveNoise,
    Gaussian,
    IndividualGaussian,
    IntegerNoise,
    Laplace,
    Mechanism,
    Norm,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.mechanisms.base import (
    ExactSource,
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
    with pytest.raises(InputError, match=r"mechanism kind 'laplace' already belongs to .*Laplace"):

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


@dataclass(frozen=True)
class Uniform(AdditiveNoise):
    """Noise in [−1, 1), which says how it is drawn and no more."""

    kind: ClassVar[str] = "test-additive-uniform"
    norm: ClassVar[Norm] = Norm.L1

    def pair(self, sensitivity):
        return PureBlackBox(1.0).pair(sensitivity)

    def noise(self, shape, rng):
        return rng.uniform(-1, 1, shape)

    def log_noise_density(self, noise):
        return np.where(np.abs(noise) <= 1, np.log(0.5), -np.inf)


@dataclass(frozen=True)
class Coin(IntegerNoise):
    """−1, 0 or 1."""

    kind: ClassVar[str] = "test-additive-coin"
    norm: ClassVar[Norm] = Norm.L1

    def pair(self, sensitivity):
        return PureBlackBox(1.0).pair(sensitivity)

    def noise(self, shape, rng):
        return rng.integers(-1, 2, shape)

    def log_mass(self, noise):
        return np.where(np.abs(noise) <= 1, np.log(1 / 3), -np.inf)

    def mean_size(self):
        return 2 / 3


def test_noise_is_added_to_every_entry():
    released = Uniform().release_many([[10.0, 20.0]], 500, np.random.default_rng(0))
    assert released.shape == (500, 1, 2)
    assert np.abs(released - [[10.0, 20.0]]).max() < 1
    assert len(np.unique(released)) == 1000


def test_densities_add_up_over_entries():
    found = Uniform().log_density([[0.5, 0.5], [0.5, 2.5]], [0.0, 1.0])
    assert found.tolist() == [pytest.approx(2 * np.log(0.5)), -np.inf]


def test_a_law_that_is_not_declared_cannot_be_tested():
    with pytest.raises(UnsupportedError, match="test-additive-uniform declares no law of noise"):
        Uniform().tails(0.5, np.zeros(()), np.random.default_rng(0))


def test_integer_noise_takes_and_gives_integers():
    coin, rng = Coin(), np.random.default_rng(0)
    assert coin.release_many(5, 100, rng).dtype == np.int64
    with pytest.raises(InputError, match="not a whole number"):
        coin.release(0.5, rng)
    masses = np.exp(coin.log_density([4, 5.5, 9], 5))
    assert masses == pytest.approx([1 / 3, 0.0, 0.0])
    tails = coin.tails([4, 5, 6], np.array([5, 5, 5]), rng)
    assert tails.sizes.tolist() == [1.5, 0.0, 1.5]
    assert ((tails.tails >= [0, 2 / 3, 0]) & (tails.tails <= [2 / 3, 1, 2 / 3])).all()


class TestIndividualGaussian(MechanismConformance):
    """Three steps that one unit moves by a length of 1 together."""

    mechanism = IndividualGaussian(sigma=1.6, steps=3)
    bad_parameters = ({"sigma": 0}, {"steps": 0}, {"steps": 1.5})
    unlike = Laplace(scale=1.6)
    value = (0.0, 0.0, 0.0)
    neighbour = (0.6, 0.0, 0.8)

    def mean(self):
        return 0.0

    def variance(self):
        return 1.6**2

    def exact_delta(self, epsilon):
        return float(Gaussian(1.6).pair(1.0).delta(epsilon))


def test_steps_do_not_count():
    assert IndividualGaussian(2.0, 10**6).pair(1.0).mu == Gaussian(2.0).pair(1.0).mu
    calibrated = IndividualGaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1, steps=7)
    assert (calibrated.steps, round(calibrated.sigma, 4)) == (7, 3.7306)
    with pytest.raises(InputError, match="clip_norm bounds one release only"):
        IndividualGaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1, clip_norm=1.0)


def test_a_running_release_has_the_law_of_the_whole():
    mechanism = IndividualGaussian(2.0, steps=3)
    sums = mechanism.start((2,), np.random.default_rng(4))
    released = np.array([sums.add([step, 0.0]) for step in range(3)])
    noise = np.random.default_rng(4).normal(scale=2.0, size=(3, 2))
    np.testing.assert_array_equal(released, np.array([[0, 0], [1, 0], [2, 0]]) + noise)
    with pytest.raises(InputError, match="steps is 3 and all have been released"):
        sums.add([0.0, 0.0])


def test_it_has_no_exact_sampler_yet():
    assert not IndividualGaussian.has_exact_sampler()
    with pytest.raises(UnsupportedError, match="individual-gaussian has no exact sampler"):
        IndividualGaussian(1.0, 2).require_exact(1.0, ExactSource)


def test_adaptive_steps_cost_no_more_than_one_release():
    """By quadrature: a second step that depends on the first, in the worst way that is allowed."""
    grid = np.arange(-9, 9, 0.02)
    one, two = np.meshgrid(grid, grid, indexing="ij")
    pair = IndividualGaussian(1.0, 2).pair(1.0)
    for first in (0.3, 0.7, 1.0):
        rest = np.sqrt(1 - first**2) * np.where(one > first / 2, 1.0, -0.4)
        log_p = -((one - first) ** 2 + (two - rest) ** 2) / 2
        log_q = -(one**2 + two**2) / 2
        for epsilon in (0.1, 1.0, 2.0):
            spent = grid_delta(log_p.ravel(), log_q.ravel(), epsilon, 0.02**2 / (2 * np.pi))
            back = grid_delta(log_q.ravel(), log_p.ravel(), epsilon, 0.02**2 / (2 * np.pi))
            assert max(spent, back) <= float(pair.delta(epsilon)) * (1 + 1e-6)
